// SPDX-License-Identifier: Apache-2.0
#include "vectors/relation.hpp"

#include <gtest/gtest.h>

#include "conformance/file.hpp"
#include "conformance/json.hpp"
#include "vectors/relation_image.hpp"
#include "vectors/relation_plan.hpp"

namespace qkcts {
namespace {

Relation relation_of(RelationKind kind) {
  Relation relation;
  relation.slug = "a/b";
  relation.kind = kind;
  relation.cases = {"x/first"};
  if (row(kind).cases == 2) relation.cases.emplace_back("x/second");
  relation.stages = bit(QKCTS_STAGE_SCORES) | bit(QKCTS_STAGE_OUTPUT);
  switch (kind) {
    case RelationKind::score_bound:
      relation.bounds[QKCTS_STAGE_SCORES] = 11.25;
      break;
    case RelationKind::weight_bound:
      relation.row_bounds = {0.5, 1, 0.25, 0.125};
      break;
    case RelationKind::eps_rescaling:
    case RelationKind::value_scale:
      relation.exponent = -3;
      break;
    case RelationKind::common_shift:
    case RelationKind::shift_seen:
    case RelationKind::score_shift:
      relation.shift = 4.5;
      break;
    case RelationKind::batch_position:
      relation.entry = 1;
      break;
    case RelationKind::prefix:
      relation.from_key = 2;
      relation.rows = {0, 3};
      break;
    case RelationKind::key_permutation:
      relation.permutation = {2, 0, 1};
      break;
    case RelationKind::liveness:
      relation.neighbour = "norm.eps=0";
      break;
    default:
      break;
  }
  return relation;
}

// B 1, Hq 2, Hkv 1, Lq 2, Lk 3.
constexpr qkcts_shape shape{1, 2, 1, 2, 3, 4, 5};

std::string fault_of(const Relation& relation, qkcts_shape second = shape, Format format = Format::binary32) {
  const Contract contract = shipped_contract("qwen3_rmsnorm");
  std::vector<RelationCase> cases = {{contract.terms, shape, Format::binary32}};
  if (relation.cases.size() == 2) cases.push_back({contract.terms, second, format});
  return relation_fault(relation, cases);
}

std::string refusal_of(const std::string& text) {
  try {
    relation_from_text("a/b", text, "file");
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST(Relation, TextsComeBackAsTheyWere) {
  for (const RelationRow& entry : relation_table()) {
    const std::string text = relation_text(relation_of(entry.kind));
    const Relation read = relation_from_text("a/b", text, "file");
    EXPECT_EQ(relation_text(read), text);
    EXPECT_EQ(read.kind, entry.kind);
    EXPECT_EQ(relation_kind_named(entry.name), entry.kind);
  }
  EXPECT_FALSE(relation_kind_named("nothing"));
}

TEST(Relation, TextsThatAreNotCanonicalOrSayTooMuchAreRefused) {
  const Json good = parse_json(relation_text(relation_of(RelationKind::eps_rescaling)), "good");
  EXPECT_EQ(refusal_of(canonical_text(good)), "");
  const auto changed = [&](const char* key, const Json& value) {
    Json json = good;
    json[key] = value;
    return refusal_of(canonical_text(json));
  };
  EXPECT_NE(changed("kind", "nothing"), "");
  EXPECT_NE(changed("id", "P3"), "");
  EXPECT_NE(changed("rule", "delta"), "") << "a file cannot soften a relation";
  EXPECT_NE(changed("cases", {"x/first"}), "");
  EXPECT_NE(changed("cases", {"x/first", "../second"}), "");
  EXPECT_NE(changed("stages", {"output", "nothing"}), "");
  EXPECT_NE(changed("stages", {"output", "scores"}), "") << "not in order of evaluation";
  EXPECT_NE(changed("exponent", 33), "");
  EXPECT_NE(changed("exponent", 0), "");
  EXPECT_NE(changed("shift", 1), "") << "of another kind";
  EXPECT_NE(changed("more", 1), "");
  EXPECT_NE(refusal_of(good.dump(1)), "");
  EXPECT_NE(refusal_of("{}"), "");
  EXPECT_NE(refusal_of(""), "");
}

TEST(Relation, ParametersMustLieInsideTheShapes) {
  for (const RelationRow& entry : relation_table()) {
    qkcts_shape second = shape;
    Relation relation = relation_of(entry.kind);
    if (entry.kind == RelationKind::batch_position) second.batch = 2;
    if (entry.kind == RelationKind::repeated_heads) second.kv_heads = 2;
    EXPECT_EQ(fault_of(relation, second), "") << entry.name;
    relation.stages |= bit(QKCTS_STAGE_V_NORM);
    EXPECT_NE(fault_of(relation, second), "") << "qwen3_rmsnorm has no stage v_norm";
    if (entry.cases == 2) {
      EXPECT_NE(fault_of(relation_of(entry.kind), second, Format::bfloat16), "");
      second.q_len = 3;
      EXPECT_NE(fault_of(relation_of(entry.kind), second), "") << entry.name;
    }
  }
  Relation relation = relation_of(RelationKind::weight_bound);
  relation.row_bounds.pop_back();
  EXPECT_NE(fault_of(relation), "");
  relation = relation_of(RelationKind::prefix);
  relation.rows = {0, 4};
  EXPECT_NE(fault_of(relation), "") << "there are four rows";
  relation.rows = {1, 1};
  EXPECT_NE(fault_of(relation), "");
  relation.rows = {1};
  relation.from_key = 4;
  EXPECT_NE(fault_of(relation), "");
  relation = relation_of(RelationKind::key_permutation);
  relation.permutation = {2, 2, 1};
  EXPECT_NE(fault_of(relation), "");
  relation.permutation = {1, 0};
  EXPECT_NE(fault_of(relation), "");
  relation = relation_of(RelationKind::batch_position);
  relation.entry = 2;
  EXPECT_NE(fault_of(relation, {2, 2, 1, 2, 3, 4, 5}), "");
  relation = relation_of(RelationKind::score_bound);
  relation.stages = bit(QKCTS_STAGE_OUTPUT);
  EXPECT_NE(fault_of(relation), "") << "a bound of a stage that is not compared";
}

TEST(RelationImage, FollowsKeysHeadsAndEntries) {
  const Contract contract = shipped_contract("qwen3_rmsnorm");
  const RelationCase first{contract.terms, shape, Format::binary32};
  Relation relation = relation_of(RelationKind::key_permutation);
  const RelationImage permuted(relation, first, first);
  // Key 0 of the first case is key 1 of the second.
  EXPECT_EQ(permuted.of(QKCTS_STAGE_SCORES, 3, 0)->column, 1u);
  EXPECT_EQ(permuted.of(QKCTS_STAGE_SCORES, 3, 0)->row, 3u);
  EXPECT_EQ(permuted.of(QKCTS_STAGE_K_NORM, 2, 3)->row, 0u);
  EXPECT_EQ(permuted.of(QKCTS_STAGE_OUTPUT, 1, 4)->column, 4u);

  relation = relation_of(RelationKind::repeated_heads);
  const qkcts_shape wide{2, 4, 4, 2, 3, 4, 5}, narrow{2, 4, 2, 2, 3, 4, 5};
  const RelationImage repeated(relation, {contract.terms, narrow, Format::binary32},
                               {contract.terms, wide, Format::binary32});
  // Key head 1 of entry 1 is read by query head 2: row (1*4 + 2)*3 + 2 of the second.
  EXPECT_EQ(repeated.of(QKCTS_STAGE_K_ROPE, (1 * 2 + 1) * 3 + 2, 0)->row, 20u);
  EXPECT_EQ(repeated.of(QKCTS_STAGE_OUTPUT, 7, 0)->row, 7u);

  relation = relation_of(RelationKind::batch_position);
  const RelationImage moved(relation, first, {contract.terms, {2, 2, 1, 2, 3, 4, 5}, Format::binary32});
  EXPECT_EQ(moved.of(QKCTS_STAGE_LSE, 1, 0)->row, 5u);
  EXPECT_EQ(moved.of(QKCTS_STAGE_K_NORM, 1, 0)->row, 4u);

  relation = relation_of(RelationKind::prefix);
  const RelationImage earlier(relation, first, first);
  EXPECT_TRUE(earlier.of(QKCTS_STAGE_OUTPUT, 3, 0));
  EXPECT_FALSE(earlier.of(QKCTS_STAGE_OUTPUT, 1, 0));
  EXPECT_FALSE(earlier.of(QKCTS_STAGE_K_NORM, 2, 0)) << "key 2 was replaced";

  relation = relation_of(RelationKind::joint_sign);
  const RelationImage negated(relation, first, first);
  EXPECT_TRUE(negated.of(QKCTS_STAGE_Q_ROPE, 0, 0)->negated);
  EXPECT_FALSE(negated.of(QKCTS_STAGE_SCORES, 0, 0)->negated);
}

std::string plan_text(const std::string& contract, const std::string& relations) {
  return R"({"schema": "qkcts-plan/1", "suite": "x", "seed": 1, "groups": [{"contracts": [")" + contract +
         R"("], "families": ["gaussian"], "formats": ["binary32"], "shapes": ["2,4,2,5,9,8,6"], "relations": )" +
         relations + "}]}";
}

TEST(RelationPlan, SaysWhichRelationsAContractAdmits) {
  const Plan plan = plan_from_json(plan_text("qwen3_rmsnorm", R"(["P2", "P3", "batch_position"])"), "plan");
  std::vector<std::string> slugs;
  for (const PlannedCase& planned : plan.cases) slugs.push_back(planned.slug);
  const std::string drawn = "qwen3_rmsnorm/gaussian/binary32_2x4x2x5x9x8x6";
  EXPECT_EQ(slugs, (std::vector<std::string>{drawn, drawn + "_eps_rescaling", drawn + "_shift_seen_before",
                                             drawn + "_shift_seen_after", drawn + "_batch_position_before",
                                             drawn + "_batch_position_after"}));
  ASSERT_EQ(plan.unrelated.size(), 1u);
  EXPECT_EQ(plan.unrelated[0].slug, "p3_common_shift/" + drawn);
  EXPECT_EQ(plan.unrelated[0].reason, "no norm subtracts the mean");
  for (const PlannedCase& planned : plan.cases) EXPECT_EQ(planned.together, drawn);
  EXPECT_NE(plan.cases[1].contract.name, "qwen3_rmsnorm") << "another epsilon, another name";
  EXPECT_EQ(plan.cases[4].shape.batch, 1);
  EXPECT_THROW(plan_from_json(plan_text("qwen3_rmsnorm", R"(["P13"])"), "plan"), InputError);
}

// docs/relations.md prints the table.
TEST(RelationTable, IsTheOneOfTheDocument) {
  const std::string text = read_text_file(QKCTS_SOURCE_DIR "/docs/relations.md");
  for (const RelationRow& entry : relation_table()) {
    const std::string line = "| " + std::string(entry.id) + " | `" + std::string(entry.name) + "` | " +
                             std::string(relation_rule_name(entry.rule)) + " | " + std::string(entry.statement) +
                             " | " + std::string(entry.violation) + " |";
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace qkcts
