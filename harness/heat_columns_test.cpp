// SPDX-License-Identifier: Apache-2.0
// Runs of ratios against the heat map that takes them one by one.
#include "harness/heat_columns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace qkcts {
namespace {

void expect_same(std::size_t rows, std::size_t length, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> ratio(0, 1);
  HeatMap expected(rows, length), heat(rows, length);
  HeatColumns columns(heat, rows, length);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t begin = 0; begin < length;) {
      const std::size_t count = std::min<std::size_t>(1 + random() % 64, length - begin);
      std::vector<float> ratios(count);
      for (float& r : ratios) {
        r = random() % 8 == 0 ? 0 : ratio(random) / static_cast<float>(1 + row % 7);
        if (random() % 5 == 0) r = heat_unjudged;
      }
      if (random() % 4 != 0) {  // else somebody else adds to the map, or nothing is measured there
        columns.add(row, begin, ratios.data(), count);
        for (std::size_t i = 0; i < count; ++i) expected.add(row, begin + i, static_cast<double>(ratios[i]));
      } else if (random() % 2 == 0) {
        heat.add(row, begin, 0.5);
        expected.add(row, begin, 0.5);
      }
      begin += count;
    }
  columns.finish();
  columns.finish();
  for (std::size_t row = 0; row < heat.rows(); ++row)
    for (std::size_t column = 0; column < heat.columns(); ++column)
      ASSERT_EQ(heat.at(row, column), expected.at(row, column))
          << rows << "x" << length << " at " << row << "," << column;
}

TEST(HeatColumns, ArriveInTheMap) {
  for (const std::size_t rows : {1, 2, 31, 32, 33, 100})
    for (const std::size_t length : {1, 2, 7, 47, 48, 49, 95, 96, 200, 1000})
      for (std::uint64_t seed = 0; seed < 3; ++seed) expect_same(rows, length, seed);
}

}  // namespace
}  // namespace qkcts
