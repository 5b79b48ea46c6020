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
          EXPECT_EQ(counts.add(ulps.data(), 1, these.size()),
                    std::any_of(these.begin(), these.end(), [](double value) { return value > 0; }));
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

// Few different numbers, or of a grid, so that many are as large as what is the floor at the time.
TEST(UlpCounts, WhatIsAsLargeAsTheFloorCounts) {
  const std::vector<double> values = around_edges();
  std::mt19937_64 random(2);
  for (std::size_t lanes = 2; lanes <= lane_count(); lanes *= 2)
    for (int stream = 0; stream < 300; ++stream) {
      const std::size_t kept = 1 + random() % (stream % 3 == 0 ? 700 : 50), rounds = 1 + random() % 100;
      const std::size_t kinds = 1 + random() % 6;
      UlpCounts counts(kept, lanes);
      std::vector<double> pool, all;
      while (pool.size() < kinds) pool.push_back(values[random() % values.size()]);
      std::array<double, quick_run> ulps;
      for (std::size_t round = 0; round < rounds; ++round) {
        const std::size_t blocks = 1 + random() % quick_blocks;
        for (std::size_t i = 0; i < blocks * quick_elements; ++i)
          ulps[i] = stream % 2 == 0 ? pool[random() % kinds] : std::ldexp(static_cast<double>(random() % 1000), -8);
        counts.add(ulps.data(), blocks, blocks * quick_elements);
        all.insert(all.end(), ulps.begin(), ulps.begin() + static_cast<std::ptrdiff_t>(blocks * quick_elements));
      }
      std::sort(all.begin(), all.end(), std::greater<>());
      const std::size_t places = std::min(kept, all.size());
      for (std::size_t place = 0; place < places; place += 1 + places / 50)
        ASSERT_EQ(counts.in_place(place), all[place]) << "stream " << stream << ", place " << place << " of " << kept;
      ASSERT_EQ(counts.in_place(places - 1), all[places - 1]) << "stream " << stream << ", the last of " << kept;
    }
}

// More blocks than the narrow counters take, in runs of every length; the last block of a run may have gaps.
TEST(UlpCounts, CountersDoNotRunOver) {
  std::mt19937_64 random(3);
  for (std::size_t lanes = 2; lanes <= lane_count(); lanes *= 2) {
    UlpCounts counts(100, lanes);
    std::array<std::uint64_t, histogram_edges.size() + 1> expected{};
    std::uint64_t count = 0;
    std::array<double, quick_run> ulps;
    for (std::size_t round = 0; round < 9000; ++round) {
      const std::size_t blocks = 1 + round % quick_blocks, gaps = round % 3;
      for (std::size_t i = 0; i < blocks * quick_elements; ++i)
        ulps[i] = static_cast<double>((i * 7 + round) % 64) * 0.3;
      for (std::size_t gap = 0; gap < gaps; ++gap) ulps[blocks * quick_elements - 1 - gap] = no_ulps;
      const std::size_t these = blocks * quick_elements - gaps;
      EXPECT_TRUE(counts.add(ulps.data(), blocks, these));
      count += these;
      for (std::size_t i = 0; i < these; ++i)
        ++expected[static_cast<std::size_t>(std::lower_bound(histogram_edges.begin(), histogram_edges.end(), ulps[i]) -
                                            histogram_edges.begin())];
    }
    EXPECT_GT(count, 65536U * 16);
    EXPECT_EQ(counts.histogram(), expected);
    EXPECT_EQ(counts.count(), count);
    EXPECT_EQ(counts.in_place(0), 63 * 0.3);
  }
}

// Every number above the same edges, so that no counter rises more slowly than it can.
TEST(UlpCounts, CountersDoNotRunOverWhereAllCount) {
  for (std::size_t lanes = 2; lanes <= lane_count(); lanes *= 2) {
    UlpCounts counts(100, lanes);
    std::array<double, quick_run> ulps;
    ulps.fill(1);
    constexpr std::size_t rounds = 20000;
    for (std::size_t round = 0; round < rounds; ++round) counts.add(ulps.data(), quick_blocks, quick_run);
    std::array<std::uint64_t, histogram_edges.size() + 1> expected{};
    expected[static_cast<std::size_t>(std::lower_bound(histogram_edges.begin(), histogram_edges.end(), 1.0) -
                                      histogram_edges.begin())] = rounds * quick_run;
    EXPECT_EQ(counts.histogram(), expected);
  }
}

}  // namespace
}  // namespace qkcts
