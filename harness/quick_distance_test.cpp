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

QuickDistances quick(Format format, const std::vector<Element>& elements) {
  std::vector<double> got, hi;
  std::vector<std::int16_t> lo;
  std::vector<float> delta;
  for (const Element& e : elements) {
    got.push_back(e.got);
    hi.push_back(e.hi);
    lo.push_back(e.lo);
    delta.push_back(e.delta);
  }
  QuickDistances distances;
  measure_quickly(format, elements.size(), got.data(), hi.data(), lo.data(), delta.data(), distances);
  return distances;
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

TEST(QuickDistance, SaysWhatTheExactWaySays) {
  std::size_t settled = 0, all = 0;
  for (const Format format : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16})
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const std::vector<Element> elements = elements_of(format, seed);
      const QuickDistances distances = quick(format, elements);
      for (std::size_t i = 0; i < elements.size(); ++i) {
        ++all;
        if (distances.settled[i] == 0) continue;
        ++settled;
        const Element& e = elements[i];
        const Distance exact = distance(e.got, {e.hi, e.lo}, static_cast<double>(e.delta));
        ASSERT_TRUE(exact.within) << e.got << " " << e.hi << " " << e.lo << " " << e.delta;
        ASSERT_EQ(distances.ratio[i], exact.in_units_of(static_cast<double>(e.delta)));
        ASSERT_EQ(distances.ulps[i], exact.in_units_of(ulp(format, e.hi)));
        ASSERT_EQ(distances.signed_ulps[i]<0, distances.ulps[i]> 0 && e.got < e.hi);
        ASSERT_EQ(distances.outward_ulps[i]<0, distances.ulps[i]> 0 && std::fabs(e.got) < std::fabs(e.hi));
      }
    }
  EXPECT_GT(settled, all / 3) << "most of what lies within Delta";
}

// At Delta, one bit of the low part beyond it, and where the difference itself is rounded.
TEST(QuickDistance, WhatIsNearDeltaIsLeftToTheExactWay) {
  const float delta = 0x1p-22f;
  const auto settled = [](const Element& e) { return quick(Format::binary32, {e}).settled[0] != 0; };
  EXPECT_TRUE(settled({1 + 0x1p-23, 1, 0, delta}));
  EXPECT_FALSE(settled({1 + 0x1p-22, 1, 0, delta}));
  EXPECT_FALSE(settled({1 + 0x1p-22, 1, -1, delta}));
  EXPECT_FALSE(settled({1 + 0x1p-9, 1, 1, 0x1p-9f})) << "within by less than 2^-50 of Delta";
  EXPECT_TRUE(settled({1 + 0x1p-22, 1, 1, delta})) << "by far more of it";
  EXPECT_FALSE(settled({1, 0x1.0000000000001p-60, 0, 2})) << "1 less that is no number of binary64";
  EXPECT_FALSE(settled({1, 1, 0, 0}));
  EXPECT_FALSE(settled({1, 1, 0, std::numeric_limits<float>::infinity()})) << "not judged at all";
  EXPECT_FALSE(settled({0x1p-810, 0x1p-810, 0, delta}));
  for (const double odd : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 0.0}) {
    EXPECT_FALSE(settled({odd, odd, 0, delta}));
    EXPECT_FALSE(settled({1, odd, 0, delta}));
  }
}

// A stage judged in one go against its elements judged one by one: every figure of the report.
TEST(QuickDistance, AStageIsTheSumOfItsElements) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<HandmadeElement> elements;
    std::vector<double> got;
    for (int block = 0; block < 5; ++block)
      for (const Element& e : elements_of(Format::binary32, seed * 5 + static_cast<std::uint64_t>(block))) {
        HandmadeElement made = {e.hi, e.delta, ElementRule::budget, Trust::judged, e.lo};
        if (random() % 16 == 0) made.trust = random() % 2 == 0 ? Trust::mistrusted : Trust::domain;
        if (random() % 16 == 0) made.rule = random() % 2 == 0 ? ElementRule::hidden : ElementRule::budget_exact;
        if (seed % 2 == 0) {  // nothing fails, so that the worst is one of many
          if (!std::isfinite(e.hi) || !std::isfinite(e.got)) continue;
          made.delta = static_cast<float>(8 * ulp(Format::binary32, e.hi));
        }
        elements.push_back(made);
        got.push_back(e.got);
      }
    const GoldenCase golden = one_row_case(QKCTS_STAGE_PROBS, Format::binary32, elements);
    const std::vector<std::byte> bytes = stage_bytes(Format::binary32, got);
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
      const JudgedElement e = judge_element(QKCTS_STAGE_PROBS, Format::binary32, encode(Format::binary32, got[i]),
                                            stage, i, stage.budgets[0], context);
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
    if (seed % 2 == 0) {
      EXPECT_EQ(whole.verdict, Verdict::pass);
      EXPECT_EQ(whole.mean_ulp, sum / n);
      EXPECT_EQ(whole.signed_mean_ulp, signed_sum / n);
      EXPECT_EQ(whole.outward_mean_ulp, outward_sum / n);
    }
    for (std::size_t column = 0; column < heat.columns(); ++column)
      EXPECT_EQ(whole.heat.at(0, column), heat.at(0, column));
  }
}

}  // namespace
}  // namespace qkcts
