// SPDX-License-Identifier: Apache-2.0
#include "reference/rounding.hpp"

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace qkcts {
namespace {

using Rounder = std::function<double(RealView, Format)>;

struct Tie {
  double low, high;       // neighbours in the format; high is infinite above the largest
  std::uint64_t pattern;  // of low
};

// Neighbours x, next(x) from 0 up to the largest: all of them in 8- and 16-bit formats, in wider ones those whose
// significand is near a power of two, for every exponent.
std::vector<Tie> neighbours(Format format) {
  const FormatParameters& f = parameters(format);
  const std::uint64_t infinity = encode(format, std::numeric_limits<double>::infinity());
  const std::uint64_t significands = std::uint64_t{1} << (f.precision - 1);
  std::vector<Tie> ties;
  const auto add = [&](std::uint64_t pattern) {
    const double high = decode(format, pattern + 1);
    ties.push_back({decode(format, pattern), std::isnan(high) ? HUGE_VAL : high, pattern});  // e4m3fn: overflow
  };
  if (f.bits <= 16) {
    for (std::uint64_t pattern = 0; pattern < infinity; ++pattern) add(pattern);
    return ties;
  }
  for (std::uint64_t top = 0; top < infinity; top += significands)
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, significands / 2 + 1,
                                       significands - 2, significands - 1})
      add(top + offset);
  return ties;
}

// Wrong results of `round` on midpoints, midpoints moved by 2^-60, 2^-200, 2^-900 of themselves, and both neighbours.
std::size_t wrong_results(const Rounder& round, Format format) {
  const FormatParameters& f = parameters(format);
  std::size_t wrong = 0;
  const auto check = [&](const Real& x, double expected) {
    Real negated(x);
    mpfr_neg(negated.get(), negated.get(), MPFR_RNDN);
    const auto differ = [](double a, double b) {
      return std::bit_cast<std::uint64_t>(a) != std::bit_cast<std::uint64_t>(b);
    };
    wrong += differ(round(x.get(), format), expected) || differ(round(negated.get(), format), -expected) ? 1 : 0;
  };
  for (const Tie& tie : neighbours(format)) {
    check(Real(53, tie.low), tie.low);
    // The midpoint above the largest finite number is half a quantum further.
    Real middle(1100, std::isinf(tie.high) ? std::ldexp(1.0, f.emax - f.precision) : tie.high);
    if (std::isinf(tie.high)) {
      mpfr_add_d(middle.get(), middle.get(), tie.low, MPFR_RNDN);
    } else {
      mpfr_add_d(middle.get(), middle.get(), tie.low, MPFR_RNDN);
      mpfr_div_2ui(middle.get(), middle.get(), 1, MPFR_RNDN);
    }
    const double even = tie.pattern % 2 == 0 ? tie.low : tie.high;
    check(middle, even);
    for (const long distance : {60, 200, 900}) {
      Real step(middle);
      mpfr_div_2ui(step.get(), step.get(), static_cast<unsigned long>(distance), MPFR_RNDN);
      Real above(middle);
      mpfr_add(above.get(), above.get(), step.get(), MPFR_RNDN);
      check(above, tie.high);
      Real below(middle);
      mpfr_sub(below.get(), below.get(), step.get(), MPFR_RNDN);
      check(below, tie.low);
    }
  }
  return wrong;
}

double through_binary64(RealView x, Format format) {
  return decode(format, encode(format, mpfr_get_d(x, MPFR_RNDN)));
}

double precision_first_then_grid(RealView x, Format format) {
  Real rounded(parameters(format).precision);
  mpfr_set(rounded.get(), x, MPFR_RNDN);
  return round_to_format(rounded.get(), format);
}

constexpr Format formats[] = {Format::binary64, Format::binary32, Format::binary16,
                              Format::bfloat16, Format::e4m3fn,   Format::e5m2};

TEST(Rounding, EveryTieAndNearTieOfEveryFormat) {
  for (const Format format : formats) EXPECT_EQ(wrong_results(round_to_format, format), 0u) << parameters(format).name;
}

TEST(Rounding, TheCheckNoticesDoubleRounding) {
  for (const Format format : {Format::binary32, Format::binary16, Format::bfloat16})
    EXPECT_GT(wrong_results(through_binary64, format), 100u) << parameters(format).name;
  for (const Format format : formats)
    EXPECT_GT(wrong_results(precision_first_then_grid, format), 0u) << parameters(format).name;
}

TEST(Rounding, FarOutside) {
  Real huge(53, 1.0);
  mpfr_mul_2si(huge.get(), huge.get(), 100000, MPFR_RNDN);
  Real tiny(53, -1.0);
  mpfr_mul_2si(tiny.get(), tiny.get(), -100000, MPFR_RNDN);
  for (const Format format : formats) {
    EXPECT_EQ(round_to_format(huge.get(), format), std::numeric_limits<double>::infinity());
    EXPECT_EQ(round_to_format(tiny.get(), format), 0.0);
    EXPECT_TRUE(std::signbit(round_to_format(tiny.get(), format)));
  }
}

// z = hi + numerator/512 ulp64(hi), moved by `nudge`, as an MPFR number.
Real beside_hi(double hi, long numerator, double nudge) {
  Real z(2200, ulp(Format::binary64, hi));
  mpfr_mul_d(z.get(), z.get(), static_cast<double>(numerator) / 512 + nudge, MPFR_RNDN);
  mpfr_add_d(z.get(), z.get(), hi, MPFR_RNDN);
  return z;
}

