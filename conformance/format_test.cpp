// SPDX-License-Identifier: Apache-2.0
#include "conformance/format.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace qkcts {
namespace {

constexpr Format all_formats[] = {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16};
constexpr Format half_formats[] = {Format::binary16, Format::bfloat16};
constexpr double infinity = std::numeric_limits<double>::infinity();

std::uint64_t infinity_of(Format format) {
  return format == Format::binary16 ? 0x7c00 : 0x7f80;
}

// ---- all 65,536 patterns ------------------------------------------------------------------------------------------

TEST(Format, EveryPatternOfSixteenBitsSurvivesARoundTrip) {
  for (const Format format : half_formats)
    for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
      const double value = decode(format, pattern);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(decode(format, encode(format, value)))) << pattern;
      else
        EXPECT_EQ(encode(format, value), pattern) << parameters(format).name;
    }
}

// bfloat16 is the upper half of binary32, and the compiler converts binary32: a decoder that this file does not share.
TEST(Format, DecodingBfloat16IsDecodingBinary32) {
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const double value = decode(Format::bfloat16, pattern);
    const double expected = std::bit_cast<float>(pattern << 16);
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(value));
    else
      EXPECT_EQ(std::bit_cast<std::uint64_t>(value), std::bit_cast<std::uint64_t>(expected)) << pattern;
  }
}

// The value of a binary16 pattern from the definition: (-1)^s * 2^(e - 15) * (1 + f / 1024), or 2^-14 * f / 1024.
TEST(Format, DecodingBinary16IsItsDefinition) {
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const int exponent = static_cast<int>(pattern >> 10 & 31);
    const double fraction = (pattern & 1023) / 1024.0;
    const double sign = pattern >> 15 != 0 ? -1 : 1;
    const double value = decode(Format::binary16, pattern);
    if (exponent == 31)
      EXPECT_TRUE(fraction == 0 ? value == sign * infinity : std::isnan(value)) << pattern;
    else
      EXPECT_EQ(value, sign * (exponent == 0 ? fraction / 16384 : std::pow(2.0, exponent - 15) * (1 + fraction)));
  }
}

// ---- rounding -----------------------------------------------------------------------------------------------------

// The rule, on the sorted list of patterns: the midpoint of two neighbours goes to the even one, anything on one side
// of the midpoint goes to that side. Midpoints of 16-bit neighbours are exact in binary64.
TEST(Format, EveryMidpointOfSixteenBitsAndItsNeighboursRoundToNearestEven) {
  for (const Format format : half_formats)
    for (std::uint64_t low = 0; low + 1 < infinity_of(format); ++low) {
      const std::uint64_t high = low + 1;
      const double middle = (decode(format, low) + decode(format, high)) / 2;
      const std::uint64_t even = low % 2 == 0 ? low : high;
      const std::uint64_t sign = 0x8000;
      ASSERT_EQ(encode(format, middle), even);
      ASSERT_EQ(encode(format, std::nextafter(middle, 0)), low);
      ASSERT_EQ(encode(format, std::nextafter(middle, infinity)), high);
      ASSERT_EQ(encode(format, -middle), even | sign);
      ASSERT_EQ(encode(format, -std::nextafter(middle, 0)), low | sign);
      ASSERT_EQ(encode(format, -std::nextafter(middle, infinity)), high | sign);
    }
}

TEST(Format, OverflowBeginsHalfAnUlpAboveTheLargest) {
  for (const Format format : half_formats) {
    const double largest = parameters(format).largest;
    const double threshold = largest + ulp(format, largest) / 2;
    EXPECT_EQ(encode(format, largest), infinity_of(format) - 1);
    EXPECT_EQ(encode(format, std::nextafter(threshold, 0)), infinity_of(format) - 1);
    EXPECT_EQ(encode(format, threshold), infinity_of(format));
    EXPECT_EQ(encode(format, std::numeric_limits<double>::max()), infinity_of(format));
    EXPECT_EQ(encode(format, -infinity), infinity_of(format) | 0x8000);
  }
}

