// SPDX-License-Identifier: Apache-2.0
// Inputs on which a simpler bound rejects a correct norm. Each test runs legal binary32 arithmetic, shows that its
// error exceeds the simpler formula, and that the budget covers it.
#include "conformance/budget_norm.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/plain_profile.hpp"

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;
constexpr double smallest = 0x1p-126;

qkcts_norm norm_terms(qkcts_statistic statistic, qkcts_root root, double eps) {
  qkcts_norm norm{};
  norm.applied = 1;
  norm.statistic = statistic;
  norm.root = root;
  norm.eps = eps;
  return norm;
}

float flushed(float x) {
  return std::fabs(x) < 0x1p-126f ? 0.0f : x;
}

struct Exact {
  std::vector<long double> c;
  long double root = 0;
};

Exact exact_norm(const qkcts_norm& norm, const std::vector<double>& x) {
  Exact exact;
  const auto n = static_cast<long double>(x.size());
  long double mean = 0;
  for (const double value : x) mean += value / n;
  long double t = 0;
  for (const double value : x) {
    exact.c.push_back(norm.center != 0 ? value - mean : static_cast<long double>(value));
    t += exact.c.back() * exact.c.back();
  }
  if (norm.statistic == QKCTS_MEAN_SQUARE) t /= n;
  switch (norm.root) {
    case QKCTS_INSIDE_ROOT:
      exact.root = std::sqrt(t + norm.eps);
      break;
    case QKCTS_OUTSIDE_ROOT:
      exact.root = std::sqrt(t) + norm.eps;
      break;
    case QKCTS_MAX_ROOT:
      exact.root = std::max<long double>(std::sqrt(t), norm.eps);
      break;
    default:
      exact.root = std::sqrt(std::max<long double>(t, norm.eps));
  }
  return exact;
}

// Budget of element `i`: common factor and own part together.
double budget(const qkcts_norm& norm, const std::vector<double>& x, std::size_t i, const ElementParameters& parameters,
              const Profile& profile, std::vector<double> input_error = {}) {
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  if (input_error.empty()) input_error.assign(x.size(), 0);
  const NormStatistics statistics = norm_statistics(norm, x, input_error, 0, arithmetic);
  if (statistics.domain) return std::numeric_limits<double>::infinity();
  const Exact exact = exact_norm(norm, x);
  const double y = static_cast<double>(exact.c[i] / exact.root * parameters.gain) + parameters.bias;
  const double own = norm_element_error(norm, statistics, x[i], input_error[i], parameters, y, arithmetic);
  return norm_keeps_factor(norm, statistics) ? statistics.common * std::fabs(y) + (1 + statistics.common) * own : own;
}

double simple_relative(std::size_t n) {
  return (static_cast<double>(n) / 2 + 5) * u;
}

