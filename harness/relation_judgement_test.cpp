// SPDX-License-Identifier: Apache-2.0
// The rules of docs/relations.md on outputs written by hand.
#include "harness/relation_judgement.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "conformance/json_schema.hpp"
#include "harness/handmade_case.hpp"
#include "harness/judgement.hpp"
#include "harness/relation_report.hpp"
#include "harness/report_html.hpp"
#include "harness/report_junit.hpp"
#include "harness/sample_record.hpp"

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

AdapterDescription description_with(const std::string& more) {
  return description_from_json(
      R"({"name": "mine", "version": "1", "formats": ["binary32"], "stages": ["output"], "profile": {"binary32": "f32"})" +
          more + "}",
      "describe()");
}
const AdapterDescription bound_by_bits =
    description_with(R"(, "claims": {"bitwise_repeatable": true, "batch_invariant": true})");
const AdapterDescription by_budgets = description_with(R"(, "data_dependent_order": true)");

Relation relation_of(RelationKind kind, StageSet stages = bit(QKCTS_STAGE_OUTPUT)) {
  Relation relation;
  relation.slug = "hand/relation";
  relation.kind = kind;
  relation.stages = stages;
  relation.cases = {"hand/plain"};
  if (row(kind).cases == 2) relation.cases.emplace_back("hand/other");
  return relation;
}

StageBytes output_of(const std::vector<double>& values, qkcts_stage stage = QKCTS_STAGE_OUTPUT) {
  StageBytes bytes;
  bytes[stage] = stage_bytes(Format::binary32, values);
  return bytes;
}

RelationResult judged(const Relation& relation, const StageBytes& first, const StageBytes& second,
                      const AdapterDescription& description = bound_by_bits, const std::string& profile = "f32") {
  const GoldenCase golden = plain_golden_case();
  std::vector<RelationRun> runs = {{golden, first, 0, profile}};
  if (relation.cases.size() == 2) runs.push_back({golden, second, 0, profile});
  return judge_relation(relation, description, runs);
}

const std::vector<double> plain = {2, 3.5, 2, 3.5};

TEST(RelationJudgement, BitsAfterAFactorAndASign) {
  Relation scale = relation_of(RelationKind::value_scale);
  scale.exponent = 2;
  EXPECT_EQ(judged(scale, output_of(plain), output_of({8, 14, 8, 14})).verdict, Verdict::pass);
  const RelationResult off = judged(scale, output_of(plain), output_of({8, 14, 8, 14 + 0x1p-20}));
  EXPECT_EQ(off.verdict, Verdict::fail);
  EXPECT_EQ(off.violated, 1u);
  EXPECT_EQ(off.compared, 4u);
  EXPECT_EQ(off.breach->second.row, 1u);
  EXPECT_EQ(off.breach->due, 14);
  const Relation sign = relation_of(RelationKind::value_sign);
  EXPECT_EQ(judged(sign, output_of({2, 0.0, nan_value, infinity}), output_of({-2, 0.0, nan_value, -infinity})).verdict,
            Verdict::pass)
      << "zeros of either sign, NaNs of any payload";
  EXPECT_EQ(judged(sign, output_of(plain), output_of({-2, -3.5, -2, nan_value})).verdict, Verdict::fail);
  EXPECT_EQ(judged(sign, output_of(plain), output_of(plain)).violated, 4u);
}

// 2^-130 has fewer bits than 2^-128: what a factor of four brings back was never there.
TEST(RelationJudgement, SubnormalOutputsAreLeftToTheBudgets) {
  Relation scale = relation_of(RelationKind::value_scale);
  scale.exponent = 2;
  EXPECT_EQ(judged(scale, output_of({0x1p-130, 3.5, 2, 3.5}), output_of({0x1.8p-128, 14, 8, 14})).verdict,
            Verdict::pass);
  EXPECT_EQ(judged(scale, output_of({0x1p-130, 3.5, 2, 3.5}), output_of({0.5, 14, 8, 14})).verdict, Verdict::fail)
      << "farther off than Delta";
}

