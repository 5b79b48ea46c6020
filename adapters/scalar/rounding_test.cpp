// SPDX-License-Identifier: Apache-2.0
#include "adapters/scalar/rounding.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <qkcts/contract.h>

#include "adapters/scalar/number_format.hpp"

namespace qkcts::scalar {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// All finite numbers >= 0 of a format in ascending order, decoded from their bit patterns, and behind them the number
// that would follow if the exponent had no end.
std::vector<double> numbers(std::uint32_t format) {
  std::vector<double> list;
  const auto narrow = [&](int exponent_bits, int fraction_bits, int bias, int last_pattern) {
    for (int bits = 0; bits <= last_pattern + 1; ++bits) {
      const int exponent = bits >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
      list.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                                   : std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits));
    }
    EXPECT_LT(last_pattern, 1 << (exponent_bits + fraction_bits));
  };
  if (format == QKCTS_E4M3FN) narrow(4, 3, 7, 0x7e);
  if (format == QKCTS_E5M2) narrow(5, 2, 15, 0x7b);
  if (format == QKCTS_BINARY16) narrow(5, 10, 15, 0x7bff);
  if (format == QKCTS_BFLOAT16) narrow(8, 7, 127, 0x7f7f);
  return list;
}

constexpr std::uint32_t narrow_formats[] = {QKCTS_E4M3FN, QKCTS_E5M2, QKCTS_BINARY16, QKCTS_BFLOAT16};

double saturated(std::uint32_t format, double value) {
  return nearest(format, Overflow::saturates, value);
}

TEST(Rounding, EndsWhereTheFormatEnds) {
  EXPECT_EQ(numbers(QKCTS_E4M3FN).size(), 0x7f + 1u);
  EXPECT_EQ(saturated(QKCTS_E4M3FN, 1e9), 448.0);
  EXPECT_EQ(saturated(QKCTS_E5M2, -1e9), -57344.0);
  EXPECT_EQ(saturated(QKCTS_BINARY16, 1e9), 65504.0);
  EXPECT_EQ(saturated(QKCTS_BFLOAT16, 1e300), 0x1.fep+127);
  EXPECT_EQ(saturated(QKCTS_BINARY32, 1e300), 0x1.fffffep+127);
  EXPECT_EQ(saturated(QKCTS_E4M3FN, 0x1p-9), 0x1p-9);
  EXPECT_EQ(saturated(QKCTS_E5M2, 0x1p-16), 0x1p-16);
  EXPECT_EQ(saturated(QKCTS_BINARY64, 1e300), 1e300);
}

TEST(Rounding, NumbersOfTheFormatStay) {
  for (const std::uint32_t format : narrow_formats) {
    const std::vector<double> list = numbers(format);
    for (std::size_t i = 0; i + 1 < list.size(); ++i) {
      ASSERT_EQ(saturated(format, list[i]), list[i]) << format;
      ASSERT_EQ(saturated(format, -list[i]), -list[i]) << format;
    }
  }
}

// Between two neighbours, and between the largest number and what would follow it: just below the middle, the middle,
// just above.
TEST(Rounding, RoundsToNearestEven) {
  for (const std::uint32_t format : narrow_formats) {
    const std::vector<double> list = numbers(format);
    for (std::size_t i = 0; i + 1 < list.size(); ++i) {
      const bool at_the_end = i + 2 == list.size();
      const double low = list[i], high = list[i + 1], middle = (low + high) / 2;
      const double up = at_the_end ? low : high;  // saturated
      ASSERT_EQ(saturated(format, middle), i % 2 == 0 ? low : up) << format << ' ' << middle;
      ASSERT_EQ(saturated(format, -middle), i % 2 == 0 ? -low : -up) << format << ' ' << middle;
      ASSERT_EQ(saturated(format, std::nextafter(middle, 0.0)), low) << format << ' ' << middle;
      ASSERT_EQ(saturated(format, std::nextafter(middle, infinity)), up) << format << ' ' << middle;
      if (!at_the_end) continue;
      // 464 is a tie, and 448 is even; 65520 is a tie, and 65504 is odd.
      const double beyond = nearest(format, Overflow::to_infinity, std::nextafter(middle, infinity));
      EXPECT_TRUE(format == QKCTS_E4M3FN ? std::isnan(beyond) : beyond == infinity) << format;
      EXPECT_EQ(nearest(format, Overflow::to_infinity, std::nextafter(middle, 0.0)), low) << format;
    }
  }
}

// The way over binary32 rounds twice: 1 + 2^-8 + 2^-40 is above the middle in bfloat16, its binary32 neighbour a tie.
TEST(Rounding, RoundsOnce) {
  const double value = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(saturated(QKCTS_BFLOAT16, value), 1 + 0x1p-7);
  EXPECT_EQ(from_bfloat16(to_bfloat16(static_cast<float>(value))), 1.0f);
}

TEST(Rounding, AgreesWithTheConversionOfBinary32) {
  for (std::uint32_t i = 0; i < 200000; ++i) {
    const double value =
        std::ldexp(1 + static_cast<double>(i * 2654435761u) * 0x1p-32, static_cast<int>(i % 320) - 170);
    ASSERT_EQ(nearest(QKCTS_BINARY32, Overflow::to_infinity, value), static_cast<double>(static_cast<float>(value)));
    const auto once = static_cast<float>(value);
    ASSERT_EQ(nearest(QKCTS_BINARY16, Overflow::to_infinity, once), from_binary16(to_binary16(once)));
    ASSERT_EQ(nearest(QKCTS_BFLOAT16, Overflow::to_infinity, once), from_bfloat16(to_bfloat16(once)));
  }
}

TEST(Rounding, SpecialValues) {
  for (const std::uint32_t format : narrow_formats) {
    EXPECT_TRUE(std::isnan(saturated(format, std::numeric_limits<double>::quiet_NaN())));
    EXPECT_TRUE(std::signbit(saturated(format, -0.0)));
    EXPECT_TRUE(std::signbit(saturated(format, -1e-300)));
    EXPECT_EQ(saturated(format, -1e-300), 0.0);
    EXPECT_EQ(saturated(format, -infinity), -saturated(format, 1e300));
  }
  EXPECT_TRUE(std::isnan(nearest(QKCTS_E4M3FN, Overflow::to_infinity, -infinity)));
  EXPECT_EQ(nearest(QKCTS_E5M2, Overflow::to_infinity, -infinity), -infinity);
}

}  // namespace
}  // namespace qkcts::scalar
