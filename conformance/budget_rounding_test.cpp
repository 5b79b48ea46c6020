// SPDX-License-Identifier: Apache-2.0
// Rounding points: what a number behind one may be, and inputs on which simpler formulas reject correct code.
#include "conformance/budget_rounding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "conformance/budget_rope.hpp"
#include "conformance/budget_rounded_output.hpp"
#include "conformance/budget_rounded_rope.hpp"
#include "conformance/plain_profile.hpp"

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;
constexpr double infinity = std::numeric_limits<double>::infinity();

const BudgetArithmetic& plain() {
  static const BudgetArithmetic arithmetic(plain_profile(), all_budget_terms);
  return arithmetic;
}

RoundingPoint point(Format format, bool saturates = false, const BudgetArithmetic& arithmetic = plain()) {
  return {BudgetTerm::rounding_point, static_cast<std::uint32_t>(format), saturates, arithmetic};
}

double rounded(Format format, double x, bool saturates = false) {
  return decode(format, encode(format, x, saturates ? Overflow::saturate : Overflow::to_infinity));
}

TEST(RoundingPoint, ErrorIsZeroAwayFromABoundaryAndANeighbourBesideOne) {
  const RoundingPoint p = point(Format::bfloat16);
  EXPECT_EQ(p.moved(1.001, 0, 0, 1), 0);
  EXPECT_EQ(p.moved(1.001, 0, 0x1p-10, 1), 0);
  const double middle = 1 + 0x1p-8;  // between 1 and 1 + 2^-7; the tie itself goes to 1
  EXPECT_EQ(p.moved(middle - 0x1p-20, 0, 0x1p-21, 1), 0);
  EXPECT_NEAR(p.moved(middle - 0x1p-20, 0, 0x1p-19, 1), 0x1p-7, 1e-15);
  EXPECT_NEAR(p.moved(middle + 0x1p-20, 0, 0x1p-19, 1 + 0x1p-7), 0x1p-7, 1e-15);
  // Any number of neighbours, and not one more.
  EXPECT_NEAR(p.moved(1.5, 0, 0x1p-7 * 2.6, 1.5), 0x1p-7 * 3, 1e-15);
  EXPECT_NEAR(p.moved(1.5, 0, 0x1p-7 * 2.4, 1.5), 0x1p-7 * 2, 1e-15);
}

// Where x may be off at all, what it is itself known to counts as well, and a tie belongs to both sides. Where it is
// computed exactly the tie is decided.
TEST(RoundingPoint, ATieIsUndecidedUnlessItIsExact) {
  const double middle = 1 + 0x1p-8, tiny = 0x1p-60;
  EXPECT_NEAR(point(Format::bfloat16).moved(middle, 0x1p-50, tiny, 1), 0x1p-7, 1e-15);
  EXPECT_NEAR(point(Format::bfloat16).moved(middle, 0x1p-50, tiny, 1 + 0x1p-7), 0x1p-7, 1e-15);
  EXPECT_EQ(point(Format::bfloat16).moved(middle, 0x1p-50, 0, 1), 0);
  EXPECT_EQ(point(Format::bfloat16).moved(middle, 0x1p-50, 0), 0);
  EXPECT_NEAR(point(Format::bfloat16).moved(middle, 0x1p-50, tiny), 0x1p-7, 1e-15);
}

// Sums of two numbers of a point: the accumulator holds them unless their quanta are too far apart.
TEST(RoundingPoint, SumsThatNeedNoRounding) {
  const RoundingPoint p = point(Format::bfloat16);
  EXPECT_TRUE(p.adds_exactly({1, 1.5}, {0.25, 0.5}));
  EXPECT_TRUE(p.adds_exactly({1, 1}, {0x1p-16, 0x1p-16}));
  EXPECT_FALSE(p.adds_exactly({1, 1.5}, {0x1p-18, 0x1p-18}));
  EXPECT_FALSE(p.adds_exactly({1, 1.5}, {0, 0.5}));  // the second may be anything small
  EXPECT_TRUE(p.adds_exactly({1, 1.5}, {0, 0}));
  EXPECT_FALSE(point(Format::binary32).adds_exactly({1, 1.5}, {0.25, 0.5}));
  std::mt19937_64 random(4);
  for (int i = 0; i < 20000; ++i) {
    const auto number = [&] {
      const double x = std::ldexp(static_cast<double>(random() >> 11), -53 - static_cast<int>(random() % 20));
      return rounded(Format::bfloat16, x);
    };
    const double a = number(), b = number();
    if (p.adds_exactly({a, a}, {b, b})) {
      ASSERT_EQ(static_cast<double>(static_cast<float>(a) + static_cast<float>(b)), a + b);
      ASSERT_EQ(static_cast<double>(static_cast<float>(a) - static_cast<float>(b)), a - b);
    }
  }
}

