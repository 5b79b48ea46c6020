// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include "reference/attention.hpp"
#include "reference/rounding.hpp"

namespace qkcts {
namespace {

// Plain MPFR at 600 bits, by a power instead of logarithm and exponential.
double twin(double theta, long rotated, long position, long i, bool sine, Format format) {
  Real power(600, static_cast<double>(2 * i));
  mpfr_div_si(power.get(), power.get(), rotated, MPFR_RNDN);
  Real angle(600, theta);
  mpfr_pow(angle.get(), angle.get(), power.get(), MPFR_RNDN);
  mpfr_si_div(angle.get(), position, angle.get(), MPFR_RNDN);
  (sine ? mpfr_sin : mpfr_cos)(angle.get(), angle.get(), MPFR_RNDN);
  return round_to_format(angle.get(), format);
}

TEST(RopeTables, AgreeWithPlainMpfr) {
  for (const Format format : {Format::binary32, Format::binary64}) {
    for (const double theta : {1e4, 1e6, 1.5}) {
      for (const long first : {0L, 1000L, 1048570L}) {
        const RopeTables tables = rope_tables(theta, 24, first, 5, format);
        ASSERT_EQ(tables.cos.shape, (std::vector<std::int64_t>{5, 12}));
        for (long row = 0; row < 5; ++row)
          for (long i = 0; i < 12; ++i) {
            const auto at = static_cast<std::size_t>(row * 12 + i);
            EXPECT_EQ(tables.cos.value(at), twin(theta, 24, first + row, i, false, format));
            EXPECT_EQ(tables.sin.value(at), twin(theta, 24, first + row, i, true, format));
          }
      }
    }
  }
}

// Angles formed in binary32, as runtimes do, are far off at long positions: the reason why tables are inputs.
TEST(RopeTables, Binary32AnglesDiffer) {
  const RopeTables tables = rope_tables(1e4, 64, 32768, 1, Format::binary32);
  double worst = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    const float angle = 32768.0f * std::pow(10000.0f, -static_cast<float>(i) / 32.0f);
    worst = std::max(worst, std::fabs(std::cos(static_cast<double>(angle)) - tables.cos.value(i)));
  }
  EXPECT_GT(worst, 1e-4);
}

TEST(RopeTables, PositionZeroIsExact) {
  const RopeTables tables = rope_tables(1e6, 8, 0, 1, Format::binary64);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(tables.cos.value(i), 1.0);
    EXPECT_EQ(tables.sin.value(i), 0.0);
  }
}

TEST(RopeTables, BadRequestsAreRefused) {
  EXPECT_THROW(rope_tables(1e4, 7, 0, 1, Format::binary32), InputError);
  EXPECT_THROW(rope_tables(0.0, 8, 0, 1, Format::binary32), InputError);
  EXPECT_THROW(rope_tables(1e4, 8, -1, 1, Format::binary32), InputError);
  EXPECT_THROW(rope_tables(1e4, 8, 0, std::int64_t{1} << 50, Format::binary32), InputError);
}

}  // namespace
}  // namespace qkcts
