// SPDX-License-Identifier: Apache-2.0
// What is settled at a glance is what the exact way says, bit for bit, and nothing near Delta is settled so.
#include "harness/quick_distance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "harness/exact_distance.hpp"
#include "harness/handmade_case.hpp"
#include "harness/judgement.hpp"

namespace qkcts {
namespace {

struct Element {
  double got = 0, hi = 0;
  std::int16_t lo = 0;
  float delta = 0;
};

// The elements as they stand in a stage.
struct Block {
  Format format = Format::binary32;
  std::vector<std::byte> got;
  std::vector<double> hi;
  std::vector<std::int16_t> lo;
  std::vector<float> delta;

  Block(Format of, const std::vector<Element>& elements) : format(of) {
    std::vector<double> values;
    for (const Element& e : elements) {
      values.push_back(e.got);
      hi.push_back(e.hi);
      lo.push_back(e.lo);
      delta.push_back(e.delta);
    }
    got = stage_bytes(format, values);
  }
  QuickElements elements() const { return {format, hi.size(), got.data(), hi.data(), lo.data(), delta.data()}; }
};

EachDistance each_of(Format format, const std::vector<Element>& elements) {
  EachDistance each;
  measure_each(Block(format, elements).elements(), each);
  return each;
}

Side side_of(const EachDistance& each, std::size_t i) {
  return static_cast<Side>(each.side[i]);
}

constexpr UlpSums sums_before = {{1, 2, 3, 4, 5, 6, 7, 8}, {-1, 0, 1}, {0.5}};

std::vector<std::size_t> lanes_of_this_machine() {
  std::vector<std::size_t> lanes;
  for (std::size_t n = 2; n <= lane_count(); n *= 2) lanes.push_back(n);
  return lanes;
}

// Values over the whole range, near to their exact ones and far from them, and what is special.
std::vector<Element> elements_of(Format format, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> mantissa(-2, 2), spread(-3, 3);
  std::vector<Element> elements;
  while (elements.size() < quick_elements - 4) {
    const int exponent = static_cast<int>(random() % 60) - 40;
    Element e;
    e.hi = std::ldexp(mantissa(random), exponent);
    e.lo = static_cast<std::int16_t>(random() % 257) - 128;
    const double unit = ulp(format, e.hi);
    e.got = decode(format, encode(format, e.hi + unit * spread(random)));
    e.delta = static_cast<float>(unit * std::fabs(spread(random)));
    elements.push_back(e);
  }
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  elements.push_back({nan, 1, 0, 1});
  elements.push_back({1, nan, 0, 1});
  elements.push_back({inf, inf, 0, 1});
  elements.push_back({0, 0, 0, 1});
  return elements;
}

constexpr std::array<Format, 4> all_formats = {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16};

void expect_exact(Format format, const std::vector<Element>& elements, const EachDistance& each,
                  std::array<std::size_t, 3>& sides) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Side side = side_of(each, i);
    ++sides[static_cast<std::size_t>(side)];
    if (side == Side::open) continue;
    const Element& e = elements[i];
    const auto delta = static_cast<double>(e.delta);
    const Distance exact = distance(e.got, {e.hi, e.lo}, delta);
    ASSERT_EQ(exact.within, side == Side::within) << e.got << " " << e.hi << " " << e.lo << " " << e.delta;
    const double above_zero = delta > 0 ? exact.in_units_of(delta) : std::numeric_limits<double>::infinity();
    ASSERT_EQ(each.ratio[i], exact.scaled == 0 ? 0 : above_zero);
    const double ulps = exact.in_units_of(ulp(format, e.hi));
    ASSERT_EQ(each.ulps[i], ulps);
    ASSERT_EQ(each.signed_ulps[i], e.got < e.hi ? -ulps : ulps);
    ASSERT_EQ(each.outward_ulps[i], std::fabs(e.got) < std::fabs(e.hi) ? -ulps : ulps);
  }
}