// The bound is what the numbers of the interval become, no more and no less.
TEST(RoundingPoint, BoundIsAttainedByItsOwnEnds) {
  std::mt19937_64 random(5);
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  Profile profile = plain_profile();
  profile.accumulator = Format::binary64;  // it holds all formats
  const BudgetArithmetic wide(profile, all_budget_terms);
  int beyond_one = 0, zero = 0;
  for (const Format format :
       {Format::bfloat16, Format::binary16, Format::binary32, Format::e4m3fn, Format::e5m2, Format::binary64}) {
    const RoundingPoint p = point(format, true, wide);
    for (int i = 0; i < 4000; ++i) {
      const double x = std::ldexp(2 * unit() - 1, static_cast<int>(random() % 12) - 6);
      const double error = std::fabs(x) * std::ldexp(unit(), -static_cast<int>(random() % 14));
      const double z = rounded(format, x, true);
      const double bound = p.moved(x, 0, error, z);
      double worst = 0;
      for (const double share : {-1.0, -0.5, -0.1, 0.0, 0.3, 1.0}) {
        worst = std::max(worst, std::fabs(rounded(format, x + share * error, true) - z));
      }
      EXPECT_LE(worst, bound);
      EXPECT_LE(bound, worst * (1 + 0x1p-40) + (error + std::fabs(x)) * 0x1p-51) << x << " " << error;
      beyond_one += worst > 1.5 * ulp(format, z) ? 1 : 0;
      zero += bound == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(beyond_one, 1000);
  EXPECT_GT(zero, 1000);
}

TEST(RoundingPoint, OverflowIsOutsideTheDomainUnlessItSaturates) {
  EXPECT_EQ(point(Format::e4m3fn).moved(460, 0, 3, 448), 0);  // 463 still becomes 448
  EXPECT_EQ(point(Format::e4m3fn).moved(460, 0, 5, 448), infinity);
  EXPECT_EQ(point(Format::e4m3fn, true).moved(460, 0, 5, 448), 0);
  EXPECT_EQ(point(Format::e4m3fn, true).moved(-1e9, 0, 5, -448), 0);
  EXPECT_EQ(point(Format::e5m2).moved(57344, 0, 4096, 57344), infinity);  // 61440 is half way to 65536
  EXPECT_EQ(point(Format::binary16).moved(65519, 0, 0.5, 65504), 0);
  EXPECT_EQ(point(Format::binary16).moved(65519, 0, infinity, 65504), infinity);
}

// Below the subnormal numbers of a format: 2^-10 lies half way between 0 and 2^-9.
TEST(RoundingPoint, SubnormalNumbersOfANarrowFormat) {
  EXPECT_EQ(point(Format::e4m3fn).moved(0x1p-11, 0, 0x1p-13, 0), 0);
  EXPECT_EQ(point(Format::e4m3fn).moved(0x1p-11, 0, 0x1p-11, 0), 0x1p-9 * (1 + 0x1p-52));
  EXPECT_EQ(point(Format::e4m3fn).moved(0x1p-11, 0, 0, 0), 0);
}

TEST(RoundingPoint, FlushingProfilesMayReturnZero) {
  Profile profile = plain_profile();
  profile.flush_to_zero = true;
  const BudgetArithmetic flushing(profile, all_budget_terms);
  const double small = 0x1p-127;  // subnormal in bfloat16
  EXPECT_EQ(point(Format::bfloat16).moved(small, 0, 0, small), 0);
  EXPECT_GE(point(Format::bfloat16, false, flushing).moved(small, 0, 0, small), small);
  EXPECT_GE(point(Format::bfloat16, false, flushing).moved(-small, 0, 0, -small), small);
  EXPECT_EQ(point(Format::bfloat16, false, flushing).moved(0x1p-125, 0, 0, 0x1p-125), 0);
}

// A format that the accumulator does not hold: the number is read back with a rounding.
TEST(RoundingPoint, WideFormatsAreReadBack) {
  Profile profile = plain_profile();
  profile.accumulator = Format::binary16;
  const BudgetArithmetic narrow(profile, all_budget_terms);
  const double x = 1 + 0x1p-20;  // a binary32 number, no binary16 one
  const double bound = point(Format::binary32, false, narrow).moved(x, 0, 0, x);
  EXPECT_GE(bound, std::fabs(rounded(Format::binary16, x) - x));
  EXPECT_LE(bound, 0x1.1p-11);
  EXPECT_EQ(point(Format::e5m2, false, narrow).moved(1.01, 0, 0, 1), 0);
  // An accumulator number passes such a point as it is: the error before it covers it.
  const double computed = rounded(Format::binary16, 1.0007);
  EXPECT_LE(std::fabs(computed - rounded(Format::binary32, 1.0007)),
            point(Format::binary32, false, narrow)
                .moved(1.0007, 0, std::fabs(computed - 1.0007), rounded(Format::binary32, 1.0007)));
}

TEST(RoundingPoint, NumbersThatNobodyKnowsMoveByTwoRoundings) {
  const RoundingPoint p = point(Format::bfloat16);
  std::mt19937_64 random(3);
  double largest = 0;
  for (int i = 0; i < 20000; ++i) {
    const double x = std::ldexp(static_cast<double>(random() >> 11), -53);
    const double error = 1e-4;
    const double moved = std::fabs(rounded(Format::bfloat16, x + error) - rounded(Format::bfloat16, x));
    ASSERT_LE(moved, p.moved_anywhere(1, error));
    largest = std::max(largest, moved / p.moved_anywhere(1, error));
  }
  EXPECT_GT(largest, 0.4);
  EXPECT_EQ(p.moved_anywhere(3.4e38, 1e37), infinity);
}

TEST(RoundingPoint, FormatsThatHoldOthers) {
  EXPECT_TRUE(holds(Format::bfloat16, Format::e4m3fn));
  EXPECT_TRUE(holds(Format::bfloat16, Format::e5m2));
  EXPECT_TRUE(holds(Format::binary16, Format::e4m3fn));
  EXPECT_TRUE(holds(Format::binary16, Format::e5m2));
  EXPECT_TRUE(holds(Format::binary32, Format::bfloat16));
  EXPECT_TRUE(holds(Format::binary32, Format::binary32));
  EXPECT_FALSE(holds(Format::binary16, Format::bfloat16));
  EXPECT_FALSE(holds(Format::bfloat16, Format::binary16));
  EXPECT_FALSE(holds(Format::bfloat16, Format::binary32));
  EXPECT_FALSE(holds(Format::e5m2, Format::e4m3fn));
}

// Two lanes of a norm rounded to bfloat16, turned so that the result nearly cancels. One lane lies at the boundary of
// two numbers: its neighbour moves the result by millions of units in its last place, which "the other neighbour of the
// result" does not cover.
TEST(RoundingPoint, ANeighbourBeforeACancellingRotation) {
  const double a = 1 + 0x1p-8 + 0x1p-30, b = 1 + 0x1p-7;
  VectorError vector;
  vector.magnitude = {a, b};
  vector.error = {1e-6, 1e-6};
  const double before[] = {a, b}, after[] = {1 + 0x1p-7, 1 + 0x1p-7};
  round_errors(vector, before, after, 0, 2, point(Format::bfloat16));
  EXPECT_NEAR(vector.error[0], 0x1p-7, 1e-12);
  EXPECT_EQ(vector.error[1], 0);
  EXPECT_EQ(vector.magnitude[0], after[0]);
  EXPECT_EQ(vector.held[0], QKCTS_BFLOAT16);
  const float cosine = 0x1.6a09e6p-1f, sine = 0x1.6a09e4p-1f;
  const double exact = after[0] * static_cast<double>(cosine) - after[1] * static_cast<double>(sine);
  const double got = static_cast<double>(1.0f * cosine - (1 + 0x1p-7f) * sine);  // a rounded down instead
  const double result_ulp = ulp(Format::bfloat16, exact);
  EXPECT_GT(std::fabs(got - exact), 1e6 * result_ulp);
  rotate_errors(vector, {0, 1}, {static_cast<double>(cosine), static_cast<double>(sine), 0, 0}, plain());
  EXPECT_GT(std::fabs(got - exact), 2 * result_ulp);  // the other neighbour of the result
  EXPECT_LE(std::fabs(got - exact), vector.error[0]);
  EXPECT_GT(std::fabs(got - exact), 0.99 * vector.error[0]);
}

// Products of a rotation that are rounded for themselves: each may go to a neighbour, the sum to several.
TEST(RoundingPoint, RoundedProductsOfARotation) {
  std::mt19937_64 random(11);
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-52 - 1; };
  const auto product = [](double x, double y) {
    return rounded(Format::bfloat16, static_cast<double>(static_cast<float>(x) * static_cast<float>(y)));
  };
  const RoundingPoint p = point(Format::bfloat16);
  int moved = 0, settled = 0;
  for (int i = 0; i < 100000; ++i) {
    const double x[] = {rounded(Format::bfloat16, unit()), rounded(Format::bfloat16, unit())};
    const double c = rounded(Format::binary32, unit()), s = rounded(Format::binary32, unit());
    const double step = i % 2 == 0 ? 0 : ulp(Format::bfloat16, x[0]);
    VectorError vector;
    vector.magnitude = {std::fabs(x[0]), std::fabs(x[1])};
    vector.error = {step, 0};
    rotate_rounded_errors(vector, {0, 1}, {c, s, 0, 0}, WaveKnowledge::value, p, plain());
    // Exact products of two binary32 numbers, rounded once; against what binary32 makes of a neighbour.
    const double exact = rounded(Format::bfloat16, x[0] * c) - rounded(Format::bfloat16, x[1] * s);
    const double got =
        static_cast<double>(static_cast<float>(product(x[0] + step, c)) - static_cast<float>(product(x[1], s)));
    ASSERT_LE(std::fabs(got - exact), vector.error[0]) << i;
    moved += got != exact ? 1 : 0;
    if (step == 0) {
      ASSERT_LE(vector.error[0], 2.1 * 0x1p-8 + 4 * u);
      settled += vector.error[0] == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(settled, 45000);  // of 50,000
  EXPECT_GT(moved, 1000);
}

// Rounded weights do not add up to 1, and the output is no mean of the values: equal values do not save it.
TEST(RoundedOutput, EqualValuesDoNotMakeAMean) {
  const std::vector<double> p = {0.5 + 0x1p-8, 0.5}, errors = {0x1p-8, 0};  // exact weights 0.5 +- 2^-9 and a bit
  const std::vector<double> v = {1000, 1000}, exact = {1000 + 1000 * 0x1p-8};
  ValueRows values;
  values.length = 1;
  values.base = v.data();
  values.v = {&v[0], &v[1]};
  const OutputError d = rounded_output_errors(p, errors, values, exact, 4, 0, plain());
  const double got = 1000 * 0.5 + 1000 * 0.5;  // the first weight went to its neighbour
  EXPECT_LE(std::fabs(got - exact[0]), d.error[0]);
  EXPECT_GT(std::fabs(got - exact[0]), 0.99 * d.error[0]);
  EXPECT_EQ(d.hull[0], 0);
  const OutputError settled = rounded_output_errors(p, std::vector<double>{0, 0}, values, exact, 4, 0, plain());
  EXPECT_LT(settled.error[0], 8 * u * 1000);
  const OutputError outside = rounded_output_errors(p, std::vector<double>{0, infinity}, values, exact, 4, 0, plain());
  EXPECT_EQ(outside.error[0], INFINITY);
}

}  // namespace
}  // namespace qkcts