TEST(RelationJudgement, WhoseOrderDependsOnTheDataIsJudgedByBudgets) {
  const Relation sign = relation_of(RelationKind::value_sign);
  const StageBytes near = output_of({-2, -3.5, -2, -3.5 - 0x1p-20}), far = output_of({-2, -3.5, -2, -3.5 - 0x1p-18});
  const RelationResult bits = judged(sign, output_of(plain), near);
  EXPECT_EQ(bits.verdict, Verdict::fail);
  EXPECT_EQ(bits.rule, RelationRule::bitwise);
  const RelationResult budgets = judged(sign, output_of(plain), near, by_budgets);
  EXPECT_EQ(budgets.verdict, Verdict::pass);
  EXPECT_EQ(budgets.rule, RelationRule::delta);
  EXPECT_EQ(judged(sign, output_of(plain), far, by_budgets).verdict, Verdict::fail) << "2^-18 > 2 * 2^-20";
  EXPECT_EQ(judged(sign, output_of(plain), near, by_budgets, "absent").verdict, Verdict::mistrusted)
      << "without budgets nothing passes";
  EXPECT_EQ(judged(sign, output_of(plain), near, bound_by_bits, "absent").verdict, Verdict::fail)
      << "bits need no budgets";

  const GoldenCase golden = plain_golden_case();
  const StageBytes first = output_of(plain);
  const std::vector<RelationRun> restless = {{golden, first, bit(QKCTS_STAGE_OUTPUT), "f32"}, {golden, near, 0, "f32"}};
  EXPECT_EQ(binding_rule(sign, description_with(""), restless), RelationRule::delta);
  EXPECT_EQ(binding_rule(sign, bound_by_bits, restless), RelationRule::bitwise) << "it claims to repeat itself";
  const Relation batch = relation_of(RelationKind::batch_position);
  EXPECT_EQ(binding_rule(batch, description_with(""), restless), RelationRule::delta);
  EXPECT_EQ(binding_rule(batch, bound_by_bits, restless), RelationRule::bitwise);
}

TEST(RelationJudgement, WhatWasNeverWrittenIsNoAgreement) {
  StageBytes poison = output_of(plain);
  const std::uint64_t pattern = poison_pattern(Format::binary32);
  std::memcpy(poison[QKCTS_STAGE_OUTPUT].data() + 8, &pattern, 4);
  EXPECT_EQ(judged(relation_of(RelationKind::joint_sign), poison, poison).verdict, Verdict::error_unwritten);
  EXPECT_EQ(judged(relation_of(RelationKind::joint_sign), output_of(plain), {}).verdict, Verdict::skipped)
      << "nothing to compare is no pass";
}

TEST(RelationJudgement, SomethingMustDiffer) {
  const Relation liveness = relation_of(RelationKind::liveness), seen = relation_of(RelationKind::shift_seen);
  EXPECT_EQ(judged(liveness, output_of(plain), output_of(plain)).verdict, Verdict::fail);
  EXPECT_EQ(judged(liveness, output_of(plain), output_of({2, 3.5, 2, 3.5 + 0x1p-21})).verdict, Verdict::pass);
  EXPECT_EQ(judged(seen, output_of(plain), output_of({2, 3.5, 2, 3.5 + 0x1p-21})).verdict, Verdict::fail)
      << "rounding alone tells nothing";
  EXPECT_EQ(judged(seen, output_of(plain), output_of({2, 3.5, 2, 3.5 + 0x1p-18})).verdict, Verdict::pass);
}

TEST(RelationJudgement, BoundsAreWidenedByTheBudget) {
  Relation bound = relation_of(RelationKind::weight_bound, bit(QKCTS_STAGE_PROBS));
  bound.row_bounds = {0.5, 0.5};
  const auto weights = [&](double last) {
    return judged(bound, output_of({0.5, 0.5, 0.5, last}, QKCTS_STAGE_PROBS), {}).verdict;
  };
  EXPECT_EQ(weights(0.5 + 0x1p-21), Verdict::pass);
  EXPECT_EQ(weights(0.5 + 0x1p-19), Verdict::fail);
  EXPECT_EQ(weights(nan_value), Verdict::fail);
  const Relation sums = relation_of(RelationKind::sums_and_hull, bit(QKCTS_STAGE_PROBS) | bit(QKCTS_STAGE_OUTPUT));
  StageBytes outputs = output_of({2, 3.5, 1, 2}, QKCTS_STAGE_OUTPUT);
  outputs[QKCTS_STAGE_PROBS] = stage_bytes(Format::binary32, {0.5, 0.5, 0.25, 0.75});
  EXPECT_EQ(judged(sums, outputs, {}).verdict, Verdict::pass) << "a corner of the hull";
  outputs[QKCTS_STAGE_PROBS] = stage_bytes(Format::binary32, {0.5, 0.5, 0.25, 0.75 - 0x1p-18});
  EXPECT_EQ(judged(sums, outputs, {}).breach->what, "the sum of the row");
  outputs[QKCTS_STAGE_PROBS] = stage_bytes(Format::binary32, {0.5, 0.5, 0.25, 0.75});
  outputs[QKCTS_STAGE_OUTPUT] = stage_bytes(Format::binary32, {2, 3.5, 1 - 0x1p-18, 2});
  const RelationResult outside = judged(sums, outputs, {});
  EXPECT_EQ(outside.verdict, Verdict::fail);
  EXPECT_EQ(outside.breach->due, 1) << "the smaller of the visible values";
}

