// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_range.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "conformance/budget_norm.hpp"

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;

BudgetArithmetic plain() {
  return {Profile{}, all_budget_terms};
}

// A clamp never enlarges an error, and forgets it where the number lies beyond the bound for certain.
TEST(BudgetRange, ClampPassesErrorsOn) {
  const Clamp clamp = clamp_terms(2, plain());
  EXPECT_EQ(clamp.error, 0);
  EXPECT_EQ(clamp.moved(1, 0.25), 0.25);
  EXPECT_EQ(clamp.moved(1.9, 0.25), 0.25);  // it may lie on either side
  EXPECT_EQ(clamp.moved(-3, 0.25), 0);
  EXPECT_EQ(clamp.moved(3, 0.25, 0.8), 0.25);  // not known well enough to be sure
  EXPECT_EQ(clamp.value(-3), -2);
  EXPECT_EQ(Clamp{}.moved(1e30, 5), 5);
}

// A bound that binary32 does not hold is off itself: the clamped number is not 0.1.
TEST(BudgetRange, ClampConstantsMayBeRounded) {
  const Clamp clamp = clamp_terms(0.1, plain());
  const double wrong = std::fabs(static_cast<double>(std::min(7.0f, 0.1f)) - 0.1);
  ASSERT_GT(wrong, 0);
  EXPECT_LE(wrong, clamp.moved(7, 0));
  EXPECT_GT(wrong / clamp.moved(7, 0), 0.2);
  EXPECT_EQ(clamp.moved(0.05, 0), 0);
  Profile flushing;
  flushing.flush_to_zero = flushing.denormals_are_zero = true;
  const Clamp tiny = clamp_terms(1e-39, {flushing, all_budget_terms});
  EXPECT_GE(tiny.moved(1, 0), 1e-39);  // read as 0
  const Clamp huge = clamp_terms(1e300, plain());
  EXPECT_EQ(huge.moved(1, u), u);  // infinity in binary32: never met
}

TEST(BudgetRange, ClampKeepsTheCommonFactorWhereItIsNotMet) {
  VectorError vector;
  vector.magnitude = {1, 3};
  vector.error = {0, 0};
  vector.common = 0x1p-10;
  const std::array<double, 2> before = {1, -3}, blur = {0, 0};
  VectorError loose = vector;
  clamp_errors(loose, before, blur, clamp_terms(4, plain()));
  EXPECT_EQ(loose.common, vector.common);
  VectorError tight = vector;
  clamp_errors(tight, before, blur, clamp_terms(2, plain()));
  EXPECT_EQ(tight.common, 0);
  EXPECT_GE(tight.error[0], 0x1p-10);  // the other element carries its share of the factor
  EXPECT_LT(tight.error[0], 0x1.0001p-10);
  EXPECT_EQ(tight.error[1], 0);
}

// A constant that is rounded, then multiplied: two roundings, not one.
TEST(BudgetRange, FactorCountsItsConstant) {
  const BudgetArithmetic arithmetic = plain();
  const ConstantFactor factor = factor_terms(1.7, arithmetic);
  double beyond = 0, ratio = 0;
  for (int i = 1; i < 5000; ++i) {
    const float x = static_cast<float>(i) * 0x1.0137p-9f;
    const double exact = static_cast<double>(x) * 1.7;
    const double wrong = std::fabs(static_cast<double>(x * 1.7f) - exact);
    ASSERT_LE(wrong, factor.moved(static_cast<double>(x), 0, arithmetic));
    beyond = std::max(beyond, wrong / (u * exact));
    ratio = std::max(ratio, wrong / factor.moved(static_cast<double>(x), 0, arithmetic));
  }
  EXPECT_GT(beyond, 1);
  EXPECT_GT(ratio, 0.2);
  EXPECT_FALSE(factor_terms(0, arithmetic).exists());
  EXPECT_FALSE(factor_terms(1, arithmetic).exists());
  EXPECT_EQ(factor_terms(0.5, arithmetic).relative, 0);
}

