// SPDX-License-Identifier: Apache-2.0
#include "harness/heat_columns.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

constexpr double none = -1;

// As signed integers the patterns of numbers >= 0 rise as these do, and that of -1 is below them. (The compiler takes
// integers side by side; of numbers it would have to know that none is NaN.)
std::int64_t pattern(double ratio) {
  return std::bit_cast<std::int64_t>(ratio);
}

[[gnu::always_inline]] inline void raise_all(const double* __restrict ratios, std::size_t count,
                                             double* __restrict hottest) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto ratio = std::bit_cast<std::int64_t>(ratios[i]), before = std::bit_cast<std::int64_t>(hottest[i]);
    hottest[i] = std::bit_cast<double>(before < ratio ? ratio : before);
  }
}

double largest_of(const double* columns, std::size_t count) {
  std::array<std::int64_t, 4> largest;  // four at a time, none of which waits for another
  largest.fill(pattern(none));
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (std::size_t k = 0; k < 4; ++k) largest[k] = std::max(largest[k], pattern(columns[i + k]));
  for (; i < count; ++i) largest[0] = std::max(largest[0], pattern(columns[i]));
  return std::bit_cast<double>(std::max(std::max(largest[0], largest[1]), std::max(largest[2], largest[3])));
}

}  // namespace

HeatColumns::HeatColumns(HeatMap& heat, std::size_t stored, std::size_t length)
    : heat_(heat), stored_(stored), rows_(std::min(stored, heat_rows)), hottest_(length, none) {
  const std::size_t cells = std::min(length, heat_columns);
  for (std::size_t cell = 0; cell < cells; ++cell) cell_end_.push_back(((cell + 1) * length + cells - 1) / cells);
}

void HeatColumns::add(std::size_t row, std::size_t column, const double* ratios, std::size_t count) {
  if (row != row_) {
    const std::size_t heat_row = row * rows_ / stored_;
    if (heat_row != heat_row_) fold();
    row_ = row;
    heat_row_ = heat_row;
  }
  in_widest_lanes([=, hottest = hottest_.data() + column]() QKCTS_STRAIGHT { raise_all(ratios, count, hottest); });
}

void HeatColumns::finish() {
  fold();
  heat_row_ = SIZE_MAX;
}

void HeatColumns::fold() {
  if (heat_row_ == SIZE_MAX) return;
  std::size_t column = 0;
  for (std::size_t cell = 0; cell < cell_end_.size(); ++cell) {
    heat_.add_to(heat_row_, cell, largest_of(hottest_.data() + column, cell_end_[cell] - column));
    column = cell_end_[cell];
  }
  std::fill(hottest_.begin(), hottest_.end(), none);
}

}  // namespace qkcts
