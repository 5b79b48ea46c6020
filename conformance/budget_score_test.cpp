// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_score.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;

VectorError vector_of(const std::vector<double>& x, const BudgetArithmetic& arithmetic) {
  VectorError v;
  for (const double value : x) {
    v.magnitude.push_back(std::fabs(value));
    v.error.push_back(arithmetic.operand_error(value, Format::binary32));
  }
  return v;
}

double score_budget(const std::vector<double>& q, const std::vector<double>& k, const ScoreScale& scale,
                    const BudgetArithmetic& arithmetic) {
  KeyPanel keys(static_cast<std::int64_t>(q.size()), 1);
  keys.set(0, vector_of(k, arithmetic));
  double s = 0;
  for (std::size_t d = 0; d < q.size(); ++d) s += q[d] * k[d];
  const std::vector<double> exact{s * scale.tau};
  std::vector<double> error(1);
  score_errors(vector_of(q, arithmetic), keys, scale, exact, 0, 1, arithmetic, error);
  return error[0];
}

// Subnormal operands read as 0 lose the whole score.
TEST(BudgetScore, OperandsMayBeReadAsZero) {
  Profile flushing;
  flushing.flush_to_zero = flushing.denormals_are_zero = true;
  const BudgetArithmetic arithmetic(flushing, all_budget_terms);
  const double tiny = static_cast<double>(1e-39f);
  const std::vector<double> q(16, tiny), k(16, static_cast<double>(1e37f));
  const ScoreScale scale{0.25, 4 * u};
  const double exact = 16 * q[0] * k[0] * 0.25;
  EXPECT_GT(exact, 30 * u * exact + 32 * 0x1p-126);  // what a bound without input errors grants
  EXPECT_LE(exact, score_budget(q, k, scale, arithmetic));
}

// The scale folded into q rounds every element: the error follows the magnitudes, not the cancelled sum.
TEST(BudgetScore, FoldedScaleDoesNotShareTheCancellation) {
  Case c;
  c.shape.head_dim = 128;
  const Profile profile;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  const ScoreScale scale = scale_terms(c, arithmetic);
  EXPECT_NEAR(scale.tau, std::sqrt(1.0 / 128), 1e-16);
  std::vector<double> q(128), k(128);
  double beyond = 0;
  for (int trial = 0; trial < 200; ++trial) {
    double sum = 0;
    long double exact = 0;
    const float tau = static_cast<float>(1 / std::sqrt(128.0));
    for (std::size_t d = 0; d < 128; ++d) {
      q[d] = static_cast<double>(1 + static_cast<float>((d * 37 + static_cast<std::size_t>(trial) * 101) % 509) *
                                         0x1.3p-12f);
      k[d] = d % 2 == 0 ? 1 : -q[d - 1] / q[d] * (1 + 0x1p-12);
      k[d] = static_cast<double>(static_cast<float>(k[d]));
      sum += static_cast<double>(static_cast<float>(q[d]) * tau) * k[d];  // all but the folding is exact
      exact += static_cast<long double>(q[d]) * k[d];
    }
    exact /= std::sqrt(128.0L);
    const double wrong = static_cast<double>(std::fabs(sum - exact));
    ASSERT_LE(wrong, score_budget(q, k, scale, arithmetic));
    beyond = std::max(beyond, wrong / (3 * u * static_cast<double>(std::fabs(exact))));
  }
  EXPECT_GT(beyond, 1);  // three roundings of the score itself do not cover it
}

// binary64: A(1 + 2u...) - A by subtraction is noise; the budget must not be.
TEST(BudgetScore, Binary64BudgetIsNotNoise) {
  Profile profile;
  profile.storage = profile.accumulator = Format::binary64;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  const std::vector<double> q(128, 1), k(128, 1);
  const double expected = 128 * 0x1p-53 * 128;
  EXPECT_NEAR(score_budget(q, k, {1, 0}, arithmetic) / expected, 1, 1e-6);
}

// A cap that binary32 does not hold, and a quotient by reciprocal: four roundings at small scores, not three.
TEST(BudgetScore, CapCountsItsConstantAndTheReciprocal) {
  Profile profile;
  profile.k_tanh = profile.k_div = 0.5;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  Case c;
  c.contract.terms.score.softcap = 63.9;
  const CapTerms terms = cap_terms(c, arithmetic);
  EXPECT_GT(terms.cap_error, 0);
  const float cap = 63.9f;
  const float inverse = 1 / cap;
  double beyond = 0;
  double ratio = 0;
  for (int i = 1; i < 60000; ++i) {
    const float s = static_cast<float>(i) * 0x1.0007p-13f;
    const auto z = static_cast<double>(s * inverse);
    const float got = static_cast<float>(std::tanh(z)) * cap;
    const long double exact = 63.9L * std::tanh(static_cast<long double>(s) / 63.9L);
    const double wrong = static_cast<double>(std::fabs(static_cast<long double>(got) - exact));
    const double x = static_cast<double>(s) / 63.9;
    const double slope = 1 / (std::cosh(x) * std::cosh(x));
    const double simple = 2 * u * static_cast<double>(exact) + slope * u * static_cast<double>(s);
    const double d = capped_error(terms, static_cast<double>(s), 0, 0, 0, static_cast<double>(exact), arithmetic).error;
    ASSERT_LE(wrong, d) << s;
    beyond = std::max(beyond, wrong / simple);
    ratio = std::max(ratio, wrong / d);
  }
  EXPECT_GT(beyond, 1);
  EXPECT_GT(ratio, 0.2);
}

// At saturation the error of the score disappears, but never below the roundings of the result.
TEST(BudgetScore, CapFlattensTheErrorOfLargeScores) {
  Case c;
  c.contract.terms.score.softcap = 50;
  const BudgetArithmetic arithmetic(Profile{}, all_budget_terms);
  const CapTerms terms = cap_terms(c, arithmetic);
  const double at_zero = capped_error(terms, 0, 1, 0, 0, 0, arithmetic).error;
  const double far = capped_error(terms, 600, 1, 0, 0, 50, arithmetic).error;
  EXPECT_GT(at_zero, 0.99);
  EXPECT_LT(far, 1e-4);
  EXPECT_GT(far, 50 * 9 * u);
}

TEST(BudgetScore, BiasAddsItsOwnRounding) {
  Case c;
  c.contract.terms.score.bias_order = QKCTS_BIAS_AFTER_SOFTCAP;
  const BudgetArithmetic arithmetic(Profile{}, all_budget_terms);
  const CapTerms terms = cap_terms(c, arithmetic);
  // 1000 + 2^-20 rounds to 1000: an error of 2^-20 although the score is exact.
  const CappedError d = capped_error(terms, 0x1p-20, 0, 1000, 0, 1000 + 0x1p-20, arithmetic);
  EXPECT_GE(d.error, 0x1p-20);
  EXPECT_GT(d.softmax_error, d.error);
}

TEST(BudgetScore, DomainWhereProductsOverflowBeforeTheScale) {
  const BudgetArithmetic arithmetic(Profile{}, all_budget_terms);
  const std::vector<double> q(4, 1e19), k(4, 1e19);
  EXPECT_TRUE(std::isinf(score_budget(q, k, {1e-10, 0}, arithmetic)));
  const std::vector<double> smaller(4, 1e18);
  EXPECT_TRUE(std::isfinite(score_budget(smaller, smaller, {1e-10, 0}, arithmetic)));
}

}  // namespace
}  // namespace qkcts