qkcts_norm rms() {
  qkcts_norm norm{};
  norm.applied = 1;
  norm.statistic = QKCTS_MEAN_SQUARE;
  norm.root = QKCTS_INSIDE_ROOT;
  return norm;
}

// The factor beside 1/root and gain: a legal order of four factors, one rounding more than the norm alone counts.
TEST(BudgetRange, FactorIsOneOfTheFactorsOfANorm) {
  Profile profile;
  profile.k_rsqrt = 1;
  profile.k_sqrt = profile.k_div = 0.5;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  qkcts_norm norm = rms();
  norm.gain = QKCTS_GAIN_W;
  const ConstantFactor constant = factor_terms(1.7, arithmetic);
  double ratio = 0, beyond = 0;
  for (int trial = 1; trial < 4000; ++trial) {
    const float x = 1 + static_cast<float>(trial) * 0x1.3p-13f;
    const float gain = 0x1.2b7p+0f + static_cast<float>(trial % 61) * 0x1.7p-12f;
    const std::array<double, 1> values = {static_cast<double>(x)}, errors = {0};
    const NormStatistics s = norm_statistics(norm, values, errors, 0, arithmetic);
    const double exact = 1.7 * static_cast<double>(gain);  // |x| / |x| = 1
    const float root = std::sqrt(x * x);
    const float got = ((x * gain) * 1.7f) / root;
    ElementParameters p;
    p.gain = static_cast<double>(gain);
    p.factor = constant;
    const double own = norm_element_error(norm, s, values[0], 0, p, 0, arithmetic);
    const double delta = s.common * exact + (1 + s.common) * own;
    p.factor = {};
    const double without = 1.7 * norm_element_error(norm, s, values[0], 0, p, 0, arithmetic);
    const double wrong = std::fabs(static_cast<double>(got) - exact);
    ASSERT_LE(wrong, delta);
    ratio = std::max(ratio, wrong / delta);
    beyond = std::max(beyond, own / without);
  }
  EXPECT_GT(ratio, 0.2);
  EXPECT_GT(beyond, 1.3);
}

// c r g f with c r below the normal range, though the result is ordinary: two factors multiply what was flushed.
TEST(BudgetRange, FlushedProductsMeetTwoFurtherFactors) {
  Profile flushing;
  flushing.flush_to_zero = flushing.denormals_are_zero = true;
  const BudgetArithmetic arithmetic(flushing, all_budget_terms);
  qkcts_norm norm = rms();
  norm.gain = QKCTS_GAIN_W;
  const std::array<double, 2> values = {0x1p-60, 0x1p+60}, errors = {0, 0};
  const NormStatistics s = norm_statistics(norm, values, errors, 0, arithmetic);
  ElementParameters p;
  p.gain = 0x1p+40;
  p.factor = factor_terms(0x1p+40, arithmetic);
  // 2^-60 / 2^59.5 = 2^-119.5 survives; were x 2^-70, it would not: c r = 2^-129.5 -> 0, exact 2^-49.5.
  const double exact = 0x1p-70 / s.root * 0x1p+80;
  const double own = norm_element_error(norm, s, 0x1p-70, 0, p, 0, arithmetic);
  EXPECT_LE(exact, own);
  const double one_factor = 0x1p-126 * (1 + std::max({0x1p+40, s.root, 1 / s.root})) * 1.01;
  EXPECT_GT(exact, one_factor);  // what is left after three factors
}

TEST(BudgetRange, FactorsThatOverflowAreNotJudged) {
  const BudgetArithmetic arithmetic = plain();
  const std::array<double, 1> values = {1e-20}, errors = {0};
  const NormStatistics s = norm_statistics(rms(), values, errors, 0, arithmetic);
  ElementParameters p;
  EXPECT_FALSE(norm_element_overflows(s, 1e-20, 0, p, arithmetic));
  p.factor = factor_terms(1e25, arithmetic);  // times 1/root = 1e20, though x / root is 1
  EXPECT_TRUE(norm_element_overflows(s, 1e-20, 0, p, arithmetic));
}

}  // namespace
}  // namespace qkcts
