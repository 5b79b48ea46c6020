// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_sink.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "conformance/budget_softmax.hpp"
#include "conformance/plain_profile.hpp"

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;

float exp_float(float x) {
  return static_cast<float>(std::exp(static_cast<double>(x)));
}

// o / (1 + e^(z - L)) with L near 1000: L is rounded to 2^-14.6, and that moves the factor far more than roundings do.
TEST(BudgetSink, FactorTakesOverTheErrorOfTheLogSumExp) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  double ratio = 0, beyond = 0;
  for (int i = 0; i < 2000; ++i) {
    const double lse = 1000 + i * 0.00137;
    const double lse_error = 2 * u * 1024;
    const auto computed = static_cast<float>(lse + lse_error);
    // Both scaled by log2 e before they are subtracted.
    const float exponent = 1001.0f * 1.44269504f - computed * 1.44269504f;
    const float got = 0.75f / (1 + static_cast<float>(std::exp2(static_cast<double>(exponent))));
    const double exact = 0.75 / (1 + std::exp(1001 - lse));
    const double wrong = std::fabs(static_cast<double>(got) - exact);
    const double d = sink_factor_terms(1001, 0, lse, lse_error, arithmetic).moved(0.75, 0, arithmetic);
    ASSERT_LE(wrong, d);
    ratio = std::max(ratio, wrong / d);
    beyond = std::max(beyond, wrong / (6 * u * exact));
  }
  EXPECT_GT(beyond, 20);
  EXPECT_GT(ratio, 0.2);
}

// e^(z - L) overflows in binary32, where the exact factor is 2^-130: the output may come out as 0.
TEST(BudgetSink, FactorMayComeOutAsZero) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  const double logit = 90.2;
  const SinkFactor factor = sink_factor_terms(logit, 0, 0, 0, arithmetic);
  const double exact = 1e10 / (1 + std::exp(logit));
  EXPECT_EQ(1e10f / (1 + exp_float(90.2f)), 0);
  EXPECT_GT(exact, 1e10 * 0x1p-149);  // more than a quantum of the factor
  EXPECT_LE(exact, factor.moved(1e10, 0, arithmetic));
  const SinkFactor below = sink_factor_terms(80, 0, 0, 0, arithmetic);
  EXPECT_LT(below.relative, 1e-3);
}

TEST(BudgetSink, FactorOfAFarSinkDoesNothing) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  const SinkFactor factor = sink_factor_terms(-60, 0, 30, 1e-4, arithmetic);
  EXPECT_LE(factor.relative, 5 * u);  // addition, reciprocal, product
}

// e^88 / (1 + e^88) by a reciprocal, flushing to zero: 1 / (1 + e^88) is 2^-126.96 and becomes 0, and so does the
// output, though the exact factor is 1.
TEST(BudgetSink, ReciprocalOfALargeWeightMayFlush) {
  Profile flushing = plain_profile();
  flushing.flush_to_zero = flushing.denormals_are_zero = true;
  const float weight = exp_float(88.0f);
  const float reciprocal = 1 / (1 + weight);
  ASSERT_LT(reciprocal, 0x1p-126f);
  const BudgetArithmetic arithmetic(flushing, all_budget_terms);
  EXPECT_GE(sink_factor_terms(-88, 0, 0, 0, arithmetic).moved(1, 0, arithmetic), 1);
  // Gradual underflow keeps all but a few roundings of it, and below 2^126 nothing is lost.
  const BudgetArithmetic gradual(plain_profile(), all_budget_terms);
  const double wrong = std::fabs(static_cast<double>(weight * reciprocal) - 1);
  EXPECT_LE(wrong, sink_factor_terms(-88, 0, 0, 0, gradual).moved(1, 0, gradual));
  EXPECT_LT(sink_factor_terms(-60, 0, 0, 0, arithmetic).moved(1, 0, arithmetic), 10 * u);
}

