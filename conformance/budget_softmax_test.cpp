// SPDX-License-Identifier: Apache-2.0
// Rows on which a simpler bound rejects a correct softmax; see budget_norm_test.cpp for the pattern.
#include "conformance/budget_softmax.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "conformance/plain_profile.hpp"

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;

// Exact row, budgets included.
struct Row {
  std::vector<double> s, errors, p;
  double lse = 0;

  explicit Row(std::vector<double> scores) : s(std::move(scores)), errors(s.size(), 0.0) {
    const double m = *std::max_element(s.begin(), s.end());
    long double sum = 0;
    for (const double x : s) sum += std::exp(static_cast<long double>(x) - m);
    for (const double x : s) p.push_back(static_cast<double>(std::exp(static_cast<long double>(x) - m) / sum));
    lse = static_cast<double>(m + std::log(sum));
  }

  RowWeights weights(const BudgetArithmetic& arithmetic, double blocks = 1) const {
    SoftmaxKeys row;
    row.scores = s;
    row.errors = errors;
    row.probabilities = p;
    row.lse = lse;
    row.blocks = blocks;
    row.slots = static_cast<double>(s.size());
    return row_weights(row, arithmetic);
  }
};

float exp_float(float x) {
  return static_cast<float>(std::exp(static_cast<double>(x)));
}

// Shift far from the row maximum: the exponent is rounded against the shift, not against the distance of two scores.
TEST(BudgetSoftmax, ShiftMayStandFarFromTheMaximum) {
  Profile profile = plain_profile();
  profile.shift_slack = 61;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  double beyond_p = 0, beyond_lse = 0;
  for (int i = 0; i < 200; ++i) {
    const float a = 0.3f + static_cast<float>(i) * 0x1.1p-20f;
    const Row row({static_cast<double>(a), 0.125});
    const float shift = 60.3125f;
    const float wa = exp_float(a - shift), wb = exp_float(0.125f - shift);
    const double p = static_cast<double>(wa / (wa + wb));
    const double lse = static_cast<double>(shift + static_cast<float>(std::log(static_cast<double>(wa + wb))));
    const RowWeights w = row.weights(arithmetic);
    const std::vector<double> d = probability_errors(w, arithmetic);
    ASSERT_LE(std::fabs(p - row.p[0]), d[0]);
    const double wrong = std::fabs(lse - row.lse);
    ASSERT_LE(wrong, lse_error(w, row.lse, false, arithmetic));
    // Without the shift: three roundings of the distance, one exponential, sum, quotient.
    const double x = std::fabs(row.s[0] - row.s[1]);
    beyond_p = std::max(beyond_p, std::fabs(p - row.p[0]) / (row.p[0] * ((3 * x + 1) * u * (1 - row.p[0]) + 4 * u)));
    beyond_lse = std::max(beyond_lse, wrong / ((3 * x + 3) * u + 3 * u * std::log(2.0) + u * row.lse));
  }
  EXPECT_GT(beyond_p, 1);
  EXPECT_GT(beyond_lse, 1);
}

// A weight in the subnormal range of a function that is off by two quanta there.
TEST(BudgetSoftmax, FunctionsAreOffByQuantaWhereTheirResultIsSubnormal) {
  Profile profile = plain_profile();
  profile.k_exp = 2;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  const Row row({0, -100});
  const double p = static_cast<double>(exp_float(-100)) + 2 * 0x1p-149;
  const double wrong = std::fabs(p - row.p[1]);
  EXPECT_GT(wrong, (3 * 100 + 10) * u * row.p[1] + 0x1p-149);
  EXPECT_LE(wrong, probability_errors(row.weights(arithmetic), arithmetic)[1]);
}

// One visible key in each of 40 blocks: 39 rescalings, not ceil(40/16).
TEST(BudgetSoftmax, ScatteredKeysRescaleOncePerBlock) {
  Profile profile = plain_profile();
  profile.k_exp = 8;
  profile.online_block = 16;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  std::vector<double> s(40);
  for (std::size_t j = 0; j < s.size(); ++j) s[j] = static_cast<double>(j) * 0x1p-9;
  const Row row(s);
  float shift = static_cast<float>(s[0]);
  float sum = 1;
  for (std::size_t j = 1; j < s.size(); ++j) {
    const float next = static_cast<float>(s[j]);
    const auto alpha = static_cast<float>(std::exp(s[j - 1] - s[j]) * (1 + 15 * u));
    sum = sum * alpha + 1;
    shift = next;
  }
  const double lse = static_cast<double>(shift) + std::log(static_cast<double>(sum));
  const double wrong = std::fabs(lse - row.lse);
  const double with_three = (1 + 3) * (16 * u + u) + 40 * u + 4 * u * row.lse;
  EXPECT_GT(wrong, with_three);
  EXPECT_LE(wrong, lse_error(row.weights(arithmetic, 40), row.lse, false, arithmetic));
}