TEST(QuickDistance, SaysWhatTheExactWaySays) {
  std::array<std::size_t, 3> sides{};
  for (const Format format : all_formats)
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const std::vector<Element> elements = elements_of(format, seed);
      const Block block(format, elements);
      WithinDelta within;
      UlpSums sums = sums_before;
      EXPECT_EQ(measure_within(block.elements(), within, sums), 0U);
      expect_exact(format, elements, each_of(format, elements), sides);
    }
  EXPECT_GT(sides[static_cast<std::size_t>(Side::within)], 10000U);
  EXPECT_GT(sides[static_cast<std::size_t>(Side::beyond)], 10000U);
  EXPECT_LT(sides[static_cast<std::size_t>(Side::open)], 6000U) << "most is plain";
}

// Every pattern that is special, small or large as got, with every such z and Delta.
TEST(QuickDistance, HostileNumbersAreRightOrLeftOpen) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  constexpr float float_inf = std::numeric_limits<float>::infinity();
  constexpr std::array<std::int16_t, 6> low_parts = {0, 1, -128, 128, 32767, -32768};
  std::array<std::size_t, 3> sides{};
  for (const Format format : all_formats) {
    const std::vector<double> due = {0.0,      -0.0,     1,         -1,        1 + 0x1p-52, 0x1p-130,   0x1p-799,
                                     0x1p-800, 0x1p-801, 0x1p-1022, 0x1p-1074, 0x1p126,     0x1.fp127,  0x1p128,
                                     0x1p200,  0x1p799,  -0x1p800,  0x1p1000,  0x1p1010,    0x1.8p1023, 65504,
                                     65536,    nan,      inf,       -inf};
    for (const double hi : due)
      for (const double got : due)
        for (const std::int16_t lo : low_parts)
          for (const float delta : {0.0f, -0.0f, 0x1p-149f, 0x1p-127f, 0x1p-101f, 0x1p-100f, 1.0f, 0x1.fffffep127f,
                                    float_inf, -1.0f, std::numeric_limits<float>::quiet_NaN()}) {
            const Element e = {decode(format, encode(format, got)), hi, lo, delta};
            const bool judged = std::isfinite(e.got) && std::isfinite(hi) && delta >= 0 && delta < float_inf;
            const Block block(format, {e});
            WithinDelta within;
            UlpSums sums = sums_before;
            const bool settled = measure_within(block.elements(), within, sums) == 1;
            const EachDistance each = each_of(format, {e});
            ASSERT_TRUE(judged || (!settled && side_of(each, 0) == Side::open)) << e.got << " " << hi << " " << delta;
            if (!judged) continue;
            expect_exact(format, {e}, each, sides);
            ASSERT_TRUE(!settled || distance(e.got, {hi, lo}, static_cast<double>(delta)).within);
          }
  }
  for (const std::size_t some : sides) EXPECT_GT(some, 1000U);
}

