// SPDX-License-Identifier: Apache-2.0
#include "harness/largest_values.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <span>

#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

// Of the patterns of numbers >= 0.
struct Ends {
  std::int64_t least = 0, largest = 0;
};

[[gnu::always_inline]] inline void find_ends(const double* values, std::size_t count, Ends* ends) {
  std::int64_t least = std::bit_cast<std::int64_t>(values[0]), largest = least;
  for (std::size_t i = 0; i < count; ++i) {
    const auto pattern = std::bit_cast<std::int64_t>(values[i]);
    least = pattern < least ? pattern : least;
    largest = pattern > largest ? pattern : largest;
  }
  *ends = {least, largest};
}

[[gnu::always_inline]] inline void count_from(const double* values, std::size_t count, std::int64_t from,
                                              std::int64_t* number) {
  std::int64_t found = 0;
  for (std::size_t i = 0; i < count; ++i) found += std::bit_cast<std::int64_t>(values[i]) >= from ? 1 : 0;
  *number = found;
}

// Moves those from a pattern on to the front, without a branch that cannot be foretold. Their number.
std::size_t move_to_front(double* values, std::size_t count, std::uint64_t from) {
  std::size_t moved = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = values[i];
    values[moved] = value;
    moved += std::bit_cast<std::uint64_t>(value) >= from ? 1 : 0;
  }
  return moved;
}

}  // namespace

LargestValues::LargestValues(std::size_t kept)
    : kept_(kept),
      room_(std::max<std::size_t>(3 * kept, 512)),
      values_(std::make_unique_for_overwrite<double[]>(room_ + most)) {}

void LargestValues::add(const double* values, std::size_t count) {
  std::copy_n(values, count, room());
  take(count);
}

// Halves the patterns between the ends until there are few enough values in between, or a single pattern is left.
template <class Enough>
LargestValues::Bracket LargestValues::bracket(std::size_t before, const Enough& enough) const {
  Ends ends;
  in_widest_lanes([values = values_.get(), count = size_, ends = &ends]()
                      QKCTS_STRAIGHT { find_ends(values, count, ends); });
  Bracket b = {static_cast<std::uint64_t>(ends.least), static_cast<std::uint64_t>(ends.largest) + 1, size_, 0};
  while (!enough(b) && b.to - b.from > 1) {
    const std::uint64_t middle = b.from + (b.to - b.from) / 2;
    std::int64_t number = 0;
    in_widest_lanes([values = values_.get(), count = size_, middle, number = &number]()
                        QKCTS_STRAIGHT { count_from(values, count, static_cast<std::int64_t>(middle), number); });
    const auto count = static_cast<std::size_t>(number);
    if (count > before) {
      b.from = middle;
      b.count = count;
    } else {
      b.to = middle;
      b.above = count;
    }
  }
  return b;
}

// Afterwards there are at least kept_ values, none of those that are gone is above one of them, and half of the room is
// free again. Where equal values would take more, no more of these than are needed stay, and the floor is above them.
void LargestValues::thin() {
  const std::size_t few = std::max(kept_ + kept_ / 4, room_ / 4);
  const Bracket last = bracket(kept_ - 1, [few](const Bracket& b) { return b.count <= few; });
  if (last.count <= few) {
    floor_ = last.from;
    size_ = move_to_front(values_.get(), size_, floor_);
  } else {
    floor_ = last.to;
    size_ = move_to_front(values_.get(), size_, floor_);
    std::fill(values_.get() + size_, values_.get() + kept_, std::bit_cast<double>(last.from));
    size_ = kept_;
  }
}

double LargestValues::in_place(std::size_t before) const {
  if (before == 0) return *std::max_element(values_.get(), values_.get() + size_);
  constexpr std::size_t few = 64;
  const Bracket place = bracket(before, [](const Bracket& b) { return b.count - b.above <= few; });
  if (place.to - place.from == 1) return std::bit_cast<double>(place.from);
  std::array<double, few + 1> near{};  // and one that does not count
  std::size_t count = 0;
  for (const double value : std::span(values_.get(), size_)) {
    near[count] = value;
    count += std::bit_cast<std::uint64_t>(value) - place.from < place.to - place.from ? 1 : 0;
  }
  const auto at = near.begin() + static_cast<std::ptrdiff_t>(before - place.above);
  std::nth_element(near.begin(), at, near.begin() + static_cast<std::ptrdiff_t>(count), std::greater<>());
  return *at;
}

}  // namespace qkcts