// The row sum taken over weights as they are stored.
TEST(BudgetSoftmax, RowSumMayComeFromStoredWeights) {
  Profile profile = plain_profile();
  profile.storage = Format::bfloat16;
  profile.probability_storage = Format::bfloat16;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  std::vector<double> s(16, std::log(0.5 * (1 + 0x1.02p-8)));
  s[0] = 0;
  const Row row(s);
  float sum = 0;
  for (const double x : s) {
    sum += static_cast<float>(decode(Format::bfloat16, encode(Format::bfloat16, std::exp(x))));
  }
  const double wrong = std::fabs(std::log(static_cast<double>(sum)) - row.lse);
  EXPECT_GT(wrong, 100 * (16 + 10) * u);
  const double d = lse_error(row.weights(arithmetic), row.lse, false, arithmetic);
  EXPECT_LE(wrong, d);
  EXPECT_GT(wrong / d, 0.5);
}

// p = 0 times e^800 must not be NaN; nothing known of a weight is a finite budget of the whole range.
TEST(BudgetSoftmax, HopelessExponentsStayFinite) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  Row row({0, -2000, -3});
  row.errors = {1, 800, 0.5};
  const RowWeights w = row.weights(arithmetic);
  EXPECT_TRUE(w.unbounded);
  for (const double d : probability_errors(w, arithmetic)) {
    EXPECT_TRUE(std::isfinite(d));
    EXPECT_GE(d, 0.04);
  }
  EXPECT_NEAR(lse_error(w, row.lse, false, arithmetic), 800, 1);
}

// A saturated row: the sum loses at most what the other keys hold, however many there are.
TEST(BudgetSoftmax, SumOfASaturatedRowIsKnownWell) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  std::vector<double> s(1000, -30);
  s[0] = 0;
  const RowWeights w = Row(s).weights(arithmetic);
  EXPECT_LT(w.sum_inverse, 4 * u);  // two of them are for rescaling
  std::vector<double> flat(1000, 0);
  EXPECT_GT(Row(flat).weights(arithmetic).sum_inverse, 999 * u);
}

// Absorbed tail: each small weight is half an ulp of the sum and disappears.
TEST(BudgetSoftmax, SaturatedSumIsApproached) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  std::vector<double> s(64, std::log(0.99 * u));
  s[0] = 0;
  const Row row(s);
  const double l = std::exp(row.lse);
  const RowWeights w = row.weights(arithmetic);
  const double ratio = (l - 1) / l / (w.sum_inverse - w.rescale);  // computed: 1
  EXPECT_LE(ratio, 1);
  EXPECT_GT(ratio, 0.9);
}

// A probability formed afresh from a log-sum-exp near 200: |L| does not cancel against the score.
TEST(BudgetSoftmax, ProbabilityFromTheLogSumExp) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  double beyond = 0;
  for (int i = 0; i < 100; ++i) {
    const float top = 200.1f + static_cast<float>(i) * 0.37f;
    const Row row({static_cast<double>(top), static_cast<double>(top) - 20});
    const auto lse = static_cast<float>(row.lse);
    constexpr float log2_e = 0x1.715476p+0f;
    const double p = std::exp2(static_cast<double>(std::fma(top, log2_e, -(lse * log2_e))));
    const double wrong = std::fabs(p - row.p[0]);
    ASSERT_LE(wrong, probability_errors(row.weights(arithmetic), arithmetic)[0]);
    beyond = std::max(beyond, wrong / (8 * u));
  }
  EXPECT_GT(beyond, 1);  // what a saturated row would be granted if its weights had to agree
}

TEST(BudgetSoftmax, DomainWhereWeightsOverflow) {
  Profile profile = plain_profile();
  profile.shift_slack = 89;  // e^89 leaves binary32
  EXPECT_TRUE(Row({0, 1}).weights(BudgetArithmetic(profile, all_budget_terms)).domain);
  profile.shift_slack = 12;  // e^12 leaves binary16
  EXPECT_FALSE(Row({0, 1}).weights(BudgetArithmetic(profile, all_budget_terms)).domain);
  profile.probability_storage = Format::binary16;
  EXPECT_TRUE(Row({0, 1}).weights(BudgetArithmetic(profile, all_budget_terms)).domain);
}

}  // namespace
}  // namespace qkcts
