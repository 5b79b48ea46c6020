// SPDX-License-Identifier: Apache-2.0
// The 8-bit formats, whole: every pattern, every pair of neighbours, both ends. The values come from the formulas of
// the OCP 8-bit Floating Point Specification (revision 1.0, tables 1 and 2), written out here a second time.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "conformance/format.hpp"

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Format formats[] = {Format::e4m3fn, Format::e5m2};

// S EEEE MMM, bias 7; S.1111.111 is NaN.
double e4m3fn(unsigned pattern) {
  const unsigned exponent = pattern >> 3 & 15;
  const double fraction = (pattern & 7) / 8.0;
  const double sign = (pattern & 0x80) != 0 ? -1 : 1;
  if (exponent == 15 && fraction == 0.875) return std::nan("");
  return sign * (exponent == 0 ? fraction / 64 : std::pow(2.0, static_cast<int>(exponent) - 7) * (1 + fraction));
}

// S EEEEE MM, bias 15; the exponent 31 holds infinity and NaN.
double e5m2(unsigned pattern) {
  const unsigned exponent = pattern >> 2 & 31;
  const double fraction = (pattern & 3) / 4.0;
  const double sign = (pattern & 0x80) != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * infinity : std::nan("");
  return sign * (exponent == 0 ? fraction / 16384 : std::pow(2.0, static_cast<int>(exponent) - 15) * (1 + fraction));
}

double by_definition(Format format, unsigned pattern) {
  return format == Format::e4m3fn ? e4m3fn(pattern) : e5m2(pattern);
}

unsigned largest_pattern(Format format) {
  return format == Format::e4m3fn ? 0x7e : 0x7b;
}

TEST(Format8Bit, DecodingIsTheDefinition) {
  for (const Format format : formats)
    for (unsigned pattern = 0; pattern < 256; ++pattern) {
      const double value = decode(format, pattern);
      const double expected = by_definition(format, pattern);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(value)) << pattern;
      } else {
        EXPECT_EQ(value, expected) << pattern;
        EXPECT_EQ(std::signbit(value), pattern >= 128) << pattern;
        EXPECT_EQ(encode(format, value), pattern);
      }
    }
}

// Of the value x between the neighbours low and high, by comparison of the distances: exact in binary64.
unsigned nearest(Format format, unsigned low, double x) {
  const double below = x - by_definition(format, low);
  const double above = by_definition(format, low + 1) - x;
  if (below != above) return below < above ? low : low + 1;
  return low % 2 == 0 ? low : low + 1;
}

TEST(Format8Bit, EveryMidpointAndItsNeighboursRoundToNearestEven) {
  for (const Format format : formats)
    for (unsigned low = 0; low < largest_pattern(format); ++low) {
      const double middle = (by_definition(format, low) + by_definition(format, low + 1)) / 2;
      for (const double x : {middle, std::nextafter(middle, 0), std::nextafter(middle, infinity)}) {
        for (const Overflow overflow : {Overflow::to_infinity, Overflow::saturate}) {
          ASSERT_EQ(encode(format, x, overflow), nearest(format, low, x)) << x;
          ASSERT_EQ(encode(format, -x, overflow), nearest(format, low, x) | 0x80) << x;
        }
        ASSERT_FALSE(overflows(format, x));
      }
    }
}

TEST(Format8Bit, SubnormalsReachDownToHalfTheSmallest) {
  for (const Format format : formats) {
    const double smallest = smallest_subnormal(format);
    EXPECT_EQ(smallest, format == Format::e4m3fn ? 0x1p-9 : 0x1p-16);
    EXPECT_EQ(encode(format, smallest / 2), 0U);  // a tie, and 0 is even
    EXPECT_EQ(encode(format, std::nextafter(smallest / 2, 1)), 1U);
    EXPECT_EQ(encode(format, -std::nextafter(smallest / 2, 1)), 0x81U);
    EXPECT_EQ(encode(format, 1.5 * smallest), 2U);
    EXPECT_EQ(encode(format, 5e-324), 0U);
    EXPECT_EQ(encode(format, -5e-324), 0x80U);
  }
}

