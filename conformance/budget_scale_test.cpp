// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_scale.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/machine_profile.hpp"
#include "conformance/plain_profile.hpp"

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;

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
  EXPECT_LT(scale_terms(learned({1e-30}, 0), 0, arithmetic).relative, 1e-6);  // no product of it comes near
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

// 1 + alpha ln(max((p + shift) / period, 1)): near 1 the logarithm is small, and what its quotient is off by is not.
TEST(BudgetScale, TemperatureByTheRatioOfPositions) {
  const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  qkcts_logits logits{};
  logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG_RATIO;
  logits.query_alpha = 64;
  logits.query_period = 49;
  logits.query_shift = 1;
  double ratio = 0, beyond = 0;
  for (int position = 0; position < 6000; ++position) {
    const ScoreScale scale = scale_at_position({1, 0, false}, logits, position, arithmetic);
    const double quotient = (position + 1) / 49.0;
    const double log = std::log(std::max(quotient, 1.0));
    const double exact = 1 + 64 * log;
    const float computed = std::max(static_cast<float>(position + 1) * (1.0f / 49.0f), 1.0f);
    const float factor = 1 + 64 * static_cast<float>(std::log(static_cast<double>(computed)));
    const double wrong = std::fabs(static_cast<double>(factor) / exact - 1);
    ASSERT_LE(wrong, scale.relative) << position;
    EXPECT_NEAR(scale.tau, exact, 1e-12 * exact);
    ratio = std::max(ratio, wrong / scale.relative);
    beyond = std::max(beyond, wrong * exact / (4 * u * 64 * log + 2 * u * exact));  // of a logarithm of an exact number
  }
  EXPECT_GT(beyond, 1);
  EXPECT_GT(ratio, 0.2);
}

// A coefficient that the accumulator cannot hold is 0 there, and the factor 1: no reason to judge nothing.
TEST(BudgetScale, CoefficientsBelowTheFormatLeaveOne) {
  qkcts_logits logits{};
  logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG;
  logits.query_period = 4;
  for (const char* name : {"f32", "f32_ftz"}) {
    const BudgetArithmetic arithmetic(shipped_profile(name), all_budget_terms);
    logits.query_alpha = 1e-300;
    const ScoreScale tiny = scale_at_position({1, 0, false}, logits, 1000, arithmetic);
    EXPECT_FALSE(tiny.domain) << name;
    EXPECT_LT(tiny.relative, 8 * u) << name;
    logits.query_alpha = 1e38;  // the control: beyond the range with the logarithm
    EXPECT_TRUE(scale_at_position({1, 0, false}, logits, 1000, arithmetic).domain) << name;
  }
}

// Below the period the factor is 1 whatever the quotient is off by; at it, a quotient may come out above 1.
TEST(BudgetScale, RatiosBelowOneAreClamped) {
  Profile profile = plain_profile();
  profile.k_div = 1;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  qkcts_logits logits{};
  logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG_RATIO;
  logits.query_alpha = 1000;
  logits.query_period = 5;
  EXPECT_LE(scale_at_position({1, 0, false}, logits, 4, arithmetic).relative, 4 * u);
  const float reciprocal = std::nextafter(1.0f / 5.0f, 1.0f);  // one ulp too large
  const float factor = 1 + 1000 * std::log(std::max(5.0f * reciprocal, 1.0f));
  const double at = scale_at_position({1, 0, false}, logits, 5, arithmetic).relative;
  EXPECT_GT(static_cast<double>(factor) - 1, 1000 * u);
  EXPECT_LE(static_cast<double>(factor) - 1, at);
}

}  // namespace
}  // namespace qkcts
