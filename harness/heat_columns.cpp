// SPDX-License-Identifier: Apache-2.0
#include "harness/heat_columns.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

// As signed integers the patterns of numbers >= 0 rise as these do, and that of -1 is below them. (The compiler takes
// integers side by side; of numbers it would have to know that none is NaN.)
using Eight __attribute__((vector_size(32))) = std::int32_t;

[[gnu::always_inline]] inline void raise(const float* ratios, float* hottest) {
  Eight ratio, before;
  std::memcpy(&ratio, ratios, sizeof ratio);
  std::memcpy(&before, hottest, sizeof before);
  before = before < ratio ? ratio : before;
  std::memcpy(hottest, &before, sizeof before);
}

[[gnu::always_inline]] inline void raise_all(const float* ratios, std::size_t count, float* hottest) {
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) raise(ratios + i, hottest + i);
  for (; i < count; ++i)
    hottest[i] =
        std::bit_cast<float>(std::max(std::bit_cast<std::int32_t>(hottest[i]), std::bit_cast<std::int32_t>(ratios[i])));
}

// The eights of a cell may overlap.
[[gnu::always_inline]] inline float largest_of(const float* columns, std::size_t count) {
  if (count < 8) {
    auto largest = std::bit_cast<std::int32_t>(columns[0]);
    for (std::size_t i = 1; i < count; ++i) largest = std::max(largest, std::bit_cast<std::int32_t>(columns[i]));
    return std::bit_cast<float>(largest);
  }
  Eight all, next;
  std::memcpy(&all, columns + count - 8, sizeof all);
  for (std::size_t i = 0; i + 8 < count; i += 8) {
    std::memcpy(&next, columns + i, sizeof next);
    all = all < next ? next : all;
  }
  next = __builtin_shufflevector(all, all, 4, 5, 6, 7, 0, 1, 2, 3);
  all = all < next ? next : all;
  next = __builtin_shufflevector(all, all, 2, 3, 0, 1, 6, 7, 4, 5);
  all = all < next ? next : all;
  next = __builtin_shufflevector(all, all, 1, 0, 3, 2, 5, 4, 7, 6);
  all = all < next ? next : all;
  return std::bit_cast<float>(std::int32_t{all[0]});
}

[[gnu::always_inline]] inline void largest_of_cells(const float* columns, const std::size_t* begin, std::size_t cells,
                                                    float* largest) {
  for (std::size_t cell = 0; cell < cells; ++cell)
    largest[cell] = largest_of(columns + begin[cell], begin[cell + 1] - begin[cell]);
}

#if QKCTS_WIDE_LANES
QKCTS_WIDEST void raise_widest(const float* ratios, std::size_t count, float* hottest) {
  raise_all(ratios, count, hottest);
}
QKCTS_WIDE void raise_wide(const float* ratios, std::size_t count, float* hottest) {
  raise_all(ratios, count, hottest);
}
#endif

}  // namespace

HeatColumns::HeatColumns(HeatMap& heat, std::size_t stored, std::size_t length)
    : heat_(heat),
      stored_(stored),
      rows_(std::min(stored, heat_rows)),
      cells_(std::min(length, heat_columns)),
      hottest_(length) {
  for (std::size_t cell = 0; cell < cells_; ++cell) begin_[cell + 1] = ((cell + 1) * length + cells_ - 1) / cells_;
}

void HeatColumns::add(std::size_t row, std::size_t column, const float* ratios, std::size_t count) {
  if (row != row_) {
    const std::size_t heat_row = row * rows_ / stored_;
    if (heat_row != heat_row_) fold();
    row_ = row;
    heat_row_ = heat_row;
  }
  float* const hottest = hottest_.data() + column;
  const std::size_t end = column + count;
  if (end > filled_) {
    const bool first = column >= filled_;
    std::fill(hottest_.data() + filled_, first ? hottest : hottest_.data() + end, heat_unjudged);
    filled_ = end;
    if (first) {
      std::copy_n(ratios, count, hottest);
      return;
    }
  }
#if QKCTS_WIDE_LANES
  if (lanes_ == 8) return raise_widest(ratios, count, hottest);
  if (lanes_ == 4) return raise_wide(ratios, count, hottest);
#endif
  (void)lanes_;  // of other machines
  raise_all(ratios, count, hottest);
}

void HeatColumns::finish() {
  fold();
  heat_row_ = SIZE_MAX;
}

void HeatColumns::fold() {
  if (heat_row_ == SIZE_MAX) return;
  std::fill(hottest_.begin() + static_cast<std::ptrdiff_t>(filled_), hottest_.end(), heat_unjudged);
  filled_ = 0;
  std::array<float, heat_columns> largest;
  in_widest_lanes([columns = hottest_.data(), begin = begin_.data(), cells = cells_, into = largest.data()]()
                      QKCTS_STRAIGHT { largest_of_cells(columns, begin, cells, into); });
  for (std::size_t cell = 0; cell < cells_; ++cell) heat_.add_to(heat_row_, cell, largest[cell]);
}

}  // namespace qkcts