// The hardware converts binary64 to binary32 with roundTiesToEven.
TEST(Format, EncodingBinary32IsTheConversionOfTheProcessor) {
  std::uint64_t state = 1;
  const auto next = [&state] { return state = state * 6364136223846793005U + 1442695040888963407U; };
  const auto check = [](double value) {
    if (std::isnan(value)) return;
    EXPECT_EQ(encode(Format::binary32, value), std::bit_cast<std::uint32_t>(static_cast<float>(value))) << value;
  };
  for (int i = 0; i < 200000; ++i) check(std::bit_cast<double>(next()));  // mostly far outside binary32
  for (int i = 0; i < 200000; ++i) {                                      // exponents around and below its range
    const double fraction = 1 + static_cast<double>(next() >> 12) * 0x1p-52;
    check(std::ldexp(fraction, static_cast<int>(next() >> 40) % 290 - 155));
  }
  for (std::uint32_t low = 1; low < 0x7f7fffff; low += 100003) {  // midpoints
    const double middle = (static_cast<double>(std::bit_cast<float>(low)) + std::bit_cast<float>(low + 1)) / 2;
    for (const double value : {middle, std::nextafter(middle, 0), std::nextafter(middle, infinity), -middle})
      check(value);
  }
}

TEST(Format, Binary64IsTheIdentity) {
  for (const double value : {0.0, -0.0, 1.0, -5e-324, 0x1p-1022, std::numeric_limits<double>::max(), infinity})
    EXPECT_EQ(encode(Format::binary64, value), std::bit_cast<std::uint64_t>(value));
  EXPECT_TRUE(std::isnan(decode(Format::binary64, encode(Format::binary64, std::nan("7")))));
}

TEST(Format, ZeroKeepsItsSign) {
  for (const Format format : all_formats) {
    EXPECT_EQ(encode(format, 0.0), 0U);
    EXPECT_EQ(encode(format, -0.0), std::uint64_t{1} << (parameters(format).bits - 1));
    EXPECT_TRUE(std::signbit(decode(format, encode(format, -0.0))));
  }
}

// ---- ulp and parameters -------------------------------------------------------------------------------------------

TEST(Format, UlpIsTheDistanceToTheNextNumberAway) {
  for (const Format format : half_formats)
    for (std::uint64_t pattern = 0; pattern + 1 < infinity_of(format); ++pattern) {
      const double value = decode(format, pattern);
      ASSERT_EQ(ulp(format, value), decode(format, pattern + 1) - value);
      ASSERT_EQ(ulp(format, -value), ulp(format, value));
    }
}

TEST(Format, UlpBetweenTwoNumbersIsThatOfTheirBinade) {
  EXPECT_EQ(ulp(Format::binary16, 1.99999), 0x1p-10);
  EXPECT_EQ(ulp(Format::binary16, 2), 0x1p-9);
  EXPECT_EQ(ulp(Format::binary16, 1e-30), 0x1p-24);
  EXPECT_EQ(ulp(Format::binary32, 0), 0x1p-149);
  EXPECT_EQ(ulp(Format::bfloat16, 65504), 0x1p8);
  EXPECT_EQ(ulp(Format::binary16, 1e9), 0x1p19) << "also beyond the largest number";
}

TEST(Format, ParametersAgreeWithEachOther) {
  for (const Format format : all_formats) {
    const FormatParameters& f = parameters(format);
    EXPECT_EQ(f.emin, 1 - f.emax);
    EXPECT_EQ(f.largest, std::ldexp(2 - std::ldexp(1.0, 1 - f.precision), f.emax));
    EXPECT_EQ(unit_roundoff(format), std::ldexp(1.0, -f.precision));
    EXPECT_EQ(decode(format, 1), smallest_subnormal(format));
    EXPECT_EQ(decode(format, std::uint64_t{1} << (f.precision - 1)), smallest_normal(format));
    EXPECT_EQ(format_named(f.name), format);
  }
  EXPECT_FALSE(format_named("float").has_value());
}

TEST(Format, ScoresAndLogSumExpAreObservedInTheAccumulatorFormat) {
  for (const qkcts_stage stage : {QKCTS_STAGE_SCORES, QKCTS_STAGE_CAPPED, QKCTS_STAGE_MASKED, QKCTS_STAGE_LSE}) {
    EXPECT_EQ(stage_format(stage, Format::bfloat16), Format::binary32);
    EXPECT_EQ(stage_format(stage, Format::binary64), Format::binary64);
  }
  for (const qkcts_stage stage : {QKCTS_STAGE_Q_NORM, QKCTS_STAGE_K_ROPE, QKCTS_STAGE_PROBS, QKCTS_STAGE_OUTPUT})
    EXPECT_EQ(stage_format(stage, Format::bfloat16), Format::bfloat16);
}

}  // namespace
}  // namespace qkcts
