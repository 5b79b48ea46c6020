// SPDX-License-Identifier: Apache-2.0
// Relations from a plan into a file and back, each with a neighbour that breaks it on the proven values.
#include <gtest/gtest.h>

#include <algorithm>

#include "vectors/corpus_reader.hpp"
#include "vectors/corpus_writer.hpp"
#include "vectors/generate_corpus.hpp"
#include "vectors/relation_proof.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts {
namespace {

constexpr const char* plan = R"({"schema": "qkcts-plan/1", "suite": "x", "seed": 5, "groups": [
  {"contracts": ["qwen3_rmsnorm"], "families": ["eps_edge"], "formats": ["binary32"], "shapes": ["2,4,2,3,6,8,6"],
   "relations": ["P2", "P8", "P9", "P10", "P11"]},
  {"contracts": ["flax_qk_layernorm", "diffusers_l2"], "families": ["gaussian"], "formats": ["binary32"],
   "shapes": ["2,4,2,3,6,8,6"], "relations": ["P1", "P3", "P4", "P6", "P9"]},
  {"contracts": ["clause_bias_additive", "plain_sdpa_temperature"], "families": ["gaussian"], "formats": ["binary32"],
   "shapes": ["1,2,1,3,6,8,6"], "relations": ["P5", "P12"]}]})";

struct Made {
  TemporaryFolder folder;
  std::string path = folder.file("relations.h5");
  GenerateReport report = generate_corpus(plan_from_json(plan, "plan"), path, {2});
  CorpusReader reader{path};
};

const Made& made() {
  static const Made once;
  return once;
}

std::string contradiction_of(const Relation& relation, const GoldenCase& first, const GoldenCase& second) {
  return relation_contradiction(relation, first, row(relation.kind).cases == 2 ? &second : nullptr);
}

TEST(RelationCorpus, HoldsWhatThePlanAsksFor) {
  EXPECT_TRUE(made().report.refused.empty()) << made().report.refused[0].slug << made().report.refused[0].reason;
  EXPECT_EQ(made().reader.relations().size(), made().report.relations);
  EXPECT_EQ(made().reader.info().format_version, 4);
  std::vector<RelationKind> kinds;
  for (const Relation& relation : made().reader.relations()) kinds.push_back(relation.kind);
  for (const RelationRow& entry : relation_table()) {
    if (entry.kind == RelationKind::shift_seen || entry.kind == RelationKind::rotation_order) continue;
    EXPECT_NE(std::find(kinds.begin(), kinds.end(), entry.kind), kinds.end()) << entry.name;
  }
}

// The values of the file keep to each relation; a second case that was not made from the first does not.
TEST(RelationCorpus, ProvenValuesKeepToThem) {
  for (const Relation& relation : made().reader.relations()) {
    const GoldenCase first = made().reader.read(relation.cases.front());
    GoldenCase second = made().reader.read(relation.cases.back());
    EXPECT_EQ(contradiction_of(relation, first, second), "") << relation.slug;
    if (row(relation.kind).rule == RelationRule::differ || row(relation.kind).rule == RelationRule::apart) {
      EXPECT_NE(contradiction_of(relation, first, first), "") << relation.slug << ": equal, so nothing differs";
      continue;
    }
    // One element that is not what it was.
    for (const qkcts_stage stage : {QKCTS_STAGE_OUTPUT, QKCTS_STAGE_PROBS, QKCTS_STAGE_SCORES, QKCTS_STAGE_CAPPED}) {
      if ((relation.stages & bit(stage)) == 0) continue;
      ProvenStage& values = second.stages[stage].values;
      for (std::size_t i = 0; i < values.hi.size(); ++i)
        if (values.rule[i] == ElementRule::budget) values.hi[i] = 1e6;
    }
    EXPECT_NE(contradiction_of(relation, row(relation.kind).cases == 2 ? first : second, second), "") << relation.slug;
  }
}

TEST(RelationCorpus, TheFileDoesNotDependOnTheThreads) {
  const TemporaryFolder folder;
  EXPECT_EQ(generate_corpus(plan_from_json(plan, "plan"), folder.file("one.h5"), {1}).digest, made().report.digest);
  EXPECT_EQ(file_bytes(folder.file("one.h5")), file_bytes(made().path));
}

std::string reading_fault(const TemporaryFolder& folder, GoldenCase golden, const Relation& relation) {
  try {
    CorpusWriter writer(folder.file("bad.h5"), {"x", "", 1});
    writer.add(golden);
    writer.add(relation);
    writer.finish();
    CorpusReader(folder.file("bad.h5"));
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

// A file that says of its cases what they are not.
TEST(RelationCorpus, RelationsThatDoNotFitAreRefused) {
  const TemporaryFolder folder;
  const GoldenCase golden = sample_golden("vit22b_rms_uncentered", "gaussian", Format::binary32, "1,2,1,3,4,8,6");
  Relation relation;
  relation.slug = "p6/x";
  relation.kind = RelationKind::sums_and_hull;
  relation.cases = {golden.input.slug};
  relation.stages = bit(QKCTS_STAGE_PROBS) | bit(QKCTS_STAGE_OUTPUT);
  EXPECT_EQ(reading_fault(folder, golden, relation), "");
  relation.cases = {"absent/case"};
  EXPECT_NE(reading_fault(folder, golden, relation).find("absent/case"), std::string::npos);
  relation.cases = {golden.input.slug};
  relation.stages |= bit(QKCTS_STAGE_Q_ROPE);
  EXPECT_NE(reading_fault(folder, golden, relation).find("stages"), std::string::npos) << "it does not rotate";
  relation.stages = bit(QKCTS_STAGE_PROBS);
  relation.kind = RelationKind::weight_bound;
  relation.row_bounds = {0.5};
  EXPECT_NE(reading_fault(folder, golden, relation).find("row_bounds"), std::string::npos);
  relation.kind = RelationKind::sums_and_hull;
  EXPECT_NE(reading_fault(folder, golden, relation).find("no use for row_bounds"), std::string::npos);
}

}  // namespace
}  // namespace qkcts
