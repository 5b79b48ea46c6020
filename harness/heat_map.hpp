// SPDX-License-Identifier: Apache-2.0
// Where in a stage the errors stand: the largest error/Delta of each block of its stored elements, few enough blocks to
// be looked at.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace qkcts {

inline constexpr std::size_t heat_rows = 32, heat_columns = 48;
inline constexpr float heat_unjudged = -1;  // of a cell in which no element was measured

class HeatMap {
 public:
  HeatMap() = default;
  // Of `stored` rows of `length` elements each.
  HeatMap(std::size_t stored, std::size_t length)
      : stored_(stored),
        length_(length),
        rows_(std::min(stored, heat_rows)),
        columns_(std::min(length, heat_columns)),
        cells_(rows_ * columns_, heat_unjudged) {}
  // As it stands in a report.
  HeatMap(std::size_t stored, std::size_t length, std::size_t rows, std::size_t columns, std::vector<float> cells)
      : stored_(stored), length_(length), rows_(rows), columns_(columns), cells_(std::move(cells)) {}

  // `row` counts the stored rows; error/Delta may be infinite.
  void add(std::size_t row, std::size_t column, double ratio) {
    add_to(row * rows_ / stored_, column * columns_ / length_, ratio);
  }
  // To the cell itself.
  void add_to(std::size_t row, std::size_t column, double ratio) {
    float& cell = cells_[row * columns_ + column];
    cell = std::max(cell, static_cast<float>(ratio));
  }

  std::size_t stored() const { return stored_; }
  std::size_t length() const { return length_; }
  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  float at(std::size_t row, std::size_t column) const { return cells_[row * columns_ + column]; }

 private:
  std::size_t stored_ = 0, length_ = 0;
  std::size_t rows_ = 0, columns_ = 0;  // of cells
  std::vector<float> cells_;
};

}  // namespace qkcts
