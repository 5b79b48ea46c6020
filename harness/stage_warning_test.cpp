// SPDX-License-Identifier: Apache-2.0
#include "harness/stage_warning.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/aggregate.hpp"
#include "harness/handmade_case.hpp"

namespace qkcts {
namespace {

CaseResult owner(std::int64_t keys) {
  CaseResult result;
  result.shape = {1, 1, 1, 1, keys, std::min<std::int64_t>(keys, 64), 64};
  return result;
}

StageResult measured(double ratio, double plain_ratio) {
  StageResult stage;
  stage.verdict = Verdict::pass;
  stage.judgement.emplace();
  stage.judgement->max_ratio = ratio;
  stage.judgement->counts.judged = 1000;
  stage.judgement->mean_ulp = 0.25;
  stage.plain = PlainError{1, 1, 0.25, plain_ratio};
  return stage;
}

bool warns(const StageResult& stage, const CaseResult& result, StageWarning warning) {
  const std::vector<StageWarning> warnings = stage_warnings(stage, result);
  return std::find(warnings.begin(), warnings.end(), warning) != warnings.end();
}

TEST(StageWarning, SquareRootLawNeedsALongSum) {
  EXPECT_EQ(square_root_level(36), 1);
  EXPECT_EQ(square_root_level(1), 1);
  EXPECT_EQ(square_root_level(3600), 0.1);
  const qkcts_shape shape = {1, 1, 1, 1, 4096, 64, 32};
  EXPECT_EQ(longest_sum(QKCTS_STAGE_OUTPUT, shape), 4096);
  EXPECT_EQ(longest_sum(QKCTS_STAGE_SCORES, shape), 64);
  EXPECT_EQ(longest_sum(QKCTS_STAGE_V_NORM, shape), 32);
}

TEST(StageWarning, LargeIsBeyondTheLawAndBeyondThePlainEvaluation) {
  EXPECT_TRUE(warns(measured(0.2, 0.04), owner(3600), StageWarning::large));
  EXPECT_FALSE(warns(measured(0.09, 0.001), owner(3600), StageWarning::large));  // within the law
  EXPECT_FALSE(warns(measured(0.2, 0.06), owner(3600), StageWarning::large));    // the plain evaluation is as bad
  EXPECT_FALSE(warns(measured(0.9, 0.001), owner(16), StageWarning::large));     // no long sum
  StageResult without = measured(0.2, 0.04);
  without.plain.reset();
  EXPECT_FALSE(warns(without, owner(3600), StageWarning::large));
}

TEST(StageWarning, BiasedLeansToOneSide) {
  StageResult stage = measured(0.1, 0.1);
  EXPECT_FALSE(warns(stage, owner(64), StageWarning::biased));
  stage.judgement->signed_mean_ulp = -0.2;
  EXPECT_TRUE(warns(stage, owner(64), StageWarning::biased));
  stage.judgement->signed_mean_ulp = 0;
  stage.judgement->outward_mean_ulp = -0.2;
  EXPECT_TRUE(warns(stage, owner(64), StageWarning::biased));
  stage.judgement->counts.judged = 20;
  EXPECT_FALSE(warns(stage, owner(64), StageWarning::biased));  // too few to say
}

// The mean is that of one element near 0.
TEST(StageWarning, OneElementIsNoBias) {
  StageResult stage = measured(0.1, 0.1);
  stage.judgement->signed_mean_ulp = 0.25;
  stage.judgement->max_ulp = 250;
  EXPECT_FALSE(warns(stage, owner(64), StageWarning::biased));
}

TEST(StageWarning, OfAStageOnlyWhereMostCasesLean) {
  StageAggregate line;
  line.cases = 20;
  line.warnings = {{StageWarning::large, 1}, {StageWarning::biased, 10}};
  EXPECT_EQ(notable_warnings(line).size(), 1u);
  line.warnings[StageWarning::biased] = 11;
  EXPECT_EQ(notable_warnings(line).size(), 2u);
  line.cases = 3;
  line.warnings[StageWarning::biased] = 3;
  EXPECT_FALSE(notable_warnings(line).contains(StageWarning::biased));
}

TEST(StageWarning, FailuresAreNoWarnings) {
  StageResult stage = measured(0.2, 0.04);
  stage.verdict = Verdict::fail;
  EXPECT_TRUE(stage_warnings(stage, owner(3600)).empty());
}

// Values of both signs, each a little nearer to 0: the signed mean is 0, and only the outward one shows the truncation.
TEST(StageWarning, TruncationShowsInTheOutwardMean) {
  GoldenCase golden = plain_golden_case();
  ProvenStage& values = golden.stages[QKCTS_STAGE_OUTPUT].values;
  values.hi = {2, -2, 2, -2};
  const std::vector<double> got = {2 - 0x1p-23, -2 + 0x1p-23, 2 - 0x1p-23, -2 + 0x1p-23};
  const StageJudgement j = judge_stage(golden, QKCTS_STAGE_OUTPUT, 0, stage_bytes(Format::binary32, got));
  EXPECT_EQ(j.signed_mean_ulp, 0);
  EXPECT_LT(j.outward_mean_ulp, 0);
  EXPECT_EQ(-j.outward_mean_ulp, j.mean_ulp);
}

}  // namespace
}  // namespace qkcts
