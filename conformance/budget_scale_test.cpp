// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_scale.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;

Profile plain_profile() {
  Profile p;
  p.k_rsqrt = 1;
  p.k_sqrt = p.k_exp = p.k_tanh = p.k_log = p.k_div = 0.5;
  return p;
}

Case learned(const std::vector<double>& values, double cap) {
  Case c;
  c.contract.terms.score.scale_form = QKCTS_SCALE_LEARNED_SCALAR;
  c.contract.terms.logits.scale_axes = values.size() > 1 ? QKCTS_SCALE_PER_HEAD : QKCTS_SCALE_ONE;
  c.contract.terms.logits.scale_exp_cap = cap;
  c.shape.q_heads = static_cast<std::int64_t>(values.size());
  c.inputs.format = Format::binary32;
  Tensor tensor = Tensor::zeros(element_type(Format::binary32), {c.shape.q_heads});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set_pattern(i, encode(Format::binary32, values[i]));
  c.inputs.set(Input::scale, tensor);
  return c;
}

TEST(BudgetScale, EveryHeadHasItsOwn) {
  const BudgetArithmetic arithmetic(Profile{}, all_budget_terms);
  const Case c = learned({2, -3}, 0);
  EXPECT_EQ(scale_terms(c, 0, arithmetic).tau, 2);
  EXPECT_EQ(scale_terms(c, 1, arithmetic).tau, 3);
}

// exp(min(t, cap)): the rounding of a base-2 argument grows with |t|, and so does that of the cap.
TEST(BudgetScale, ExponentialOfALearnedLogarithm) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  double ratio = 0, beyond = 0;
  for (int i = 0; i < 3000; ++i) {
    const float t = 3 + static_cast<float>(i) * 0x1.1p-8f;
    const Case c = learned({static_cast<double>(t)}, 10.1);
    const ScoreScale scale = scale_terms(c, 0, arithmetic);
    const float x = std::min(t, 10.1f);
    const float got = static_cast<float>(std::exp2(static_cast<double>(x * 1.44269504f)));
    const double exact = std::exp(std::min(static_cast<double>(t), 10.1));
    const double wrong = std::fabs(static_cast<double>(got) / exact - 1);
    ASSERT_LE(wrong, scale.relative);
    EXPECT_NEAR(scale.tau / exact, 1, 1e-12);
    ratio = std::max(ratio, wrong / scale.relative);
    beyond = std::max(beyond, wrong / (4 * u));  // one exponential and three products
  }
  EXPECT_GT(beyond, 1);
  EXPECT_GT(ratio, 0.2);
}

TEST(BudgetScale, ExponentialsOutOfRangeAreNotJudged) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  EXPECT_TRUE(scale_terms(learned({89}, 100), 0, arithmetic).domain);
  EXPECT_FALSE(scale_terms(learned({89}, 80), 0, arithmetic).domain);
  EXPECT_TRUE(scale_terms(learned({-110}, 80), 0, arithmetic).domain);  // 0 in binary32
  EXPECT_FALSE(scale_terms(learned({-90}, 80), 0, arithmetic).domain);  // subnormal: a few bits
  EXPECT_GT(scale_terms(learned({-90}, 80), 0, arithmetic).relative, 100 * u);
}

TEST(BudgetScale, ScalesThatAreReadAsZero) {
  Profile flushing = plain_profile();
  flushing.flush_to_zero = flushing.denormals_are_zero = true;
  const BudgetArithmetic arithmetic(flushing, all_budget_terms);
  EXPECT_GE(scale_terms(learned({1e-39}, 0), 0, arithmetic).relative, 1);
  EXPECT_LT(scale_terms(learned({1e-37}, 0), 0, arithmetic).relative, 1e-6);
}

// 1 + alpha ln(1 + n) in binary32.
TEST(BudgetScale, TemperatureByPosition) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  qkcts_logits logits{};
  logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG;
  logits.query_alpha = 0.3;
  logits.query_period = 4;
  logits.query_shift = 1;
  double ratio = 0, beyond = 0;
  for (int position = 0; position < 9000; ++position) {
    const ScoreScale scale = scale_at_position({1, 0, false}, logits, position, arithmetic);
    const double steps = std::floor((position + 1) / 4.0);
    const double exact = 1 + 0.3 * std::log1p(steps);
    const float log = static_cast<float>(std::log(1 + steps));
    const float factor = 1 + 0.3f * log;
    const float q = 1.0f + 0x1.5p-9f;
    const double wrong = std::fabs(static_cast<double>(q * factor) / (static_cast<double>(q) * exact) - 1);
    ASSERT_LE(wrong, scale.relative) << position;
    EXPECT_NEAR(scale.tau, exact, 1e-12 * exact);
    ratio = std::max(ratio, wrong / scale.relative);
    beyond = std::max(beyond, wrong / u);
  }
  EXPECT_GT(beyond, 1);
  EXPECT_GT(ratio, 0.2);
  logits.query_temperature = QKCTS_QUERY_TEMPERATURE_NONE;
  EXPECT_EQ(scale_at_position({1, 0, false}, logits, 5, arithmetic).relative, 0);
}

}  // namespace
}  // namespace qkcts
