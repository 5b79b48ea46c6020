// SPDX-License-Identifier: Apache-2.0
#include "harness/exact_distance.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace qkcts {
namespace {

TEST(ExactDistance, BordersAreDecidedBitByBit) {
  EXPECT_TRUE(distance(1.5, {1.0, 0}, 0.5).within);
  EXPECT_FALSE(distance(1.5, {1.0, -1}, 0.5).within);  // z is 2^-60 lower
  EXPECT_TRUE(distance(1.5, {1.0, 1}, 0.5).within);
  EXPECT_TRUE(distance(0.5, {1.0, 0}, 0.5).within);
  EXPECT_FALSE(distance(0.5, {1.0, 1}, 0.5).within);
}

TEST(ExactDistance, TermsThatBinary64AbsorbsStillCount) {
  // got - hi is 2^60 and Delta 2^60: only the low part, 2^-52/256, tells.
  EXPECT_TRUE(distance(0x1p60, {0.0, 0}, 0x1p60).within);
  EXPECT_TRUE(distance(-0x1p60, {1.0, -128}, 0x1p60 + 0x1p10).within);
  EXPECT_FALSE(distance(-0x1p60, {1.0, 0}, 0x1p60).within);
  EXPECT_FALSE(distance(0x1p60, {-0x1p-40, 0}, 0x1p60).within);
}

TEST(ExactDistance, SubnormalLowPartsAreNotLost) {
  const double tiny = 0x1p-1074;  // ulp64 of every subnormal
  EXPECT_TRUE(distance(tiny, {tiny, 0}, 0).within);
  EXPECT_FALSE(distance(tiny, {tiny, 1}, 0).within);  // z is 2^-1082 higher
  EXPECT_EQ(distance(tiny, {0.0, 0}, 0).in_units_of(tiny), 1.0);
  EXPECT_EQ(distance(tiny, {0.0, 64}, 0).in_units_of(tiny), 0.75);
}

TEST(ExactDistance, LargestValuesDoNotOverflow) {
  const double largest = 0x1.fffffffffffffp1023;
  const Distance far = distance(-largest, {largest, 0}, 1);
  EXPECT_FALSE(far.within);
  EXPECT_NEAR(far.in_units_of(0x1p971), 0x1p54, 4.0);
  EXPECT_TRUE(distance(largest, {largest, 0}, 0).within);
  EXPECT_FALSE(distance(largest, {largest, 1}, 0).within);
}

TEST(ExactDistance, ErrorCarriesItsSign) {
  EXPECT_EQ(distance(1.25, {1.0, 0}, 1).error, 0.25);
  EXPECT_EQ(distance(0.75, {1.0, 0}, 1).error, -0.25);
}

TEST(ExactDistance, ThresholdIsReachedFromBothSides) {
  const double largest = 0x1.fffffep127, half_ulp = 0x1p103;
  EXPECT_TRUE(reaches(1, {largest, 0}, 0x1p103, largest, half_ulp));
  EXPECT_FALSE(reaches(1, {largest, -1}, 0x1p103, largest, half_ulp));
  EXPECT_FALSE(reaches(-1, {largest, 0}, 0x1p103, largest, half_ulp));
  EXPECT_TRUE(reaches(-1, {-largest, 0}, 0x1p103, largest, half_ulp));
}

}  // namespace
}  // namespace qkcts
