// SPDX-License-Identifier: Apache-2.0
// What is settled at a glance is what the exact way says, bit for bit, and nothing near Delta is settled so.
#include "harness/quick_distance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

struct Quick {
  QuickDistances distances;
  UlpSums sums = {1, 2, 3};  // of what came before
};

Quick quick(Format format, const std::vector<Element>& elements) {
  std::vector<double> got, hi;
  std::vector<std::int16_t> lo;
  std::vector<float> delta;
  for (const Element& e : elements) {
    got.push_back(e.got);
    hi.push_back(e.hi);
    lo.push_back(e.lo);
    delta.push_back(e.delta);
  }
  const std::vector<std::byte> bytes = stage_bytes(format, got);
  Quick result;
  measure_quickly(format, elements.size(), bytes.data(), hi.data(), lo.data(), delta.data(), result.distances,
                  result.sums);
  return result;
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

TEST(QuickDistance, SaysWhatTheExactWaySays) {
  std::size_t settled = 0, all = 0;
  for (const Format format : all_formats)
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const std::vector<Element> elements = elements_of(format, seed);
      const QuickDistances distances = quick(format, elements).distances;
      EXPECT_FALSE(distances.all_settled);
      for (std::size_t i = 0; i < elements.size(); ++i) {
        ++all;
        if (distances.odd[i] != 0) continue;
        ++settled;
        const Element& e = elements[i];
        const Distance exact = distance(e.got, {e.hi, e.lo}, static_cast<double>(e.delta));
        ASSERT_TRUE(exact.within) << e.got << " " << e.hi << " " << e.lo << " " << e.delta;
        ASSERT_EQ(distances.ratio[i], exact.in_units_of(static_cast<double>(e.delta)));
        const double ulps = exact.in_units_of(ulp(format, e.hi));
        ASSERT_EQ(distances.ulps[i], ulps);
        ASSERT_EQ(distances.signed_and_outward[2 * i], e.got < e.hi ? -ulps : ulps);
        ASSERT_EQ(distances.signed_and_outward[2 * i + 1], std::fabs(e.got) < std::fabs(e.hi) ? -ulps : ulps);
      }
    }
  EXPECT_GT(settled, all / 3) << "most of what lies within Delta";
}

// Blocks of every length, as the last of a row may be: none but its own elements are in its figures.
TEST(QuickDistance, WhatIsSettledAsAWholeIsAddedUpInOrder) {
  for (const Format format : all_formats)
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      std::vector<Element> elements;
      for (const std::uint64_t more : {std::uint64_t{1000}, std::uint64_t{2000}})
        for (Element e : elements_of(format, seed + more)) {
          e.delta = static_cast<float>(8 * ulp(format, e.hi));
          if (std::isfinite(e.got) && e.hi != 0 && quick(format, {e}).distances.odd[0] == 0) elements.push_back(e);
        }
      ASSERT_GT(elements.size(), quick_elements);
      elements.resize(seed == 0 ? quick_elements : 1 + seed * 3 % quick_elements);
      const Quick whole = quick(format, elements);
      ASSERT_TRUE(whole.distances.all_settled);
      UlpSums sums = {1, 2, 3};
      double largest = 0;
      for (std::size_t i = 0; i < elements.size(); ++i) {
        sums.ulps += whole.distances.ulps[i];
        sums.signed_ulps += whole.distances.signed_and_outward[2 * i];
        sums.outward_ulps += whole.distances.signed_and_outward[2 * i + 1];
        largest = std::max(largest, whole.distances.ratio[i]);
      }
      EXPECT_EQ(whole.sums.ulps, sums.ulps);
      EXPECT_EQ(whole.sums.signed_ulps, sums.signed_ulps);
      EXPECT_EQ(whole.sums.outward_ulps, sums.outward_ulps);
      EXPECT_EQ(whole.distances.largest_ratio, largest);
      for (const std::size_t odd : {std::size_t{0}, elements.size() / 2, elements.size() - 1}) {
        std::vector<Element> others = elements;
        others[odd].delta = 0;
        const Quick broken = quick(format, others);
        EXPECT_FALSE(broken.distances.all_settled);
        EXPECT_EQ(broken.sums.ulps, 1) << "nothing is added";
      }
    }
}

