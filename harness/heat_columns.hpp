// SPDX-License-Identifier: Apache-2.0
// The part of a heat map that rows are being added to, a number per column: whole runs of ratios are taken side by
// side, and folded into cells once the map goes on to its next row.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "conformance/lanes.hpp"
#include "harness/heat_map.hpp"

namespace qkcts {

class HeatColumns {
 public:
  // `heat` outlives the object, and is of `stored` rows of `length` elements each.
  HeatColumns(HeatMap& heat, std::size_t stored, std::size_t length);

  // Ratios >= 0 of neighbours in the `row`-th of the stored rows, or heat_unjudged; rows come in order.
  void add(std::size_t row, std::size_t column, const float* ratios, std::size_t count);
  // Only now does the map have them all.
  void finish();

 private:
  void fold();

  HeatMap& heat_;
  std::size_t lanes_ = lane_count();
  std::size_t stored_ = 0, rows_ = 0;
  std::size_t row_ = SIZE_MAX, heat_row_ = SIZE_MAX;   // of the last that were added
  std::size_t cells_ = 0;                              // in a row of the map
  std::array<std::size_t, heat_columns + 1> begin_{};  // of each cell of the map its first column, and the end
  std::size_t filled_ = 0;                             // columns so far, of the row of the map
  std::vector<float> hottest_;                         // of each column, heat_unjudged where there is none
};

}  // namespace qkcts