// The vector comes out of a rotation that cancels: its error has nothing to do with the size of what is left.
TEST(BudgetNorm, CoversErrorsOfItsInputs) {
  std::vector<double> x(64), error(64), computed(64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = computed[i] = (i % 2 == 0 ? 1.0 : -0.75);
  const float a = 1.1f, c = 0x1.921fb6p-1f, b = 1.1000001f * 0x1.921fb6p-1f, s = 1.0f;
  x[0] = static_cast<double>(a) * static_cast<double>(c) - static_cast<double>(b) * static_cast<double>(s);
  computed[0] = static_cast<double>(a * c - b * s);
  error[0] = 2 * u * 2 * std::fabs(static_cast<double>(a) * static_cast<double>(c));
  const qkcts_norm norm = norm_terms(QKCTS_MEAN_SQUARE, QKCTS_INSIDE_ROOT, 1e-6);
  const Exact exact = exact_norm(norm, x);
  const double y = static_cast<double>(exact.c[0] / exact.root);
  const double got = static_cast<double>(static_cast<float>(computed[0]) * (1 / static_cast<float>(exact.root)));
  const double wrong = std::fabs(got - y);
  EXPECT_GT(wrong, simple_relative(64) * std::fabs(y));
  EXPECT_LE(wrong, budget(norm, x, 0, {}, plain_profile(), error));
}

// n products of a sum of squares may flush one by one: n lambda, not lambda.
TEST(BudgetNorm, EveryProductOfASumOfSquaresMayFlush) {
  std::vector<double> x(64, static_cast<double>(0x1.fffp-64f));
  x[0] = 0x1p-58;
  const qkcts_norm norm = norm_terms(QKCTS_SUM_SQUARE, QKCTS_INSIDE_ROOT, 0);
  float t = 0;
  for (const double value : x) t = t + flushed(static_cast<float>(value) * static_cast<float>(value));
  const Exact exact = exact_norm(norm, x);
  const double y = static_cast<double>(x[0] / exact.root);
  const double wrong = std::fabs(x[0] / std::sqrt(static_cast<double>(t)) - y);
  const double a = static_cast<double>(exact.root * exact.root);
  EXPECT_GT(wrong, (simple_relative(64) + smallest / a) * y);
  EXPECT_LE(wrong, budget(norm, x, 0, {}, flushing_profile()));
}

// Of a mean square the products may flush, and then the quotient by n.
TEST(BudgetNorm, MeanSquareMayFlushTwice) {
  std::vector<double> x(64, static_cast<double>(0x1.ffffp-64f));
  x[0] = static_cast<double>(0x1.fbp-61f);  // 62.9 * 2^-126: the quotient by 64 flushes
  const qkcts_norm norm = norm_terms(QKCTS_MEAN_SQUARE, QKCTS_INSIDE_ROOT, 5 * smallest);
  float t = 0;
  for (const double value : x) t = t + flushed(static_cast<float>(value) * static_cast<float>(value));
  t = flushed(t / 64);
  EXPECT_EQ(t, 0);
  const Exact exact = exact_norm(norm, x);
  const double y = static_cast<double>(x[0] / exact.root);
  const double wrong = std::fabs(x[0] / std::sqrt(static_cast<double>(t) + norm.eps) - y);
  const double a = static_cast<double>(exact.root * exact.root);
  EXPECT_GT(wrong, (simple_relative(64) + smallest / a / 2) * y);
  EXPECT_LE(wrong, budget(norm, x, 0, {}, flushing_profile()));
}

// Squares in the subnormal range, under a root that no epsilon steadies.
TEST(BudgetNorm, UnderflowEntersTheRootAlsoWhereEpsilonStandsOutside) {
  for (const qkcts_root root : {QKCTS_OUTSIDE_ROOT, QKCTS_MAX_ROOT}) {
    const std::vector<double> x = {static_cast<double>(1e-20f), static_cast<double>(1.1e-20f),
                                   static_cast<double>(0.9e-20f), static_cast<double>(1e-20f)};
    const qkcts_norm norm = norm_terms(QKCTS_SUM_SQUARE, root, 0);
    float t = 0;
    for (const double value : x) t = t + static_cast<float>(value) * static_cast<float>(value);
    const Exact exact = exact_norm(norm, x);
    const double y = static_cast<double>(x[0] / exact.root);
    const double wrong = std::fabs(static_cast<double>(static_cast<float>(x[0]) / std::sqrt(t)) - y);
    EXPECT_GT(wrong, simple_relative(4) * y) << root;
    EXPECT_LE(wrong, budget(norm, x, 0, {}, plain_profile())) << root;
  }
}

// d = sqrt(t) + eps with an eps that binary32 does not hold, and a gain 1 + w: five roundings, not four.
TEST(BudgetNorm, CountsEpsilonAndOnePlusW) {
  const std::vector<double> x = {0x1.0bb548p-23, 0, 0, 0};
  qkcts_norm norm = norm_terms(QKCTS_MEAN_SQUARE, QKCTS_OUTSIDE_ROOT, 0x1.01abab178e16ap+0);
  norm.gain = QKCTS_GAIN_ONE_PLUS_W;
  const double w = 0x1.06cc4p-6;
  ElementParameters parameters;
  parameters.gain = 1 + w;
  const Exact exact = exact_norm(norm, x);
  const long double y = exact.c[0] / exact.root * (1 + static_cast<long double>(w));
  const float root = std::sqrt(static_cast<float>(x[0]) * static_cast<float>(x[0]) / 4) + static_cast<float>(norm.eps);
  const float gain = 1 + static_cast<float>(w);
  double wrong = 0;
  // Every association of x, 1/d and 1 + w.
  for (const float got : {static_cast<float>(x[0]) / root * gain, static_cast<float>(x[0]) * gain / root,
                          static_cast<float>(x[0]) * (gain / root), static_cast<float>(x[0]) * (1 / root) * gain,
                          static_cast<float>(x[0]) * (gain * (1 / root))}) {
    wrong = std::max(wrong, static_cast<double>(std::fabs(static_cast<long double>(got) - y)));
  }
  const double two_roundings = 2 * u * static_cast<double>(y);  // division and product, all that a short count sees
  EXPECT_GT(wrong, two_roundings);
  EXPECT_LE(wrong, budget(norm, x, 0, parameters, plain_profile()));
}

// The product of 1/d and the gain underflows although the result does not.
TEST(BudgetNorm, GainAndRootMayUnderflowTogether) {
  const std::vector<double> x(4, 0x1p60);
  qkcts_norm norm = norm_terms(QKCTS_MEAN_SQUARE, QKCTS_INSIDE_ROOT, 1e-6);
  norm.gain = QKCTS_GAIN_W;
  ElementParameters parameters;
  parameters.gain = 0x1p-70;
  const float r = 0x1p-60f;
  const double got = static_cast<double>(static_cast<float>(x[0]) * flushed(r * 0x1p-70f));
  EXPECT_EQ(got, 0);
  const double y = 0x1p-70;
  EXPECT_GT(y, simple_relative(4) * y + smallest);
  EXPECT_LE(y, budget(norm, x, 0, parameters, flushing_profile()));
}

// |mean| far above the spread: linearised forms turn negative or meaningless, endpoints stay finite.
TEST(BudgetNorm, IllConditionedCentringStaysFinite) {
  std::vector<double> x(64, 1000);
  x[5] = static_cast<double>(1000.01f);
  qkcts_norm norm = norm_terms(QKCTS_MEAN_SQUARE, QKCTS_INSIDE_ROOT, 1e-6);
  norm.center = 1;
  float sum = 0;
  for (const double value : x) sum += static_cast<float>(value);
  const float mean = sum / 64;
  float t = 0;
  for (const double value : x) t += (static_cast<float>(value) - mean) * (static_cast<float>(value) - mean);
  const Exact exact = exact_norm(norm, x);
  const double linear = 64 * u * 1000 * 1000 / (2 * static_cast<double>(exact.root * exact.root));
  EXPECT_GT(linear, 1);  // 1 - linear would be a negative divisor
  for (const std::size_t i : {std::size_t{0}, std::size_t{5}}) {
    const double got = static_cast<double>((static_cast<float>(x[i]) - mean) / std::sqrt(t / 64 + 1e-6f));
    const double d = budget(norm, x, i, {}, plain_profile());
    EXPECT_TRUE(std::isfinite(d));
    EXPECT_LE(std::fabs(got - static_cast<double>(exact.c[i] / exact.root)), d);
  }
}

// Running updates: the textbook bound n u sqrt(1 + mean^2/var) of the variance fails for three numbers.
TEST(BudgetNorm, RunningVarianceOfThreeNumbers) {
  const std::vector<double> x = {0x1.2fa8d6p+0, 0x1.a337d8p-1, -0x1.768904p-1};
  qkcts_norm norm = norm_terms(QKCTS_MEAN_SQUARE, QKCTS_INSIDE_ROOT, 0);
  norm.center = 1;
  float mean = static_cast<float>(x[0]);
  float squares = 0;
  for (int k = 1; k < 3; ++k) {
    const float difference = static_cast<float>(x[static_cast<std::size_t>(k)]) - mean;
    mean = mean + difference / static_cast<float>(k + 1);
    squares = squares + difference * (static_cast<float>(x[static_cast<std::size_t>(k)]) - mean);
  }
  const double variance = static_cast<double>(squares / 3);
  const Exact exact = exact_norm(norm, x);
  const auto t = static_cast<double>(exact.root * exact.root);
  const double mu = (x[0] + x[1] + x[2]) / 3;
  EXPECT_GT(std::fabs(variance - t), 3 * u * std::sqrt(1 + mu * mu / t) * t);
  for (std::size_t i = 0; i < 3; ++i) {
    const double got = (x[i] - static_cast<double>(mean)) / std::sqrt(variance);
    EXPECT_LE(std::fabs(got - static_cast<double>(exact.c[i] / exact.root)), budget(norm, x, i, {}, plain_profile()));
  }
}

// An absorbed tail reaches most of the bound: one square is 1, the others are half an ulp of it.
TEST(BudgetNorm, IsApproachedByAnAbsorbedTail) {
  std::vector<double> x(128, static_cast<double>(0x1.fep-13f));
  x[0] = 1;
  const qkcts_norm norm = norm_terms(QKCTS_MEAN_SQUARE, QKCTS_INSIDE_ROOT, 1e-6);
  float t = 0;
  for (const double value : x) t += static_cast<float>(value) * static_cast<float>(value);
  const Exact exact = exact_norm(norm, x);
  const double got = static_cast<double>(1 / std::sqrt(t / 128 + 1e-6f));
  const double ratio = std::fabs(got - static_cast<double>(1 / exact.root)) / budget(norm, x, 0, {}, plain_profile());
  EXPECT_LE(ratio, 1);
  EXPECT_GE(ratio, 0.5);
}

TEST(BudgetNorm, DomainWhereTheStatisticOverflowsOrVanishes) {
  const qkcts_norm norm = norm_terms(QKCTS_MEAN_SQUARE, QKCTS_INSIDE_ROOT, 0);
  EXPECT_TRUE(std::isinf(budget(norm, std::vector<double>(4, 1.3e19), 0, {}, plain_profile())));
  EXPECT_TRUE(std::isinf(budget(norm, std::vector<double>(4, 0), 0, {}, plain_profile())));
  EXPECT_TRUE(std::isfinite(budget(norm, std::vector<double>(4, 1e18), 0, {}, plain_profile())));
}

}  // namespace
}  // namespace qkcts