// The number above 448 would be 480; 464 lies between and 14 * 32 is even, so it is no overflow. The number above 57344
// would be 65536; 61440 lies between and 7 * 2^13 is odd.
TEST(Format8Bit, WhatOverflows) {
  EXPECT_EQ(parameters(Format::e4m3fn).largest, 448);
  EXPECT_EQ(encode(Format::e4m3fn, 464), 0x7eU);
  EXPECT_FALSE(overflows(Format::e4m3fn, -464));
  EXPECT_EQ(parameters(Format::e5m2).largest, 57344);
  EXPECT_EQ(encode(Format::e5m2, std::nextafter(61440, 0)), 0x7bU);
  EXPECT_FALSE(overflows(Format::e5m2, std::nextafter(-61440, 0)));

  struct Beyond {
    Format format;
    double value;
  };
  const Beyond beyond[] = {
      {Format::e4m3fn, std::nextafter(464, infinity)}, {Format::e4m3fn, 480}, {Format::e5m2, 61440}};
  for (const auto& [format, first] : beyond) {
    const unsigned special = largest_pattern(format) + 1;
    for (const double x : {first, 65536.0, 1e300, infinity}) {
      EXPECT_TRUE(overflows(format, x) && overflows(format, -x)) << x;
      EXPECT_EQ(encode(format, x), special);
      EXPECT_EQ(encode(format, -x), special | 0x80);
      EXPECT_EQ(encode(format, x, Overflow::saturate), special - 1);
      EXPECT_EQ(decode(format, encode(format, -x, Overflow::saturate)), -parameters(format).largest);
    }
  }
  EXPECT_TRUE(std::isnan(decode(Format::e4m3fn, encode(Format::e4m3fn, -1e9))));
  EXPECT_EQ(decode(Format::e5m2, encode(Format::e5m2, -1e9)), -infinity);
  for (const Format format : formats)
    for (const Overflow overflow : {Overflow::to_infinity, Overflow::saturate})
      EXPECT_TRUE(std::isnan(decode(format, encode(format, std::nan(""), overflow))));
}

TEST(Format8Bit, OverflowOfTheWiderFormats) {
  for (const Format format : {Format::binary32, Format::binary16, Format::bfloat16}) {
    const double largest = parameters(format).largest;
    const double threshold = largest + ulp(format, largest) / 2;
    EXPECT_FALSE(overflows(format, std::nextafter(threshold, 0)));
    EXPECT_TRUE(overflows(format, threshold));
    EXPECT_EQ(decode(format, encode(format, -threshold, Overflow::saturate)), -largest);
    EXPECT_EQ(encode(format, std::nextafter(threshold, 0), Overflow::saturate), encode(format, largest));
  }
  EXPECT_FALSE(overflows(Format::binary64, std::numeric_limits<double>::max()));
  EXPECT_TRUE(overflows(Format::binary64, infinity));
}

TEST(Format8Bit, UlpIsTheDistanceToTheNextNumberAway) {
  for (const Format format : formats)
    for (unsigned pattern = 0; pattern < largest_pattern(format); ++pattern)
      ASSERT_EQ(ulp(format, decode(format, pattern)), decode(format, pattern + 1) - decode(format, pattern));
  EXPECT_EQ(ulp(Format::e4m3fn, 448), 32);
  EXPECT_EQ(ulp(Format::e5m2, 57344), 8192);
}

TEST(Format8Bit, ParametersAgreeWithThePatterns) {
  for (const Format format : formats) {
    const FormatParameters& f = parameters(format);
    EXPECT_EQ(f.bits, 8);
    EXPECT_EQ(format_named(f.name), format);
    EXPECT_EQ(f.largest, by_definition(format, largest_pattern(format)));
    EXPECT_EQ(unit_roundoff(format), std::ldexp(1.0, -f.precision));
    EXPECT_EQ(by_definition(format, 1U << (f.precision - 1)), smallest_normal(format));
    EXPECT_EQ(f.has_infinity, std::isinf(by_definition(format, largest_pattern(format) + 1)));
  }
}

TEST(Format8Bit, TheyStoreNoTensors) {
  for (const Format format : formats) {
    EXPECT_FALSE(stores_tensors(format));
    EXPECT_FALSE(storage_format_named(parameters(format).name).has_value());
  }
  for (const Format format : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16}) {
    EXPECT_TRUE(stores_tensors(format));
    EXPECT_EQ(storage_format_named(parameters(format).name), format);
  }
}

}  // namespace
}  // namespace qkcts