TEST(Rounding, TheRestIsRoundedToEvenMultiples) {
  for (const double hi : {1.5, -1.5, 0x1.8p+1000, 0x1.8p-1030, 3 * 0x1p-1074, 0x1.fffffffffffffp+1023}) {
    for (const long numerator : {-255, -3, -1, 0, 1, 2, 3, 5, 255}) {
      const double exact = static_cast<double>(numerator) / 2;  // in units of ulp/256
      EXPECT_EQ(round_exactly(beside_hi(hi, numerator, 0).get(), Format::binary32).lo, std::nearbyint(exact)) << hi;
      EXPECT_EQ(round_exactly(beside_hi(hi, numerator, 0x1p-40).get(), Format::binary32).lo, std::floor(exact + 0.5))
          << hi;
      EXPECT_EQ(round_exactly(beside_hi(hi, numerator, -0x1p-40).get(), Format::binary32).lo, std::ceil(exact - 0.5))
          << hi;
      EXPECT_EQ(round_exactly(beside_hi(hi, numerator, 0).get(), Format::binary32).hi, hi);
    }
  }
}

TEST(Rounding, InfiniteHiHasNoRest) {
  Real z(64, 1.0);
  mpfr_mul_2si(z.get(), z.get(), 1024, MPFR_RNDN);
  const Proven proven = round_exactly(z.get(), Format::binary64);
  EXPECT_EQ(proven.hi, std::numeric_limits<double>::infinity());
  EXPECT_EQ(proven.lo, 0);
  EXPECT_EQ(proven.expected, encode(Format::binary64, proven.hi));
}

TEST(Rounding, DecidedOnlyIfBothEndsAgree) {
  const Real low = beside_hi(1.25, 9, -0x1p-30);
  const Real high = beside_hi(1.25, 9, 0x1p-30);
  EXPECT_FALSE(round_if_decided(low.get(), high.get(), Format::binary16).has_value());  // straddles a boundary of lo
  EXPECT_TRUE(round_if_decided(high.get(), high.get(), Format::binary16).has_value());
  const Real further = beside_hi(1.25, 9, 0x1p-29);
  const std::optional<Proven> proven = round_if_decided(high.get(), further.get(), Format::binary16);
  ASSERT_TRUE(proven.has_value());
  EXPECT_EQ(proven->lo, 5);
  EXPECT_FALSE(round_if_decided(Real(53, -1e-300).get(), Real(53, 1e-300).get(), Format::binary32).has_value());
}

TEST(Rounding, TheOnlyBoundaryIsFound) {
  for (const double hi : {1.25, 1.0, -0x1.8p-1050, 0x1p-1022}) {
    for (const long numerator : {-3, 0, 1, 5}) {
      const Real t = beside_hi(hi, numerator, 0);
      const Real low = beside_hi(hi, numerator, -0x1p-56);
      const Real high = beside_hi(hi, numerator, 0x1p-56);
      const std::optional<Boundary> found = only_boundary(low.get(), high.get());
      ASSERT_TRUE(found.has_value()) << hi;
      EXPECT_TRUE(mpfr_equal_p(found->value.get(), t.get()));
      const auto same = [](const Proven& x, const Proven& y) {
        return x.expected == y.expected && x.hi == y.hi && x.lo == y.lo;
      };
      EXPECT_TRUE(
          same(round_exactly(beside(*found, 1).get(), Format::binary64), round_exactly(high.get(), Format::binary64)));
      EXPECT_TRUE(
          same(round_exactly(beside(*found, -1).get(), Format::binary64), round_exactly(low.get(), Format::binary64)));
    }
  }
  EXPECT_FALSE(only_boundary(Real(53, 1.0).get(), Real(53, 1.5).get()).has_value());  // many
  const Real low = beside_hi(1.25, 1, 0x1p-56);
  const Real high = beside_hi(1.25, 1, 0x1p-55);
  EXPECT_FALSE(only_boundary(low.get(), high.get()).has_value());  // none
  EXPECT_TRUE(mpfr_zero_p(only_boundary(Real(53, -1.0).get(), Real(53, 1.0).get())->value.get()));
}

TEST(Rounding, ApproximationNeedsANarrowEnclosure) {
  EXPECT_EQ(approximate_if_narrow(Real(53, 3.0).get(), Real(53, 3.0).get()), 3.0);
  EXPECT_TRUE(approximate_if_narrow(Real(53, 3.0).get(), Real(53, std::nextafter(3.0, 4.0)).get()).has_value());
  EXPECT_FALSE(approximate_if_narrow(Real(53, 3.0).get(), Real(53, 3.0 + 0x1p-48).get()).has_value());
  EXPECT_FALSE(approximate_if_narrow(Real(53, -0x1p-1074).get(), Real(53, 0x1p-1074).get()).has_value());
  Real tiny(53, 1.0);
  mpfr_mul_2si(tiny.get(), tiny.get(), -5000, MPFR_RNDN);
  EXPECT_EQ(approximate_if_narrow(Real(53, 0.0).get(), tiny.get()), 0.0);
  // What MPFI makes of an exact zero: a weight that a rounding point made 0.
  EXPECT_EQ(approximate_if_narrow(Real(53, 0.0).get(), Real(53, -0.0).get()), 0.0);
}

}  // namespace
}  // namespace qkcts