// At Delta, one bit of the low part beyond it, and where the difference itself is rounded.
TEST(QuickDistance, WhatIsNearDeltaIsLeftToTheExactWay) {
  const float delta = 0x1p-22f;
  const auto settled = [](const Element& e) { return quick(Format::binary32, {e}).distances.odd[0] == 0; };
  EXPECT_TRUE(settled({1 + 0x1p-23, 1, 0, delta}));
  EXPECT_FALSE(settled({1 + 0x1p-22, 1, 0, delta}));
  EXPECT_FALSE(settled({1 + 0x1p-22, 1, -1, delta}));
  EXPECT_FALSE(settled({1 + 0x1p-9, 1, 1, 0x1p-9f})) << "within by less than 2^-50 of Delta";
  EXPECT_TRUE(settled({1 + 0x1p-22, 1, 1, delta})) << "by far more of it";
  EXPECT_FALSE(settled({1, 0x1.0000000000001p-60, 0, 2})) << "1 less that is no number of binary64";
  EXPECT_FALSE(settled({1, 1, 0, 0}));
  EXPECT_FALSE(settled({1, 1, 0, std::numeric_limits<float>::infinity()})) << "not judged at all";
  EXPECT_FALSE(settled({0, 0x1p-810, 0, delta}));
  EXPECT_FALSE(settled({1, 1, 0, -1}));
  EXPECT_FALSE(settled({1, 1, 0, std::numeric_limits<float>::quiet_NaN()}));
  const auto settled64 = [](const Element& e) { return quick(Format::binary64, {e}).distances.odd[0] == 0; };
  EXPECT_FALSE(settled64({0x1p900, 0x1p900, 1, 0x1p127f})) << "the low part is 2^840";
  EXPECT_TRUE(settled64({0x1p900, 0x1p900, 0, 1}));
  EXPECT_FALSE(settled64({0x1p1001, 0x1p1001, 0, 1}));
  EXPECT_FALSE(settled64({0x1p-810, 0x1p-810, 0, delta}));
  EXPECT_FALSE(settled64({1, 0x1.0000000000001p-60, 0, 2})) << "the lesser one is lost";
  EXPECT_FALSE(settled64({0x1.0000000000001p-60, 1, 0, 2})) << "here it is got";
  for (const double odd : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 0.0}) {
    EXPECT_FALSE(settled({odd, odd, 0, delta}));
    EXPECT_FALSE(settled({1, odd, 0, delta}));
  }
}

struct JudgedRow {
  std::vector<HandmadeElement> elements;
  std::vector<double> got;
};

