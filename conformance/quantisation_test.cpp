// SPDX-License-Identifier: Apache-2.0
#include "conformance/quantisation.hpp"

#include <cfenv>
#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "conformance/format.hpp"

namespace qkcts {
namespace {

// By trying every code: the nearest, of two equally near ones the even. Distances are exact in long double where x and
// scale have 24 bits.
int code_by_search(double x, double scale, int lowest, int highest) {
  int best = lowest;
  for (int code = lowest; code <= highest; ++code) {
    const long double distance = std::fabs(static_cast<long double>(x) - static_cast<long double>(code) * scale);
    const long double least = std::fabs(static_cast<long double>(x) - static_cast<long double>(best) * scale);
    if (distance < least || (distance == least && code % 2 == 0)) best = code;
  }
  return best;
}

std::uint64_t next_random(std::uint64_t& state) {
  return state = state * 6364136223846793005U + 1442695040888963407U;
}

TEST(Quantisation, TheNearestCodeByASearch) {
  std::uint64_t state = 7;
  for (int i = 0; i < 20000; ++i) {
    const double scale =
        static_cast<float>(std::ldexp(1.0 + static_cast<double>(next_random(state) >> 41) * 0x1p-23, -5));
    const double x = static_cast<float>((static_cast<double>(next_random(state) >> 40) * 0x1p-24 - 0.5) * 300 * scale);
    ASSERT_EQ(quantise(x, scale), code_by_search(x, scale, -128, 127)) << x << " " << scale;
  }
}

TEST(Quantisation, TiesGoToEven) {
  for (const double scale : {1.0, 0x1.8p-20, 0x1.fffffep+100, 0x1p-149})
    for (int n = -127; n < 127; ++n)
      EXPECT_EQ(quantise((n + 0.5) * scale, scale), n % 2 == 0 ? n : n + 1) << n << " " << scale;
}

TEST(Quantisation, BesideATieTheSideDecides) {
  for (int n = 0; n < 127; ++n)
    for (const double scale : {0x1.555556p+0, 0x1.fffffep-3, 0x1.2f1a9ep+4, 0x1.99999ap-4}) {
      const double tie = (n + 0.5) * scale;
      const double above = std::nextafter(tie, HUGE_VAL);
      EXPECT_EQ(quantise(above, scale), n + 1);
      EXPECT_EQ(quantise(-above, scale), -(n + 1));
      EXPECT_EQ(quantise(std::nextafter(tie, 0), scale), n);
    }
}

TEST(Quantisation, GivenScaleSaturates) {
  EXPECT_EQ(quantise(127.49, 1), 127);
  EXPECT_EQ(quantise(127.5, 1), 127);
  EXPECT_EQ(quantise(1e300, 0x1p-149), 127);
  EXPECT_EQ(quantise(-128.4, 1), -128);
  EXPECT_EQ(quantise(-1e300, 0x1p-149), -128);
  EXPECT_EQ(quantise(0.5, 1), 0);
  EXPECT_EQ(quantise(-0.0, 1), 0);
}

double scale_of(double largest) {
  const double x[] = {largest / 3, -largest, 0};
  return quantise_blocks(x).scales[0];
}

TEST(Quantisation, TheScaleOnTiesAndBesideThem) {
  for (std::uint64_t low = 1; low < 0x7bff; low += 7) {
    const double midpoint = (decode(Format::binary16, low) + decode(Format::binary16, low + 1)) / 2;
    const double tie = 127 * midpoint;
    EXPECT_EQ(scale_of(tie), decode(Format::binary16, low % 2 == 0 ? low : low + 1));
    EXPECT_EQ(scale_of(std::nextafter(tie, 0)), decode(Format::binary16, low));
    EXPECT_EQ(scale_of(std::nextafter(tie, HUGE_VAL)), decode(Format::binary16, low + 1));
  }
}

TEST(Quantisation, ABlockIsScaledByItsLargest) {
  std::vector<double> x(70);
  const double scales[] = {1, 0.25, 0x1p-10};
  for (int i = 0; i < 70; ++i) x[static_cast<std::size_t>(i)] = scales[i / 32] * (i % 32 == 5 ? -127 : i % 7);
  const QuantisedBlocks blocks = quantise_blocks(x);
  ASSERT_EQ(blocks.scales.size(), 3u);
  EXPECT_EQ(blocks.scales[0], 1);
  EXPECT_EQ(blocks.scales[1], 0.25);
  EXPECT_EQ(blocks.scales[2], 0x1p-10);
  EXPECT_EQ(blocks.codes[5], -127);
  EXPECT_EQ(blocks.codes[37], -127);
  EXPECT_EQ(dequantised(blocks), x);
}

// Rounded down, the scale is too small for the largest number: its code stays at 127.
TEST(Quantisation, CodesOfABlockEndAt127) {
  const double x[] = {127.06, -127.06, 63.4};
  const QuantisedBlocks blocks = quantise_blocks(x);
  EXPECT_EQ(blocks.scales[0], 1);
  EXPECT_EQ(blocks.codes, (std::vector<std::int8_t>{127, -127, 63}));
  const double large[] = {1e30, -2e30};
  EXPECT_EQ(quantise_blocks(large).scales[0], 65504);
  EXPECT_EQ(quantise_blocks(large).codes, (std::vector<std::int8_t>{127, -127}));
}

TEST(Quantisation, SmallScales) {
  const double zeros[] = {0.0, -0.0, 0.0};
  EXPECT_EQ(quantise_blocks(zeros).scales[0], 0);
  EXPECT_EQ(quantise_blocks(zeros).codes, (std::vector<std::int8_t>{0, 0, 0}));
  const double vanishing[] = {127 * 0x1p-25, -1e-30};  // a tie between 0 and 2^-24
  EXPECT_EQ(quantise_blocks(vanishing).scales[0], 0);
  EXPECT_EQ(quantise_blocks(vanishing).codes, (std::vector<std::int8_t>{0, 0}));
  const double subnormal[] = {127 * 0x1.8p-24, 0x1p-24, -0x1.8p-23};  // 1.5 units of 2^-24 become 2
  EXPECT_EQ(quantise_blocks(subnormal).scales[0], 0x1p-23);
  EXPECT_EQ(quantise_blocks(subnormal).codes, (std::vector<std::int8_t>{95, 0, -2}));  // 95.25; 1/2 and -3/2 are ties
  const double tight[] = {127 * 0x1.7ffffp-24, -0x1p-24};                              // 1.49... units become 1
  EXPECT_EQ(quantise_blocks(tight).scales[0], 0x1p-24);
  EXPECT_EQ(quantise_blocks(tight).codes, (std::vector<std::int8_t>{127, -1}));
}

TEST(Quantisation, TheRoundingModeOfTheThreadIsNotUsed) {
  const double above = std::nextafter(2.5 * 0x1.555556p+0, HUGE_VAL);
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const std::int8_t code = quantise(above, 0x1.555556p+0);
    const double scale = scale_of(127 * (1 + 0x1p-11));
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(code, 3);
    EXPECT_EQ(scale, 1);
  }
}

}  // namespace
}  // namespace qkcts
