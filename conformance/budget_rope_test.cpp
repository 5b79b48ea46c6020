// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_rope.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;

VectorError vector_of(double a, double b) {
  VectorError v;
  v.magnitude = {std::fabs(a), std::fabs(b)};
  v.error = {0, 0};
  return v;
}

TEST(BudgetRope, LanesOfAPair) {
  qkcts_rope rope{};
  rope.rotated = 4;
  rope.pairing = QKCTS_HALF_SPLIT;
  rope.span = QKCTS_SPAN_LAST;
  EXPECT_EQ(rope_pairs(rope, 10), 2);
  EXPECT_EQ(rope_pair(rope, 10, 1).a, 7);
  EXPECT_EQ(rope_pair(rope, 10, 1).b, 9);
  rope.pairing = QKCTS_INTERLEAVED;
  rope.span = QKCTS_SPAN_FIRST;
  EXPECT_EQ(rope_pair(rope, 10, 1).a, 2);
  EXPECT_EQ(rope_pair(rope, 10, 1).b, 3);
}

// A product that is flushed: a relative bound sees nothing of it.
TEST(BudgetRope, ProductsMayUnderflow) {
  Profile flushing;
  flushing.flush_to_zero = flushing.denormals_are_zero = true;
  VectorError v = vector_of(0, 0x1p-100);
  rotate_errors(v, {0, 1}, {1.0, 0x1p-30, 0, 0}, BudgetArithmetic(flushing, all_budget_terms));
  const double exact = 0x1p-130;  // computed: 0
  EXPECT_GT(exact, 2 * u * exact);
  EXPECT_LE(exact, v.error[0]);
}

// Cancelling: a cos - b sin nearly 0, so the error is that of the products.
TEST(BudgetRope, IsApproachedWhereTheRotationCancels) {
  double best = 0;
  for (int i = 0; i < 20000; ++i) {
    const float a = 1 + static_cast<float>(i) * 0x1.35p-17f;
    const float c = 0x1.6a09e6p-1f + static_cast<float>(i % 97) * 0x1.1p-12f;
    const float s = 0x1.5bd5c6p-1f;
    const float b = a * c / s;
    VectorError v = vector_of(static_cast<double>(a), static_cast<double>(b));
    rotate_errors(v, {0, 1}, {static_cast<double>(c), static_cast<double>(s), 0, 0},
                  BudgetArithmetic(Profile{}, all_budget_terms));
    const double exact =
        static_cast<double>(a) * static_cast<double>(c) - static_cast<double>(b) * static_cast<double>(s);
    const double wrong = std::fabs(static_cast<double>(a * c - b * s) - exact);
    ASSERT_LE(wrong, v.error[0]);
    best = std::max(best, wrong / v.error[0]);
  }
  EXPECT_GT(best, 0.2);
}

TEST(BudgetRope, CarriesErrorsOfItsInput) {
  VectorError v = vector_of(3, 4);
  v.error = {0.5, 0.25};
  rotate_errors(v, {0, 1}, {0.6, 0.8, 0, 0}, BudgetArithmetic(Profile{}, 0));  // no rounding at all
  EXPECT_NEAR(v.error[0], 0.5 * 0.6 + 0.25 * 0.8, 1e-12);
  EXPECT_NEAR(v.error[1], 0.25 * 0.6 + 0.5 * 0.8, 1e-12);
}

TEST(BudgetRope, DomainWhereAProductOverflows) {
  VectorError v = vector_of(3e38, 3e38);
  rotate_errors(v, {0, 1}, {0.8, 0.6, 0, 0}, BudgetArithmetic(Profile{}, all_budget_terms));
  EXPECT_TRUE(v.domain);
}

}  // namespace
}  // namespace qkcts