// The row judged in one go against its elements judged one by one: every figure of the report.
void judge_both_ways(Format format, const JudgedRow& row) {
  const std::vector<double>& got = row.got;
  const GoldenCase golden = one_row_case(QKCTS_STAGE_PROBS, format, row.elements);
  const std::vector<std::byte> bytes = stage_bytes(format, got);
  const StageJudgement whole = judge_stage(golden, QKCTS_STAGE_PROBS, 0, bytes);

  const GoldenStage& stage = golden.stages[QKCTS_STAGE_PROBS];
  const RowContext context = row_context(stage.values, 0, got.size(), golden.input.contract.terms.softmax);
  std::optional<JudgedElement> worst;
  std::vector<double> ulps;
  double sum = 0, signed_sum = 0, outward_sum = 0;
  std::uint64_t failed = 0, judged = 0, mistrusted = 0;
  std::array<std::uint64_t, histogram_edges.size() + 1> histogram{};
  HeatMap heat(1, got.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const JudgedElement e =
        judge_element(QKCTS_STAGE_PROBS, format, encode(format, got[i]), stage, i, stage.budgets[0], context);
    const bool measured = e.rule != ElementRule::hidden && e.trust != Trust::domain;
    failed += e.breach != Breach::none ? 1 : 0;
    if (!measured) continue;
    ++(e.trust == Trust::mistrusted ? mistrusted : judged);
    ulps.push_back(e.ulps);
    sum += e.ulps;
    signed_sum += e.got_value < e.exact.hi ? -e.ulps : e.ulps;
    outward_sum += std::fabs(e.got_value) < std::fabs(e.exact.hi) ? -e.ulps : e.ulps;
    ++histogram[static_cast<std::size_t>(std::lower_bound(histogram_edges.begin(), histogram_edges.end(), e.ulps) -
                                         histogram_edges.begin())];
    heat.add(0, i, e.ratio);
    if (!worst || e.ratio > worst->ratio || (e.ratio == worst->ratio && e.ulps > worst->ulps)) {
      worst = e;
      worst->place = {0, static_cast<std::uint32_t>(i)};
    }
  }
  const auto n = static_cast<double>(ulps.size());
  std::sort(ulps.begin(), ulps.end());
  EXPECT_EQ(whole.counts.failed, failed);
  EXPECT_EQ(whole.counts.judged, judged);
  EXPECT_EQ(whole.counts.mistrusted, mistrusted);
  EXPECT_EQ(whole.histogram, histogram);
  EXPECT_EQ(whole.p99_ulp, ulps[(ulps.size() * 99 + 99) / 100 - 1]);
  EXPECT_EQ(whole.max_ulp, ulps.back());
  EXPECT_EQ(whole.max_ratio, worst->ratio);
  EXPECT_EQ(whole.worst->place.column, worst->place.column);
  if (failed == 0) {
    EXPECT_EQ(whole.verdict, Verdict::pass);
    EXPECT_EQ(whole.mean_ulp, sum / n);
    EXPECT_EQ(whole.signed_mean_ulp, signed_sum / n);
    EXPECT_EQ(whole.outward_mean_ulp, outward_sum / n);
  }
  for (std::size_t column = 0; column < heat.columns(); ++column)
    EXPECT_EQ(whole.heat.at(0, column), heat.at(0, column));
}

JudgedRow row_of(Format format, std::uint64_t seed, bool some_fail, unsigned one_is_odd_of) {
  std::mt19937_64 random(seed);
  JudgedRow row;
  for (std::uint64_t block = 0; block < 5; ++block)
    for (const Element& e : elements_of(format, seed * 5 + block)) {
      HandmadeElement made = {e.hi, e.delta, ElementRule::budget, Trust::judged, e.lo};
      if (!some_fail) {
        if (!std::isfinite(e.hi) || !std::isfinite(e.got) || e.hi == 0) continue;
        made.delta = static_cast<float>(8 * ulp(format, e.hi));
      }
      if (random() % one_is_odd_of == 0) made.trust = random() % 2 == 0 ? Trust::mistrusted : Trust::domain;
      if (random() % 8 == 0) made.rule = ElementRule::budget_exact;
      if (random() % one_is_odd_of == 0) made.rule = ElementRule::hidden;
      row.elements.push_back(made);
      row.got.push_back(e.got);
    }
  return row;
}

TEST(QuickDistance, AStageIsTheSumOfItsElements) {
  for (const Format format : all_formats)
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      judge_both_ways(format, row_of(format, seed, true, 16));
      judge_both_ways(format, row_of(format, seed, false, 16));
      judge_both_ways(format, row_of(format, seed, false, 100));      // one in a block
      judge_both_ways(format, row_of(format, seed, false, 1000000));  // whole blocks are settled
    }
}

// All at the same part of Delta, so that ulps say which is the worst, and the first of equal ones it is.
TEST(QuickDistance, TheWorstOfEqualOnesIsTheSame) {
  for (const Format format : all_formats)
    for (const std::size_t count : {1, 63, 64, 99, 100, 101, 128, 199, 256}) {
      std::mt19937_64 random(count);
      JudgedRow row, rising;
      const double unit = ulp(format, 1);
      for (std::size_t i = 0; i < count; ++i) {
        const double off = unit * static_cast<double>(random() % 4 + 1);
        row.elements.push_back({1, static_cast<float>(2 * off), ElementRule::budget, Trust::judged, 0});
        row.got.push_back(1 + off);
        const double step = unit * static_cast<double>(1 + i / quick_elements);
        rising.elements.push_back({1, static_cast<float>(2 * step), ElementRule::budget, Trust::judged, 0});
        rising.got.push_back(1 + step);
      }
      judge_both_ways(format, row);
      judge_both_ways(format, rising);
    }
}

}  // namespace
}  // namespace qkcts