// Blocks of every length, as the last of a row may be: none but its own elements are in its figures, and the lanes that
// a machine has make no difference.
TEST(QuickDistance, WhatIsWithinAsAWholeIsAddedUpLaneByLane) {
  for (const Format format : all_formats)
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      std::vector<Element> elements;
      for (const std::uint64_t more : {std::uint64_t{1000}, std::uint64_t{2000}})
        for (Element e : elements_of(format, seed + more)) {
          e.delta = static_cast<float>(8 * ulp(format, e.hi));
          if (std::isfinite(e.got) && e.got != 0 && side_of(each_of(format, {e}), 0) == Side::within)
            elements.push_back(e);
        }
      ASSERT_GT(elements.size(), quick_elements);
      elements.resize(seed == 0 ? quick_elements : 1 + seed * 3 % quick_elements);
      const EachDistance each = each_of(format, elements);
      UlpSums sums = sums_before;
      double largest = 0;
      for (std::size_t i = 0; i < elements.size(); ++i) {
        sums.ulps[i % 8] += each.ulps[i];
        sums.signed_ulps[i % 8] += each.signed_ulps[i];
        sums.outward_ulps[i % 8] += each.outward_ulps[i];
        largest = std::max(largest, each.ratio[i]);
      }
      for (const std::size_t lanes : lanes_of_this_machine()) {
        WithinDelta within;
        UlpSums added = sums_before;
        ASSERT_EQ(measure_within(Block(format, elements).elements(), within, added, lanes), elements.size());
        EXPECT_EQ(added.ulps, sums.ulps);
        EXPECT_EQ(added.signed_ulps, sums.signed_ulps);
        EXPECT_EQ(added.outward_ulps, sums.outward_ulps);
        EXPECT_GE(within.largest_ratio[0], largest);
        EXPECT_LE(within.largest_ratio[0], largest * (1 + 0x1p-18) + 0x1p-48);
        for (std::size_t i = 0; i < quick_elements; ++i) {
          ASSERT_EQ(std::signbit(within.ulps[i]), i >= elements.size());
          if (i >= elements.size()) continue;
          ASSERT_EQ(within.ulps[i], each.ulps[i]);
          ASSERT_NEAR(static_cast<double>(within.ratio[i]), each.ratio[i], each.ratio[i] * 0x1p-22 + 0x1p-49);
        }
        EachDistance same;
        measure_each(Block(format, elements).elements(), same, lanes);
        ASSERT_TRUE(std::equal(each.ratio.begin(), each.ratio.begin() + static_cast<std::ptrdiff_t>(elements.size()),
                               same.ratio.begin()));
        for (const std::size_t odd : {std::size_t{0}, elements.size() / 2, elements.size() - 1}) {
          std::vector<Element> others = elements;
          others[odd].delta = 0;
          UlpSums untouched = sums_before;
          EXPECT_EQ(measure_within(Block(format, others).elements(), within, untouched, lanes), 0U);
          EXPECT_EQ(untouched.ulps, sums_before.ulps) << "nothing is added";
          EXPECT_EQ(untouched.signed_ulps, sums_before.signed_ulps);
        }
      }
    }
}

// Runs of several blocks: those before the first that is not within as a whole count, each as it does alone.
TEST(QuickDistance, ARunEndsBeforeTheFirstBlockBeyond) {
  for (const Format format : all_formats)
    for (const std::size_t count : {quick_run, quick_run - 5, quick_elements + 1}) {
      std::vector<Element> elements;
      for (std::uint64_t seed = 0; elements.size() < count; ++seed)
        for (Element e : elements_of(format, seed + 3000)) {
          e.delta = static_cast<float>(8 * ulp(format, e.hi));
          if (elements.size() < count && e.got != 0 && side_of(each_of(format, {e}), 0) == Side::within)
            elements.push_back(e);
        }
      for (std::size_t beyond = 0; beyond <= count; beyond += 19) {
        std::vector<Element> run = elements;
        if (beyond < count) run[beyond].delta = 0;
        const std::size_t settled = beyond < count ? beyond / quick_elements * quick_elements : count;
        UlpSums alone = sums_before;
        std::vector<double> ulps, largest;
        for (std::size_t begin = 0; begin < settled; begin += quick_elements) {
          const auto first = run.begin() + static_cast<std::ptrdiff_t>(begin);
          const std::size_t length = std::min(quick_elements, count - begin);
          WithinDelta within;
          ASSERT_EQ(measure_within(Block(format, {first, first + static_cast<std::ptrdiff_t>(length)}).elements(),
                                   within, alone),
                    length);
          ulps.insert(ulps.end(), within.ulps.begin(), within.ulps.begin() + quick_elements);
          largest.push_back(within.largest_ratio[0]);
        }
        for (const std::size_t lanes : lanes_of_this_machine()) {
          WithinDelta within;
          UlpSums sums = sums_before;
          ASSERT_EQ(measure_within(Block(format, run).elements(), within, sums, lanes), settled);
          EXPECT_EQ(sums.ulps, alone.ulps);
          EXPECT_EQ(sums.signed_ulps, alone.signed_ulps);
          EXPECT_EQ(sums.outward_ulps, alone.outward_ulps);
          ASSERT_TRUE(std::equal(ulps.begin(), ulps.end(), within.ulps.begin()));
          ASSERT_TRUE(std::equal(largest.begin(), largest.end(), within.largest_ratio.begin()));
        }
      }
    }
}

