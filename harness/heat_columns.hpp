// SPDX-License-Identifier: Apache-2.0
// The part of a heat map that rows are being added to, a number per column: whole runs of ratios are taken side by
// side, and folded into cells once the map goes on to its next row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/heat_map.hpp"

namespace qkcts {

class HeatColumns {
 public:
  // `heat` outlives the object, and is of `stored` rows of `length` elements each.
  HeatColumns(HeatMap& heat, std::size_t stored, std::size_t length);

  // Finite ratios >= 0 of neighbours in the `row`-th of the stored rows; rows come in order.
  void add(std::size_t row, std::size_t column, const double* ratios, std::size_t count);
  // Only now does the map have them all.
  void finish();

 private:
  void fold();

  HeatMap& heat_;
  std::size_t stored_ = 0, rows_ = 0;
  std::size_t row_ = SIZE_MAX, heat_row_ = SIZE_MAX;  // of the last that were added
  std::vector<std::size_t> cell_end_;                 // of each cell of the map, the column after its last
  std::vector<double> hottest_;                       // of each column, -1 where there is none
};

}  // namespace qkcts
