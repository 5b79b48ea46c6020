// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_cap.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;

// A cap that binary32 does not hold, and a quotient by reciprocal: four roundings at small scores, not three.
TEST(BudgetCap, CapCountsItsConstantAndTheReciprocal) {
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
    const double d =
        capped_error(terms, static_cast<double>(s), 0, {}, {}, static_cast<double>(exact), arithmetic).error;
    ASSERT_LE(wrong, d) << s;
    beyond = std::max(beyond, wrong / simple);
    ratio = std::max(ratio, wrong / d);
  }
  EXPECT_GT(beyond, 1);
  EXPECT_GT(ratio, 0.2);
}

// At saturation the error of the score disappears, but never below the roundings of the result.
TEST(BudgetCap, CapFlattensTheErrorOfLargeScores) {
  Case c;
  c.contract.terms.score.softcap = 50;
  const BudgetArithmetic arithmetic(Profile{}, all_budget_terms);
  const CapTerms terms = cap_terms(c, arithmetic);
  const double at_zero = capped_error(terms, 0, 1, {}, {}, 0, arithmetic).error;
  const double far = capped_error(terms, 600, 1, {}, {}, 50, arithmetic).error;
  EXPECT_GT(at_zero, 0.99);
  EXPECT_LT(far, 1e-4);
  EXPECT_GT(far, 50 * 9 * u);
}

TEST(BudgetCap, BiasAddsItsOwnRounding) {
  Case c;
  c.contract.terms.score.bias_order = QKCTS_BIAS_AFTER_SOFTCAP;
  const BudgetArithmetic arithmetic(Profile{}, all_budget_terms);
  const CapTerms terms = cap_terms(c, arithmetic);
  // 1000 + 2^-20 rounds to 1000: an error of 2^-20 although the score is exact.
  const CappedError d = capped_error(terms, 0x1p-20, 0, {1000, 0}, {}, 1000 + 0x1p-20, arithmetic);
  EXPECT_GE(d.error, 0x1p-20);
  EXPECT_GT(d.softmax_error, d.error);
}

// A product of slope and distance that cancels with the score: what the sum is off by is what the product is off by.
TEST(BudgetCap, LinearBiasRoundsItsProduct) {
  const BudgetArithmetic arithmetic(Profile{}, all_budget_terms);
  Case c;
  c.contract.terms.logits.alibi = QKCTS_ALIBI_RELATIVE;
  const CapTerms terms = cap_terms(c, arithmetic);
  ASSERT_TRUE(terms.linear);
  double ratio = 0, beyond = 0;
  for (int distance = 1; distance < 3000; ++distance) {
    const float slope = 0.2973018f;
    const float product = slope * static_cast<float>(-distance);
    const double exact_product = -static_cast<double>(slope) * distance;
    const float score = -product * (1 + 0x1p-12f);
    const double exact = static_cast<double>(score) + exact_product;
    const double wrong = std::fabs(static_cast<double>(score + product) - exact);
    const Addend linear = linear_bias_errors(static_cast<double>(slope), Format::binary32, -distance, arithmetic);
    const CappedError d = capped_error(terms, static_cast<double>(score), 0, {}, linear, exact, arithmetic);
    ASSERT_LE(wrong, d.error) << distance;
    ratio = std::max(ratio, wrong / d.error);
    beyond = std::max(beyond, wrong / (2 * u * std::fabs(exact)));
  }
  EXPECT_GT(beyond, 1);  // roundings of the sum alone do not cover it
  EXPECT_GT(ratio, 0.2);
}

// Distances beyond 2^24 are rounded when they become numbers; no distance, no error.
TEST(BudgetCap, LinearBiasOfLongAndNoDistances) {
  const BudgetArithmetic arithmetic(Profile{}, all_budget_terms);
  const auto relative = [&](double distance) {
    const Addend bias = linear_bias_errors(0.3, Format::binary32, distance, arithmetic);
    return bias.error / std::fabs(bias.value);
  };
  EXPECT_LT(relative(0x1p24), 1.01 * u);
  EXPECT_GT(relative(0x1p24 + 1), 1.99 * u);
  EXPECT_EQ(linear_bias_errors(0.3, Format::binary32, 0, arithmetic).error, 0);
  EXPECT_TRUE(std::isinf(linear_bias_errors(3e38, Format::binary32, 2, arithmetic).error));
  Profile narrow;
  narrow.accumulator = Format::binary16;
  const double read = linear_bias_errors(0.3, Format::binary32, 1, BudgetArithmetic(narrow, all_budget_terms)).error;
  EXPECT_GT(read, 0.3 * 1.9 * 0x1p-11);  // read in binary16, then multiplied
}

// Score, tensor and linear bias in the worst order of three: the large ones first, though they cancel.
TEST(BudgetCap, BiasesMayBeAddedInAnyOrder) {
  const BudgetArithmetic arithmetic(Profile{}, all_budget_terms);
  Case c;
  c.contract.terms.score.bias_order = QKCTS_BIAS_AFTER_SOFTCAP;
  c.contract.terms.logits.alibi = QKCTS_ALIBI_LAST_KEY;
  const CapTerms terms = cap_terms(c, arithmetic);
  const float score = 0x1.8p-13f, bias = 4096, linear = -4096;
  const double wrong = std::fabs(static_cast<double>((score + bias) + linear) - static_cast<double>(score));
  ASSERT_GT(wrong, u);
  const CappedError d =
      capped_error(terms, static_cast<double>(score), 0, {4096, 0}, {-4096, 0}, static_cast<double>(score), arithmetic);
  EXPECT_LE(wrong, d.error);
  EXPECT_GT(wrong / d.error, 0.2);
}

}  // namespace
}  // namespace qkcts