TEST(RelationJudgement, TemperatureKeepsTheOrderAndEvensOut) {
  const Relation temperature = relation_of(RelationKind::temperature, bit(QKCTS_STAGE_PROBS));
  const auto with = [&](const std::vector<double>& hot) {
    return judged(temperature, output_of({0.75, 0.25, 0.5, 0.5}, QKCTS_STAGE_PROBS), output_of(hot, QKCTS_STAGE_PROBS))
        .verdict;
  };
  EXPECT_EQ(with({0.625, 0.375, 0.5, 0.5}), Verdict::pass);
  EXPECT_EQ(with({0.875, 0.125, 0.5, 0.5}), Verdict::fail) << "sharper";
  EXPECT_EQ(with({0.375, 0.625, 0.5, 0.5}), Verdict::fail) << "reordered";
}

TEST(RelationJudgement, ReferenceAsksNothing) {
  const RelationResult result =
      judged(relation_of(RelationKind::rotation_order), output_of(plain), output_of({0, 0, 0, 0}));
  EXPECT_EQ(result.verdict, Verdict::skipped);
  EXPECT_EQ(result.detail.rfind("proven indistinguishable", 0), 0u) << result.detail;
}

// A record whose only violation is a relation.
RunRecord broken_record() {
  RunRecord record = passing_record();
  Relation liveness = relation_of(RelationKind::liveness);
  record.relations.push_back(judged(liveness, output_of(plain), output_of(plain)));
  record.relations.push_back(
      judged(relation_of(RelationKind::value_sign), output_of(plain), output_of({-2, 1, -2, -3.5})));
  record.relations.push_back(judged(relation_of(RelationKind::joint_sign), output_of(plain), output_of(plain)));
  record.relations.back().slug = "hand/kept";
  return record;
}

TEST(RelationReport, AViolationIsAReproducibleFinding) {
  const RunRecord record = broken_record();
  EXPECT_EQ(exit_code(passing_record()), 0);
  EXPECT_EQ(exit_code(record), 1);
  const std::string text = relation_failure_text(record, record.relations[1]);
  for (const char* part : {"FAIL  hand/relation", "P9 value_sign", "0x40600000", "0x3f800000", "output[b0 h0 t0 c1]",
                           "hand/plain", "hand/other", "due    -3.5", "meaning: negating v did not negate the output",
                           "qkcts run './lib mine.so' hand.h5 --case hand/relation"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  EXPECT_NE(relation_failure_text(record, record.relations[0]).find("accepted and ignored"), std::string::npos);
  EXPECT_EQ(relation_failure_text(record, record.relations[2]), "");
  EXPECT_NE(relation_table_text(record).find("P12 liveness"), std::string::npos) << relation_table_text(record);
  EXPECT_EQ(relation_table_text(passing_record()), "");
}

TEST(RelationReport, EveryReportHoldsThem) {
  const RunRecord record = broken_record();
  const Json json = to_json(record);
  require_schema(json, "run", "run.json");
  EXPECT_EQ(json["summary"]["relations"]["fail"], 2);
  EXPECT_EQ(json["relations"][1]["breach"]["second_bits"], "0x3f800000");
  EXPECT_EQ(json["relations"][2]["breach"], Json());
  const std::string junit = junit_xml(record);
  EXPECT_NE(junit.find("classname=\"hand.relations\" name=\"hand/kept\""), std::string::npos) << junit;
  EXPECT_NE(junit.find("type=\"fail\""), std::string::npos);
  const std::string html = report_html(record);
  EXPECT_NE(html.find("Relations between cases"), std::string::npos);
  EXPECT_NE(html.find("accepted and ignored"), std::string::npos);
  EXPECT_EQ(report_html(passing_record()).find("Relations between cases"), std::string::npos);
}

// A run that judges relations alone conforms by them alone.
TEST(RelationReport, RelationsAloneMakeTheExitCode) {
  RunRecord record = broken_record();
  record.judging = Judging::relations_alone;
  record.cases[0].verdict = Verdict::skipped;
  EXPECT_EQ(exit_code(record), 1);
  record.relations.erase(record.relations.begin(), record.relations.begin() + 2);
  EXPECT_EQ(exit_code(record), 0);
  record.relations[0].verdict = Verdict::not_run;
  EXPECT_EQ(exit_code(record), 5);
}

}  // namespace
}  // namespace qkcts