// Two keys and a sink, in binary32: the sink is a key, and one that may be left out of the maximum.
TEST(BudgetSink, ColumnIsOneMoreKey) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  for (int i = 0; i < 4000; ++i) {
    const float a = 0.25f + static_cast<float>(i) * 0x1.1p-11f, b = -0.5f,
                z = 3.0f + static_cast<float>(i % 97) * 0.01f;
    const auto e = [](float x) { return std::exp(static_cast<long double>(x)); };
    const long double total = e(a) + e(b) + e(z);
    const auto lse = static_cast<double>(std::log(total));
    const double above = static_cast<double>(z) - static_cast<double>(std::max(a, b));
    const SinkKey sink = sink_key(static_cast<double>(z), 0, 1, lse, above, 0, arithmetic);
    EXPECT_NEAR(sink.probability, static_cast<double>(e(z) / total), 1e-12);
    const double scores[] = {static_cast<double>(a), static_cast<double>(b), sink.score};
    const double errors[] = {0, 0, sink.error};
    const double p[] = {static_cast<double>(e(a) / total), static_cast<double>(e(b) / total), sink.probability};
    SoftmaxKeys row;
    row.scores = scores;
    row.errors = errors;
    row.probabilities = p;
    row.lse = lse;
    row.slots = 4;
    row.above = above;
    const RowWeights weights = row_weights(row, arithmetic);
    const std::vector<double> d = probability_errors(weights, arithmetic);
    const double lse_d = lse_error(weights, lse, false, arithmetic);
    for (const float shift : {std::max(a, b), z}) {  // the sink left out of the maximum, and not
      const float wa = exp_float(a - shift), wb = exp_float(b - shift), wz = exp_float(z - shift);
      const float sum = wa + wb + wz;
      const double wrong = std::fabs(static_cast<double>(wa / sum) - p[0]);
      ASSERT_LE(wrong, d[0]);
      const double got = static_cast<double>(shift + static_cast<float>(std::log(static_cast<double>(sum))));
      ASSERT_LE(std::fabs(got - lse), lse_d);
    }
  }
}

// A sink that a base-2 kernel scales apart from scores whose scale holds log2 e: its constant does not cancel.
TEST(BudgetSink, ScaledApartFromTheScores) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  const double folded = 40.0 * 1.4426950408889634;  // the scaled score, as exact as it gets
  double beyond = 0;
  for (int i = 0; i < 500; ++i) {
    const float z = 40.0f + static_cast<float>(i) * 0x1p-12f;
    const float scaled = z * 1.44269504f;
    const double moved =
        std::fabs((static_cast<double>(scaled) - folded) * std::log(2.0) - (static_cast<double>(z) - 40));
    const SinkKey key = sink_key(static_cast<double>(z), 0, 1, 41, 0, 0, arithmetic);
    ASSERT_LE(moved, key.error);
    beyond = std::max(beyond, moved / (3 * u * (static_cast<double>(z) - 40 + 0.01)));
  }
  EXPECT_GT(beyond, 1);
}

TEST(BudgetSink, ThatOverflowsLeftOutOfTheMaximumIsNotJudged) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  EXPECT_TRUE(std::isinf(sink_key(95, 0, 1, 95, 95, 0, arithmetic).error));
  EXPECT_TRUE(std::isfinite(sink_key(95, 0, 1, 95, 0, 0, arithmetic).error));
  // A lazy shift 5.5 below the maximum brings a sink 84 above it to 89.5, beyond binary32.
  EXPECT_TRUE(std::isfinite(sink_key(84, 0, 1, 84, 84, 0, arithmetic).error));
  EXPECT_TRUE(std::isinf(sink_key(84, 0, 1, 84, 84, 5.5, arithmetic).error));
  EXPECT_TRUE(std::isinf(sink_key(3e38, 0, 1, 3e38, 0, 0, arithmetic).error)) << "times log2 e it overflows";
}

// Base 2: a log-sum-exp that is formed in base e and divided by ln 2.
TEST(BudgetSink, LogSumExpInBaseTwo) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  double ratio = 0;
  for (int i = 1; i < 4000; ++i) {
    const float a = static_cast<float>(i) * 0x1.3p-7f, b = a - 1;
    const float sum = 1 + exp_float(b - a);
    const float natural = a + static_cast<float>(std::log(static_cast<double>(sum)));
    const float got = natural / 0.693147182f;
    const double lse = static_cast<double>(a) + std::log1p(std::exp(-1.0));
    const double scores[] = {static_cast<double>(a), static_cast<double>(b)}, errors[] = {0, 0};
    const double p[] = {1 / (1 + std::exp(-1.0)), 1 / (1 + std::exp(1.0))};
    SoftmaxKeys row;
    row.scores = scores;
    row.errors = errors;
    row.probabilities = p;
    row.lse = lse;
    row.slots = 4;
    const double d = lse_error(row_weights(row, arithmetic), lse, true, arithmetic) / std::log(2.0);
    const double wrong = std::fabs(static_cast<double>(got) - lse / std::log(2.0));
    ASSERT_LE(wrong, d);
    ratio = std::max(ratio, wrong / d);
  }
  EXPECT_GT(ratio, 0.05);  // merges of parts, which do not happen here, are most of it
}

}  // namespace
}  // namespace qkcts
