// SPDX-License-Identifier: Apache-2.0
#include "harness/ulp_counts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace qkcts {
namespace {

std::vector<double> around_edges() {
  constexpr double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values = {0, 0x1p-1074, 0x1p-1022, 0x1p-4, 3, 5e7, 1e300, inf};
  for (const double edge : histogram_edges) {
    values.push_back(edge);
    values.push_back(std::nextafter(edge, inf));
    if (edge > 0) values.push_back(std::nextafter(edge, 0));
  }
  return values;
}

// One by one, in whole blocks, in what is left of one, and in blocks with gaps; in the lanes of any machine.
TEST(UlpCounts, EveryClassEndsAtItsEdge) {
  const std::vector<double> values = around_edges();
  std::mt19937_64 random(1);
  for (std::size_t lanes = 2; lanes <= lane_count(); lanes *= 2)
    for (const std::size_t block : {std::size_t{1}, std::size_t{5}, quick_elements - 1, quick_elements})
      for (std::size_t largest = 1; largest <= values.size(); ++largest) {
        UlpCounts counts(100, lanes);
        std::array<std::uint64_t, histogram_edges.size() + 1> expected{};
        std::vector<double> all;
        for (int round = 0; round < 3; ++round) {
          std::array<double, quick_elements> ulps;
          ulps.fill(no_ulps);
          std::vector<double> these;
          for (std::size_t i = 0; i < block; ++i) {
            if (round == 1 && random() % 3 == 0) continue;
            ulps[i] = values[random() % largest];
            these.push_back(ulps[i]);
          }
          const double top = counts.add(ulps, block, these.size());
          EXPECT_EQ(top, these.empty() ? 0 : *std::max_element(these.begin(), these.end()));
          all.insert(all.end(), these.begin(), these.end());
          const double alone = values[random() % largest];
          counts.add(alone);
          all.push_back(alone);
        }
        for (const double ulps : all)
          ++expected[static_cast<std::size_t>(std::lower_bound(histogram_edges.begin(), histogram_edges.end(), ulps) -
                                              histogram_edges.begin())];
        ASSERT_EQ(counts.histogram(), expected);
        ASSERT_EQ(counts.count(), all.size());
        std::sort(all.begin(), all.end(), std::greater<>());
        for (const std::size_t place : {std::size_t{0}, std::min<std::size_t>(99, all.size() - 1)})
          ASSERT_EQ(counts.in_place(place), all[place]);
      }
}

// Ascending blocks whose largest number is each time the least that is still kept.
TEST(UlpCounts, WhatIsAsLargeAsTheFloorCounts) {
  std::vector<double> all;
  UlpCounts counts(2000);
  const auto add = [&](std::size_t number, double ulps) {
    for (std::size_t n = 0; n < number; n += quick_elements) {
      std::array<double, quick_elements> block;
      block.fill(ulps);
      counts.add(block, block.size(), block.size());
      all.insert(all.end(), block.begin(), block.end());
    }
  };
  add(4600, 0.25);
  add(1500, 4);  // makes the floor 0.25, or what comes after it
  add(1500, 2);
  add(1500, 0.25);
  std::sort(all.begin(), all.end(), std::greater<>());
  for (const std::size_t place : {0, 1400, 1600, 1999}) EXPECT_EQ(counts.in_place(place), all[place]);
}

}  // namespace
}  // namespace qkcts
