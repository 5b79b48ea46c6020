// SPDX-License-Identifier: Apache-2.0
// The places at the top of a sorted list, whatever the order in which it comes.
#include "harness/largest_values.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace qkcts {
namespace {

void expect_places_of(std::vector<double> values, std::size_t kept) {
  LargestValues largest(kept);
  for (std::size_t i = 0; i < values.size(); i += LargestValues::most)
    largest.add(values.data() + i, std::min(LargestValues::most, values.size() - i));
  std::sort(values.begin(), values.end(), std::greater<>());
  for (std::size_t place = 0; place < std::min(kept, values.size()); ++place)
    ASSERT_EQ(largest.in_place(place), values[place]) << "place " << place << " of " << values.size();
}

TEST(LargestValues, AreThoseOfTheSortedList) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> spread(0, 3);
  for (const std::size_t count : {1, 2, 63, 64, 65, 511, 576, 1000, 20000})
    for (const std::size_t kept : {1, 2, 40, 201}) {
      std::vector<double> values(count);
      for (double& value : values) value = spread(random);
      expect_places_of(values, kept);
      std::sort(values.begin(), values.end());
      expect_places_of(values, kept);  // each one larger than all before it
      std::sort(values.begin(), values.end(), std::greater<>());
      expect_places_of(values, kept);
    }
}

// What is near the last that is kept, and larger: 2.1.
TEST(LargestValues, WhatIsNearTheLastIsKept) {
  std::vector<double> values(300, 3.0);
  values.resize(400, 2.0);
  values.resize(1000, 1.0);
  values.resize(1100, 2.0);
  for (const double value : {2.1, 2.0, 2.2, 1.0}) values.resize(values.size() + 80, value);
  expect_places_of(values, 350);
}

TEST(LargestValues, WhatIsLargerByTheLastBitIsKept) {
  std::vector<double> values(2000, 1.0);
  values.push_back(1 + 0x1p-52);
  expect_places_of(values, 1);
}

// 110 of 512 numbers, from the middle of the range of patterns on: they are what is kept, that in the middle too.
TEST(LargestValues, WhatIsTheFloorItselfIsKept) {
  const auto one = std::bit_cast<std::uint64_t>(1.0);
  std::vector<double> values(5, std::bit_cast<double>(one + 1999));
  values.resize(110, std::bit_cast<double>(one + 1000));
  values.resize(512, 1.0);
  expect_places_of(values, 100);
}

// Where halving a range of patterns tells little apart, or ends at a single one.
TEST(LargestValues, EqualAndExtremeOnesAreKeptToo) {
  std::mt19937_64 random(2);
  constexpr std::size_t count = 5000;
  for (const double value : {0.0, 1.0, 0x1p-1060, 0x1p1000, std::numeric_limits<double>::infinity()})
    expect_places_of(std::vector<double>(count, value), 30);
  for (const double step : {0x1p-52, 0x1p-20})
    for (const double unit : {0x1p-1070, 0x1p-60, 1.0, 0x1p100}) {
      std::vector<double> close(count);
      for (double& value : close) value = unit * (1 + step * static_cast<double>(random() % 4096));
      expect_places_of(close, 30);
      std::sort(close.begin(), close.end());
      expect_places_of(close, 30);
      for (std::size_t i = 0; i < count; i += 200) close[i] = std::numeric_limits<double>::infinity();
      expect_places_of(close, 30);
    }
}

TEST(LargestValues, MemoryIsForFew) {
  LargestValues largest(10);
  for (int i = 1; i <= 100000; ++i) {
    const double value = i;
    largest.add(&value, 1);
  }
  EXPECT_GT(largest.floor(), std::bit_cast<std::uint64_t>(90000.0)) << "what is far below is not taken";
}

}  // namespace
}  // namespace qkcts
