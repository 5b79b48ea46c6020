// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/executor/matrix_unit.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/cuda/element.hpp"

namespace qkcts::cuda {
namespace {

constexpr UnitModel v100{4, 23}, a100{8, 24}, h100{16, 25};

float widened(NarrowFormat format, std::uint16_t bits) {
  return format == NarrowFormat::bfloat16 ? from_bfloat16(bits) : from_binary16(bits);
}

std::uint16_t narrowed(NarrowFormat format, double value) {
  const auto x = static_cast<float>(value);
  return format == NarrowFormat::bfloat16 ? to_bfloat16(x) : to_binary16(x);
}

// The model once more, on binary64 numbers instead of integers: align, cut off, add exactly, round toward zero.
float model(const UnitModel& unit, NarrowFormat format, float accumulator, const std::vector<std::uint16_t>& a,
            const std::vector<std::uint16_t>& b) {
  for (std::size_t first = 0; first < a.size(); first += static_cast<std::size_t>(unit.products)) {
    const std::size_t last = std::min(a.size(), first + static_cast<std::size_t>(unit.products));
    int top = accumulator == 0 ? -9999 : std::ilogb(accumulator);
    for (std::size_t i = first; i < last; ++i) {
      const float x = widened(format, a[i]), y = widened(format, b[i]);
      if (x != 0 && y != 0) top = std::max(top, std::ilogb(x) + std::ilogb(y));
    }
    if (top == -9999) {
      accumulator = 0;
      continue;
    }
    const auto cut = [&](double x) { return std::trunc(std::ldexp(x, unit.fraction - top)); };
    double sum = cut(static_cast<double>(accumulator));
    for (std::size_t i = first; i < last; ++i)
      sum += cut(static_cast<double>(widened(format, a[i])) * static_cast<double>(widened(format, b[i])));
    const double exact = std::ldexp(sum, top - unit.fraction);
    accumulator = static_cast<float>(exact);
    if (std::fabs(static_cast<double>(accumulator)) > std::fabs(exact)) accumulator = std::nextafter(accumulator, 0.0f);
  }
  return accumulator;
}

TEST(MatrixUnit, HasTheBitsOfTheModelForAnyOperands) {
  std::mt19937_64 source(7);
  for (int i = 0; i < 60000; ++i) {
    const UnitModel unit = i % 3 == 0 ? v100 : i % 3 == 1 ? a100 : h100;
    const NarrowFormat format = i % 2 == 0 ? NarrowFormat::bfloat16 : NarrowFormat::binary16;
    // Exponents of all sizes, or near each other, or subnormal.
    const int spread = i / 6 % 3 == 0 ? 30 : i / 6 % 3 == 1 ? 3 : 0;
    const double smallest = format == NarrowFormat::bfloat16 ? 0x1p-66 : 0x1p-20;
    const auto draw = [&] {
      const double mantissa = std::uniform_real_distribution<double>(-2, 2)(source);
      const int exponent = spread == 0 ? 0 : std::uniform_int_distribution<int>(-spread, spread)(source);
      return mantissa * (spread == 0 ? smallest : std::ldexp(1.0, exponent / 3));
    };
    std::vector<std::uint16_t> a, b;
    for (int k = 0; k < 16; ++k) {
      a.push_back(narrowed(format, draw()));
      b.push_back(narrowed(format, draw()));
    }
    const auto accumulator = static_cast<float>(draw() * draw());
    ASSERT_EQ(std::bit_cast<std::uint32_t>(sum_on_unit(unit, format, accumulator, a.data(), b.data(), 16)),
              std::bit_cast<std::uint32_t>(model(unit, format, accumulator, a, b)))
        << i;
  }
}

// One product of 1 and K - 1 just below the last bit that is kept: all of them are lost, although together they are
// almost (K - 1) of that bit. With a cut after one bit more nothing would be.
TEST(MatrixUnit, LosesWhatLiesBelowTheCut) {
  for (const UnitModel& unit : {v100, a100, h100}) {
    for (const NarrowFormat format : {NarrowFormat::bfloat16, NarrowFormat::binary16}) {
      const double tail = std::ldexp(1 - 0x1p-8, -unit.fraction);  // a[i] = 2^-12 or so, b[i] the rest
      std::vector<std::uint16_t> a(static_cast<std::size_t>(unit.products), narrowed(format, 0x1p-12));
      std::vector<std::uint16_t> b(a.size(), narrowed(format, tail * 0x1p12));
      a[0] = b[0] = narrowed(format, 1);
      EXPECT_EQ(sum_on_unit(unit, format, 0, a.data(), b.data(), a.size()), 1.0f);
      const double kept = unit.products * 0.5 * std::ldexp(1.0, -unit.fraction);  // the least that is not lost
      const UnitModel longer{unit.products, unit.fraction + 1};
      const float more = sum_on_unit(longer, format, 0, a.data(), b.data(), a.size());
      if (kept >= 0x1p-23) {
        EXPECT_GT(more, 1.0f);
      }
      // The loss is what the profiles grant for K products: 2^-F each, and 2^-23 for the rounding.
      const double lost = (unit.products - 1) * tail;
      EXPECT_LE(lost, unit.products * std::ldexp(1.0, -unit.fraction) + 0x1p-23);
      EXPECT_GT(lost, 0.7 * (unit.products - 1) * std::ldexp(1.0, -unit.fraction));
    }
  }
}

TEST(MatrixUnit, RoundsTowardZeroAndHasNoStickyBit) {
  // 1 + 2^-24 + 2^-24: two halves of an ulp are kept by F = 24 and make one; by F = 23 they are lost.
  const std::uint16_t one = to_bfloat16(1), small = to_bfloat16(0x1p-12f);
  const std::uint16_t a[] = {one, small, small}, b[] = {one, small, small};
  EXPECT_EQ(sum_on_unit(a100, NarrowFormat::bfloat16, 0, a, b, 3), 1 + 0x1p-23f);
  EXPECT_EQ(sum_on_unit(v100, NarrowFormat::bfloat16, 0, a, b, 3), 1.0f);
  // One half is rounded away, in either sign.
  EXPECT_EQ(sum_on_unit(a100, NarrowFormat::bfloat16, 0, a, b, 2), 1.0f);
  EXPECT_EQ(sum_on_unit(a100, NarrowFormat::bfloat16, -3, a, b, 1), -2.0f);
}

TEST(MatrixUnit, SpecialValuesPass) {
  const std::uint16_t infinite = 0x7f80, one = to_bfloat16(1), zero = 0;
  const std::uint16_t a[] = {one, infinite}, b[] = {one, one}, c[] = {one, zero};
  EXPECT_EQ(sum_on_unit(a100, NarrowFormat::bfloat16, 0, a, b, 2), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(sum_on_unit(a100, NarrowFormat::bfloat16, 0, a, c, 2)));
}

// The fragments of a warp as the PTX ISA lays them out, against sums of rows and columns.
TEST(MatrixUnit, FragmentsAreThoseOfM16n8k16) {
  std::mt19937_64 source(3);
  std::vector<std::uint16_t> a(16 * 16), b(16 * 8);
  std::vector<float> c(16 * 8), got(16 * 8);
  for (auto* list : {&a, &b})
    for (std::uint16_t& x : *list) x = to_binary16(std::uniform_real_distribution<float>(-2, 2)(source));
  for (float& x : c) x = std::uniform_real_distribution<float>(-2, 2)(source);
  run_grid({}, 0, {}, [&] {
    if (this_thread().index >= executor_lanes) return;
    const unsigned g = lane_index() / 4, t = lane_index() % 4;
    const auto pair = [](std::uint16_t low, std::uint16_t high) { return std::uint32_t{high} << 16 | low; };
    const auto of_a = [&](unsigned r, unsigned k) { return pair(a[r * 16 + k], a[r * 16 + k + 1]); };
    const auto of_b = [&](unsigned k, unsigned n) { return pair(b[k * 8 + n], b[(k + 1) * 8 + n]); };
    const std::uint32_t left[4] = {of_a(g, 2 * t), of_a(g + 8, 2 * t), of_a(g, 2 * t + 8), of_a(g + 8, 2 * t + 8)};
    const std::uint32_t right[2] = {of_b(2 * t, g), of_b(2 * t + 8, g)};
    float sums[4] = {c[g * 8 + 2 * t], c[g * 8 + 2 * t + 1], c[(g + 8) * 8 + 2 * t], c[(g + 8) * 8 + 2 * t + 1]};
    multiply_on_unit(NarrowFormat::binary16, sums, left, right);
    for (unsigned i = 0; i < 4; ++i) got[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sums[i];
  });
  for (std::size_t r = 0; r < 16; ++r) {
    for (std::size_t n = 0; n < 8; ++n) {
      std::uint16_t column[16];
      for (std::size_t k = 0; k < 16; ++k) column[k] = b[k * 8 + n];
      EXPECT_EQ(got[r * 8 + n], sum_on_unit(a100, NarrowFormat::binary16, c[r * 8 + n], a.data() + r * 16, column, 16));
    }
  }
}

}  // namespace
}  // namespace qkcts::cuda
