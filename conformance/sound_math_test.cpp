// SPDX-License-Identifier: Apache-2.0
#include "conformance/sound_math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace qkcts {
namespace {

// long double has 64 bits here, so it tells 2^-46 from 0; where it is no wider than double the margins still hold.
void expect_tight_above(double bound, long double exact) {
  EXPECT_GE(static_cast<long double>(bound), exact);
  EXPECT_LE(static_cast<long double>(bound), exact * (1 + 0x1p-42L)) << static_cast<double>(exact);
}

TEST(SoundMath, BoundsLieOnTheirSideAndAreTight) {
  double x = 0x1p-60;
  for (int step = 0; step < 2800; ++step, x *= 1.0173) {
    const long double wide = x;
    expect_tight_above(expm1_upper(x), std::expm1(wide));
    expect_tight_above(log1p_upper(x), std::log1p(wide));
    expect_tight_above(exp_upper(x), std::exp(wide));
    EXPECT_LE(static_cast<long double>(exp_lower(x)), std::exp(wide));
    EXPECT_GE(static_cast<long double>(exp_lower(x)), std::exp(wide) * (1 - 0x1p-42L));
    EXPECT_LE(static_cast<long double>(exp_lower(-x)), std::exp(-wide));
    expect_tight_above(exp_upper(-x), std::exp(-wide));
    if (x < 1) {
      expect_tight_above(minus_log1m_upper(x), -std::log1p(-wide));
    } else {
      EXPECT_GE(static_cast<long double>(log_upper(x)), std::log(wide));
      EXPECT_LE(static_cast<long double>(log_upper(x)), std::log(wide) * (1 + 0x1p-42L) + 0x1p-59L);
    }
  }
}

// Groups that the wide form covers, groups with a number that it does not, and groups that are not full.
TEST(SoundMath, OfManyNumbersHasTheSameBits) {
  std::vector<double> numbers = {0, 0x1p-1074, 0x1p-600, 0.3399, 0.34, 300, 709, 710};
  double x = 0x1p-80;
  for (int step = 0; step < 60003; ++step, x *= 1.000907) numbers.push_back(x);
  std::vector<double> grown = numbers, sunk(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) sunk[i] = -numbers[i];
  const std::vector<double> negative = sunk;
  expm1_upper(grown);
  exp_upper(sunk);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(grown[i], expm1_upper(numbers[i])) << numbers[i];
    ASSERT_EQ(sunk[i], exp_upper(negative[i])) << negative[i];
  }
}

TEST(SoundMath, EndsAreSafe) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(expm1_upper(0), 0);
  EXPECT_EQ(expm1_upper(800), infinity);
  EXPECT_EQ(expm1_upper(infinity), infinity);
  EXPECT_GT(exp_upper(-1e9), 0);
  EXPECT_EQ(exp_lower(-1e9), 0);
  EXPECT_EQ(log1p_upper(0), 0);
  EXPECT_EQ(log1p_upper(infinity), infinity);
  EXPECT_EQ(minus_log1m_upper(1), infinity);
  EXPECT_EQ(minus_log1m_upper(0), 0);
}

// The trap that the evaluation rules exist for: the product form cancels to nothing at binary64.
TEST(SoundMath, JoinedRoundingsDoNotCancel) {
  const double u = 0x1p-53;
  EXPECT_EQ((1 + u) * (1 + u) - 1, 0);
  EXPECT_GT(joined(u, u), 2 * u - 0x1p-100);
  EXPECT_NEAR(growth_upper(128, u) / (128 * u), 1, 1e-12);
  EXPECT_NEAR(joined(0.5, 0.25, 1.0), 2.75, 0);
}

TEST(SoundMath, RoundsUpToBinary32) {
  EXPECT_EQ(binary32_upper(1), 1.0f);
  EXPECT_EQ(binary32_upper(1 + 0x1p-40), 1 + 0x1p-23f);
  EXPECT_EQ(binary32_upper(0x1p-200), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(binary32_upper(0), 0.0f);
  EXPECT_EQ(binary32_upper(1e39), std::numeric_limits<float>::infinity());
}

TEST(SoundMath, CircleIsBoundedFromAboveAndClosely) {
  for (int i = 0; i < 40000; ++i) {
    const double angle = i < 20000 ? i * 0x1.9p-9 : i * 26.1;
    const CircleBound bound = circle_upper(angle, 0);
    const double cosine = std::fabs(std::cos(angle)), sine = std::fabs(std::sin(angle));
    ASSERT_GE(bound.cos, cosine) << angle;
    ASSERT_GE(bound.sin, sine) << angle;
    ASSERT_LT(bound.cos, cosine + 0x1p-40) << angle;
    ASSERT_LT(bound.sin, sine + 0x1p-40) << angle;
  }
  EXPECT_LT(circle_upper(1e-20, 0).sin, 1.001e-20);
  EXPECT_GE(circle_upper(1, 0.1).cos, std::cos(0.9));
  EXPECT_EQ(circle_upper(0x1p20, 0).cos, 1);
  EXPECT_EQ(circle_upper(3, 1).sin, 1);
}

}  // namespace
}  // namespace qkcts
