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
  const ScoreScale scale{0.25, 4 * u, false};
  const double exact = 16 * q[0] * k[0] * 0.25;
  EXPECT_GT(exact, 30 * u * exact + 32 * 0x1p-126);  // what a bound without input errors grants
  EXPECT_LE(exact, score_budget(q, k, scale, arithmetic));
}

// A temperature by position folded into a subnormal q, and the scale after the dot product: what q loses is multiplied
// by the keys and by the scale.
TEST(BudgetScore, ConstantsMayBeAppliedAtDifferentPlaces) {
  const Profile profile;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  qkcts_logits logits{};
  logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG;
  logits.query_alpha = 0.1;
  logits.query_period = 8192;
  ScoreScale constant;
  constant.tau = 100;
  constant.relative = 4 * u;
  const ScoreScale scale = scale_at_position(constant, logits, 1e6, arithmetic);
  const double factor = scale.tau / 100;
  ASSERT_GT(factor, 1.4);
  const double q = 0x1.0p-149 * 3, k = static_cast<double>(1e10f);
  const double lost = std::fabs(static_cast<double>(static_cast<float>(q * factor)) - q * factor);
  ASSERT_GT(lost, 0x1p-151);
  const double wrong = lost * k * 100;
  EXPECT_LE(wrong, score_budget({q}, {k}, scale, arithmetic));
  ScoreScale as_one = scale;
  as_one.partial = 1;
  EXPECT_GT(wrong, score_budget({q}, {k}, as_one, arithmetic)) << "one constant would not explain it";
}

// 1.2e38 times a temperature of 4.4 overflows before 1e-38 brings it back.
TEST(BudgetScore, ElementsTimesOneOfTheConstantsMayOverflow) {
  const Profile profile;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  ScoreScale scale;
  scale.tau = 0.125 * 4.4;
  EXPECT_TRUE(std::isfinite(score_budget({1.2e38}, {1e-38}, scale, arithmetic)));
  scale.partial = 4.4;
  EXPECT_TRUE(std::isinf(score_budget({1.2e38}, {1e-38}, scale, arithmetic)));
}

// The scale folded into q rounds every element: the error follows the magnitudes, not the cancelled sum.
TEST(BudgetScore, FoldedScaleDoesNotShareTheCancellation) {
  Case c;
  c.shape.head_dim = 128;
  const Profile profile;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  const ScoreScale scale = scale_terms(c, 0, arithmetic);
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
  EXPECT_NEAR(score_budget(q, k, {1, 0, false}, arithmetic) / expected, 1, 1e-6);
}

TEST(BudgetScore, DomainWhereProductsOverflowBeforeTheScale) {
  const BudgetArithmetic arithmetic(Profile{}, all_budget_terms);
  const std::vector<double> q(4, 1e19), k(4, 1e19);
  EXPECT_TRUE(std::isinf(score_budget(q, k, {1e-10, 0, false}, arithmetic)));
  const std::vector<double> smaller(4, 1e18);
  EXPECT_TRUE(std::isfinite(score_budget(smaller, smaller, {1e-10, 0, false}, arithmetic)));
}

}  // namespace
}  // namespace qkcts