// What is far from z in ulps of z and still within Delta: up to another sign, and where the difference is rounded. And
// z that is subnormal in the format. Alone, and as one of a block that else is near.
TEST(QuickDistance, WhatIsFarFromTheValueIsMeasuredAsExactly) {
  std::size_t settled = 0, open = 0;
  for (const Format format : all_formats) {
    const int p = parameters(format).precision;
    for (const double hi : {1.0, -1.0, 1.75, -1 - 0x1p-40, smallest_normal(format), smallest_normal(format) / 2,
                            -smallest_subnormal(format) * 1.5})
      for (const double factor : {0.25, 0.26, 0.49, 0.5,    0.51, 0.74, 0.75, 0.76, 0.9, 1.1,
                                  1.24, 1.25, 1.26, 1.49,   1.5,  1.51, 2.0,  2.1,  3.0, 1 + std::ldexp(1.0, -p - 9),
                                  -1.0, -0.5, -1.5, 0x1p-60})
        for (const std::int16_t lo : std::array<std::int16_t, 3>{0, 100, -100}) {
          const double got = decode(format, encode(format, hi * factor));
          const Element e = {got, hi, lo, static_cast<float>(8 * std::fabs(hi))};
          for (const std::size_t others : {std::size_t{0}, quick_elements - 1}) {
            std::vector<Element> elements(others, {1, 1, 0, 1});
            elements.insert(elements.begin() + static_cast<std::ptrdiff_t>(others / 3), e);
            for (const std::size_t lanes : lanes_of_this_machine()) {
              WithinDelta within;
              UlpSums sums;
              const EachDistance each = each_of(format, elements);
              const bool all = measure_within(Block(format, elements).elements(), within, sums, lanes) > 0;
              ++(all ? settled : open);
              if (!all) continue;
              ASSERT_EQ(side_of(each, others / 3), Side::within) << got << " " << hi;
              const Distance exact = distance(e.got, {hi, lo}, static_cast<double>(e.delta));
              const double ulps = exact.in_units_of(ulp(format, hi));
              ASSERT_EQ(within.ulps[others / 3], ulps) << got << " " << hi;
              ASSERT_EQ(sum_of(sums.ulps), ulps);
              ASSERT_EQ(sum_of(sums.signed_ulps), got < hi ? -ulps : ulps) << got << " " << hi;
              ASSERT_EQ(sum_of(sums.outward_ulps), std::fabs(got) < std::fabs(hi) ? -ulps : ulps) << got << " " << hi;
            }
          }
        }
  }
  EXPECT_GT(settled, 5000U);
  EXPECT_GT(open, 100U);
}

// Errors that are subnormal in binary32, where quotients of it lose digits.
TEST(QuickDistance, RatiosOfTheSmallestErrorsAreBounded) {
  std::vector<Element> elements;
  for (int exponent = -152; exponent < -90; ++exponent)
    elements.push_back({0x1p-125 + std::ldexp(1.5, exponent), 0x1p-125, 0, 0x1p-80f});
  const Block block(Format::binary64, elements);
  WithinDelta within;
  UlpSums sums;
  ASSERT_EQ(measure_within(block.elements(), within, sums), elements.size());
  const EachDistance each = each_of(Format::binary64, elements);
  for (std::size_t i = 0; i < elements.size(); ++i)
    EXPECT_NEAR(static_cast<double>(within.ratio[i]), each.ratio[i], each.ratio[i] * 0x1p-22 + 0x1p-49);
  const Element half = {0x1p-125 + 0x1.8p-150, 0x1p-125, 0, 0x1p-100f};
  ASSERT_EQ(measure_within(Block(Format::binary64, {half}).elements(), within, sums), 1U);
  EXPECT_EQ(within.ratio[0], 0x1p-49f) << "3/4 of the smallest number becomes 1";
  EXPECT_GE(within.largest_ratio[0], each_of(Format::binary64, {half}).ratio[0]);
  const Element smaller = {0x1p-125 + 0x1.7p-149, 0x1p-125, 0, 0x1p-147f};
  EXPECT_EQ(measure_within(Block(Format::binary64, {smaller}).elements(), within, sums), 0U) << "0.36 would be 0.25";
}

