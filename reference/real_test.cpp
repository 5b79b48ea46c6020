// SPDX-License-Identifier: Apache-2.0
#include "reference/real.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace qkcts {
namespace {

// Enclosure of 128 bits around x, `width` wide.
Enclosure<38> around(double x, double width) {
  Enclosure<38> result(x);
  mpfr_add_d(result.right(), result.right(), width, MPFR_RNDU);
  return result;
}

using Precise = Enclosure<308>;

template <class Function>
void expect_encloses(const Enclosure<38>& image, const Enclosure<38>& x, Function function, double most_width) {
  for (const RealView end : {lower(x), upper(x)}) {
    Precise exact = point<308>(end);
    exact.set_rising(exact, function);
    EXPECT_TRUE(mpfr_lessequal_p(lower(image), lower(exact)));
    EXPECT_TRUE(mpfr_greaterequal_p(upper(image), upper(exact)));
  }
  Real width(53);
  mpfr_sub(width.get(), upper(image), lower(image), MPFR_RNDU);
  mpfr_div(width.get(), width.get(), lower(image), MPFR_RNDU);
  EXPECT_LE(mpfr_get_d(width.get(), MPFR_RNDU), most_width);
}

TEST(Real, ExponentialEncloses) {
  for (const double x : {0.0, 1.0, -1.0, 0.3, -700.0, 700.0, -1e5}) {
    for (const double width : {0.0, 0x1p-100, 0x1p-20, 0.9, 3.0}) {
      const Enclosure<38> argument = around(x, width);
      Enclosure<38> image;
      set_exp(image, argument);
      expect_encloses(image, argument, mpfr_exp, width > 1 ? 100 : 4 * width + 0x1p-120);
    }
  }
  Enclosure<38> one;
  set_exp(one, Enclosure<38>(0));
  EXPECT_TRUE(mpfr_cmp_ui(lower(one), 1) == 0 && mpfr_cmp_ui(upper(one), 1) == 0);  // stays exact
}

TEST(Real, TanhEncloses) {
  for (const double x : {1e-9, 0.3, 1.0, 20.0, 400.0}) {
    for (const double width : {0.0, 0x1p-100, 0x1p-20, 3.0}) {
      const Enclosure<38> argument = around(x, width);
      Enclosure<38> image;
      set_tanh(image, argument);
      expect_encloses(image, argument, mpfr_tanh, 2 * width / std::min(x, 1.0) + 0x1p-120);
      EXPECT_LE(mpfr_cmp_ui(upper(image), 1), 0);
      set_tanh(image, Enclosure<38>(-argument));
      EXPECT_GE(mpfr_cmp_si(lower(image), -1), 0);
      EXPECT_TRUE(mpfr_sgn(upper(image)) <= 0 || width > 0);
    }
  }
}

TEST(Real, RootOfASumOfSquaresNeverBelowZero) {
  Enclosure<38> x = around(-0x1p-100, 0x1p-99);
  const Enclosure<38> result = sqrt_of_nonnegative(x);
  EXPECT_TRUE(is_finite(result));
  EXPECT_EQ(mpfr_sgn(lower(result)), 0);
  EXPECT_GE(mpfr_get_d(upper(result), MPFR_RNDD), 0x1p-50 * 0.999);
}

TEST(Real, LargestMagnitude) {
  Enclosure<38> largest(0);
  raise_to_magnitude(largest, around(-0x1p-100, 0x1p-99));  // straddles 0: says nothing from below
  EXPECT_EQ(mpfr_sgn(lower(largest)), 0);
  EXPECT_EQ(mpfr_get_d(upper(largest), MPFR_RNDN), 0x1p-100);
  raise_to_magnitude(largest, around(-3, 0.5));
  EXPECT_EQ(mpfr_get_d(lower(largest), MPFR_RNDN), 2.5);
  EXPECT_EQ(mpfr_get_d(upper(largest), MPFR_RNDN), 3.0);
  raise_to_magnitude(largest, around(2.75, 0.125));
  EXPECT_EQ(mpfr_get_d(lower(largest), MPFR_RNDN), 2.75);
  EXPECT_EQ(mpfr_get_d(upper(largest), MPFR_RNDN), 3.0);
}

TEST(Real, RationalsAreEnclosed) {
  const Rational third = Rational(1) / Rational(3);
  const Enclosure<38> x = enclosure_of<38>(third);
  EXPECT_LT(rational_of(lower(x)), third);
  EXPECT_GT(rational_of(upper(x)), third);
  EXPECT_TRUE(overlap(x, x));
  EXPECT_FALSE(overlap(x, Enclosure<38>(0.5)));
  EXPECT_EQ(decimal_text(lower(Enclosure<38>(4.0)), 5), "4.0000e+00");
}

TEST(Real, PrecisionsOfTheLevels) {
  EXPECT_EQ(precision_bits<38>(), 128);
  EXPECT_EQ(precision_bits<77>(), 257);
  EXPECT_EQ(precision_bits<154>(), 513);
  EXPECT_EQ(precision_bits<308>(), 1025);
  EXPECT_EQ(precision_bits<1233>(), 4098);
}

}  // namespace
}  // namespace qkcts
