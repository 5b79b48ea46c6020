// SPDX-License-Identifier: Apache-2.0
#include "vectors/counter_generator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace qkcts {
namespace {

using Counter = std::array<std::uint32_t, 4>;

// Known answers of Random123's kat_vectors for philox4x32 with 10 rounds.
TEST(CounterGenerator, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Counter{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}));
  const std::uint32_t ones = 0xffffffffU;
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Counter{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU}));
  EXPECT_EQ(philox4x32({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U}),
            (Counter{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U}));
}

TEST(CounterGenerator, EveryPartOfTheStateMatters) {
  const RandomStream stream(5, 1);
  EXPECT_EQ(stream.bits(3), RandomStream(5, 1).bits(3));
  EXPECT_NE(stream.bits(3), stream.bits(4));
  EXPECT_NE(stream.bits(3), RandomStream(5, 2).bits(3));
  EXPECT_NE(stream.bits(3), RandomStream(6, 1).bits(3));
  EXPECT_NE(stream.bits(3), stream.bits(3 + (std::uint64_t{1} << 32U)));
  EXPECT_NE(stream.bits(3), RandomStream(5 + (std::uint64_t{1} << 32U), 1).bits(3));
}

TEST(CounterGenerator, BelowIsTheHighHalfOfTheProduct) {
  const RandomStream stream(9, 0);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(stream.below(i, std::uint64_t{1} << 32U), stream.bits(i) >> 32U);
    const std::uint64_t high = stream.bits(i) >> 32U, low = stream.bits(i) & 0xffffffffU;
    EXPECT_EQ(stream.below(i, 3), (high * 3 + (low * 3 >> 32U)) >> 32U);
    EXPECT_EQ(stream.below(i, 1), 0U);
  }
}

TEST(CounterGenerator, UniformCoversTheIntervalEvenly) {
  const RandomStream stream(11, 0);
  constexpr int count = 20000;
  double sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double x = stream.uniform(i);
    ASSERT_GE(x, 0);
    ASSERT_LT(x, 1);
    sum += x;
  }
  EXPECT_NEAR(sum / count, 0.5, 5 * std::sqrt(1.0 / 12 / count));
}

TEST(CounterGenerator, GaussianHasTheMomentsOfTwelveUniforms) {
  const RandomStream stream(13, 0);
  constexpr int count = 50000;
  double sum = 0, squares = 0, fourths = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double x = stream.gaussian(i);
    ASSERT_EQ(std::floor(std::ldexp(x, 32)), std::ldexp(x, 32)) << "not a multiple of 2^-32";
    ASSERT_LE(std::abs(x), 6);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  EXPECT_NEAR(sum / count, 0, 5 / std::sqrt(double{count}));
  EXPECT_NEAR(squares / count, 1, 5 * std::sqrt(1.9 / count));
  EXPECT_NEAR(fourths / count, 2.9, 0.2);
}

TEST(CounterGenerator, PermutationIsOne) {
  std::vector<std::uint32_t> order = RandomStream(17, 0).permutation(1000);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(order[i], i);
  EXPECT_TRUE(RandomStream(17, 0).permutation(0).empty());
}

}  // namespace
}  // namespace qkcts