// At Delta, one bit of the low part beyond it, and where the difference itself is rounded.
TEST(QuickDistance, WhatIsNearDeltaIsLeftToTheExactWay) {
  const float delta = 0x1p-22f;
  const auto side = [](Format format, const Element& e) { return side_of(each_of(format, {e}), 0); };
  const auto all = [](Format format, const Element& e) {
    WithinDelta within;
    UlpSums sums;
    return measure_within(Block(format, {e}).elements(), within, sums) == 1;
  };
  constexpr Format b32 = Format::binary32, b64 = Format::binary64;
  EXPECT_EQ(side(b32, {1 + 0x1p-23, 1, 0, delta}), Side::within);
  EXPECT_TRUE(all(b32, {1 + 0x1p-23, 1, 0, delta}));
  EXPECT_EQ(side(b32, {1 + 0x1p-22, 1, 0, delta}), Side::open);
  EXPECT_FALSE(all(b32, {1 + 0x1p-22, 1, 0, delta}));
  EXPECT_EQ(side(b32, {1 + 0x1p-22, 1, -1, delta}), Side::beyond) << "by 2^-38 of it";
  EXPECT_EQ(side(b32, {1 + 0x1p-9, 1, -1, 0x1p-9f}), Side::open) << "beyond by less than 2^-50 of Delta";
  EXPECT_EQ(side(b32, {1 + 0x1p-9, 1, 1, 0x1p-9f}), Side::open) << "within by less than 2^-50 of Delta";
  EXPECT_EQ(side(b32, {1 + 0x1p-22, 1, 1, delta}), Side::within) << "by far more of it";
  EXPECT_FALSE(all(b32, {1 + 0x1p-22, 1, 1, delta})) << "but not more than 2^-20";
  EXPECT_EQ(side(b32, {1, 0x1.0000000000001p-60, 0, 2}), Side::open) << "1 less that is no number of binary64";
  EXPECT_FALSE(all(b32, {1, 0x1.0000000000001p-60, 0, 2}));
  EXPECT_EQ(side(b32, {1, 1, 0, 0}), Side::within);
  EXPECT_EQ(side(b32, {1 + 0x1p-23, 1, 0, 0}), Side::beyond);
  EXPECT_EQ(side(b32, {0, 0, 0, 0}), Side::within);
  EXPECT_EQ(side(b32, {0, 0, 1, 0}), Side::open);
  EXPECT_EQ(side(b64, {0, 0, 0, 0}), Side::open) << "1/ulp(0) is no number";
  EXPECT_EQ(side(b32, {0, 0x1p-810, 0, delta}), Side::open);
  EXPECT_FALSE(all(b32, {0, 0x1p-810, 0, delta}));
  EXPECT_EQ(side(b64, {0x1p900, 0x1p900, 1, 0x1p127f}), Side::open) << "the low part is 2^840";
  EXPECT_EQ(side(b64, {0x1p900, 0x1p900, 0, 1}), Side::within);
  EXPECT_EQ(side(b64, {1, 0x1.0000000000001p-60, 0, 2}), Side::open) << "the lesser one is lost";
  EXPECT_EQ(side(b64, {0x1.0000000000001p-60, 1, 0, 2}), Side::open) << "here it is got";
}

}  // namespace
}  // namespace qkcts
