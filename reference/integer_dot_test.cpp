// SPDX-License-Identifier: Apache-2.0
#include "reference/integer_dot.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace qkcts {
namespace {

using Number = Enclosure<77>;

struct Vectors {
  std::vector<Real> lower, upper;
  std::vector<ScaledVector::Ends> ends() const {
    std::vector<ScaledVector::Ends> result;
    for (std::size_t i = 0; i < lower.size(); ++i) result.push_back({lower[i].get(), upper[i].get()});
    return result;
  }
};

// Entries of 120 bits and any sign over 2^-spread .. 1, widened by 2^-100 of themselves if `width`.
Vectors random_vectors(std::mt19937_64& random, std::size_t count, int spread, bool width) {
  Vectors result;
  for (std::size_t i = 0; i < count; ++i) {
    Real x(120, static_cast<double>(random() >> 11) * 0x1p-53 + 0x1p-60);
    mpfr_add_d(x.get(), x.get(), static_cast<double>(random() >> 11) * 0x1p-110, MPFR_RNDN);
    mpfr_mul_2si(x.get(), x.get(), -static_cast<long>(random() % static_cast<unsigned>(spread + 1)), MPFR_RNDN);
    if (random() % 2 == 0) mpfr_neg(x.get(), x.get(), MPFR_RNDN);
    if (random() % 11 == 0) mpfr_set_zero(x.get(), 1);
    Real y(x);
    if (width) {
      Real step(120, 0x1p-100);
      mpfr_add(y.get(), y.get(), step.get(), MPFR_RNDU);
    }
    result.lower.push_back(x);
    result.upper.push_back(y);
  }
  return result;
}

Rational exact_dot(const std::vector<Real>& x, const std::vector<Real>& y) {
  Rational sum(0);
  for (std::size_t i = 0; i < x.size(); ++i) sum += rational_of(x[i].get()) * rational_of(y[i].get());
  return sum;
}

bool contains(const Number& x, const Rational& q) {
  return rational_of(lower(x)) <= q && q <= rational_of(upper(x));
}

double width_of(const Number& x) {
  Real width(53);
  mpfr_sub(width.get(), upper(x), lower(x), MPFR_RNDU);
  return mpfr_get_d(width.get(), MPFR_RNDU);
}

TEST(IntegerDot, EnclosesEveryChoiceWithinTheEnds) {
  std::mt19937_64 random(1);
  for (const int limbs : {2, 3, 5, 9}) {
    for (int repeat = 0; repeat < 200; ++repeat) {
      const std::size_t count = 1 + random() % 70;
      const Vectors x = random_vectors(random, count, repeat % 150, repeat % 3 != 0);
      const Vectors y = random_vectors(random, count, repeat % 90, repeat % 3 == 1);
      ScaledVector a;
      ScaledVector b;
      a.assign(x.ends(), limbs);
      b.assign(y.ends(), limbs);
      Number result;
      set_dot(result, a, b);
      for (const auto* left : {&x.lower, &x.upper})
        for (const auto* right : {&y.lower, &y.upper}) EXPECT_TRUE(contains(result, exact_dot(*left, *right)));
      EXPECT_LT(width_of(result), static_cast<double>(count) * 0x1p-97);
    }
  }
}

TEST(IntegerDot, TheCheckNoticesAForgottenRadius) {
  std::mt19937_64 random(2);
  const Vectors x = random_vectors(random, 50, 10, true);
  const Vectors points{x.lower, x.lower};
  ScaledVector a;
  a.assign(points.ends(), 5);
  Number result;
  set_dot(result, a, a);
  EXPECT_TRUE(contains(result, exact_dot(x.lower, x.lower)));
  EXPECT_FALSE(contains(result, exact_dot(x.upper, x.upper)));
}

TEST(IntegerDot, PointsThatFitAreExact) {
  ScaledVector a;
  ScaledVector b;
  const double x[] = {1.5, -0x1p-30, 0.0, 3.0};
  const double y[] = {2.0, 0x1p-29, 7.0, -1.0};
  a.assign(x, 2);
  b.assign(y, 2);
  Number result;
  set_dot(result, a, b);
  EXPECT_TRUE(mpfr_equal_p(lower(result), upper(result)));
  EXPECT_EQ(mpfr_get_d(lower(result), MPFR_RNDN), -0x1p-59);  // 3 - 2^-59 - 3
}

TEST(IntegerDot, AZeroVectorGivesExactlyZero) {
  std::mt19937_64 random(4);
  for (const int limbs : {2, 17, 65}) {
    const Vectors x = random_vectors(random, 8, 10, true);
    ScaledVector a;
    ScaledVector zero;
    a.assign(x.ends(), limbs);
    const Enclosure<38> nothing(0);
    zero.assign(std::vector<ScaledVector::Ends>(8, {lower(nothing), upper(nothing)}), limbs);
    Number result(1);
    set_dot(result, a, zero);
    EXPECT_TRUE(mpfr_zero_p(lower(result)) && mpfr_zero_p(upper(result)));
    set_dot(result, zero, a);
    EXPECT_TRUE(mpfr_zero_p(lower(result)) && mpfr_zero_p(upper(result)));
  }
}

// An enclosure far wider than the last place of many limbs: the bound passes binary64, the result says nothing, no NaN.
TEST(IntegerDot, HopelessWidthGivesNoNan) {
  const Enclosure<38> wide = Enclosure<38>(1) / Enclosure<38>(3);
  const ScaledVector::Ends ends[] = {{lower(wide), upper(wide)}};
  const double one[] = {1.0};
  ScaledVector a;
  ScaledVector b;
  a.assign(ends, 65);
  b.assign(one, 65);
  Number result;
  set_dot(result, a, b);
  EXPECT_FALSE(mpfr_nan_p(lower(result)) || mpfr_nan_p(upper(result)));
  EXPECT_LT(mpfr_cmp_d(lower(result), 1.0 / 3), 0);
  EXPECT_GT(mpfr_cmp_d(upper(result), 1.0 / 3), 0);
}

TEST(IntegerDot, PicksSelectEntriesOfTheSecondVector) {
  ScaledVector a;
  ScaledVector b;
  const double x[] = {2.0, 5.0};
  const double y[] = {1e30, 3.0, 1e30, -1.0};
  const std::uint32_t picks[] = {1, 3};
  a.assign(x, 2);
  b.assign(y, 2);
  Number result;
  set_dot(result, a, b, picks);
  EXPECT_EQ(mpfr_get_d(lower(result), MPFR_RNDN), 1.0);
  EXPECT_EQ(mpfr_get_d(upper(result), MPFR_RNDN), 1.0);
}

TEST(IntegerDot, RangeBeyondTheLimbsWidensTheResult) {
  ScaledVector a;
  ScaledVector b;
  const double x[] = {0x1p+900, 0x1.8p-900};
  const double y[] = {0.0, 1.0};
  a.assign(x, 2);
  b.assign(y, 2);
  Number result;
  set_dot(result, a, b);
  EXPECT_TRUE(contains(result, rational_of(Real(53, 0x1.8p-900).get())));
  EXPECT_GT(width_of(result), 0x1p+700);
  a.assign(x, 30);  // 1802 bits are enough
  set_dot(result, a, b);
  EXPECT_EQ(width_of(result), 0.0);
  EXPECT_EQ(mpfr_get_d(lower(result), MPFR_RNDN), 0x1.8p-900);
}

TEST(IntegerDot, ManyLimbsKeepTheirPrecision) {
  Enclosure<1233> third(1);
  third /= Enclosure<1233>(3);
  const ScaledVector::Ends ends[] = {{lower(third), upper(third)}};
  ScaledVector a;
  a.assign(ends, 65);
  Enclosure<1233> ninth;
  set_dot(ninth, a, a);
  Real width(53);
  mpfr_sub(width.get(), upper(ninth), lower(ninth), MPFR_RNDU);
  EXPECT_LT(mpfr_get_exp(width.get()), -4080);
  EXPECT_GT(mpfr_get_exp(width.get()), -4110);
}

}  // namespace
}  // namespace qkcts
