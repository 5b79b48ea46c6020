// SPDX-License-Identifier: Apache-2.0
#include "harness/largest_values.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <span>
#include <vector>

namespace qkcts {
namespace {

// Classes of 8 to a binade from 2^-8 to 2^24, the lowest and the highest open. Sorting out by them is linear and
// without a branch that cannot be foretold.
constexpr std::size_t classes = 256;
constexpr unsigned dropped_bits = 49;
constexpr std::uint64_t lowest = std::uint64_t{1023 - 8} << 3U;

std::size_t class_of(double value) {
  const std::uint64_t leading = std::bit_cast<std::uint64_t>(value) >> dropped_bits;
  return leading < lowest ? 0 : std::min<std::uint64_t>(leading - lowest, classes - 1);
}

// The class of the value with so many before it in falling order, and how many of these are of higher classes.
struct Cut {
  std::size_t at = classes - 1, above = 0;
};

Cut cut_of(std::span<const double> values, std::size_t before) {
  std::array<std::array<std::uint32_t, classes>, 4> counts{};  // in turns: neighbours are often of one class
  std::size_t highest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t at = class_of(values[i]);
    ++counts[i % 4][at];
    highest = std::max(highest, at);
  }
  Cut cut;
  cut.at = highest;
  const auto count = [&](std::size_t at) {
    return std::size_t{counts[0][at]} + counts[1][at] + counts[2][at] + counts[3][at];
  };
  for (; cut.above + count(cut.at) <= before; --cut.at) cut.above += count(cut.at);
  return cut;
}

}  // namespace

LargestValues::LargestValues(std::size_t kept)
    : kept_(kept),
      room_(std::max<std::size_t>(3 * kept, 1024)),
      values_(std::make_unique_for_overwrite<double[]>(room_ + most)) {}

void LargestValues::add(const double* values, std::size_t count) {
  std::copy_n(values, count, room());
  take(count);
}

// Afterwards there are at least kept_ values, none of those that are gone is above one of them, and half of the room is
// free again.
void LargestValues::thin() {
  const std::span<double> all = std::span(values_.get(), size_);
  const std::size_t cut = cut_of(all, kept_ - 1).at;
  floor_ = cut == 0 ? 0 : (lowest + cut) << dropped_bits;
  size_ = 0;
  for (const double value : all) {  // no branch that cannot be foretold
    values_[size_] = value;
    size_ += std::bit_cast<std::uint64_t>(value) >= floor_ ? 1 : 0;
  }
  if (size_ <= room_ / 2) return;
  const auto last = all.begin() + static_cast<std::ptrdiff_t>(kept_ - 1);
  std::nth_element(all.begin(), last, all.begin() + static_cast<std::ptrdiff_t>(size_), std::greater<>());
  size_ = kept_;
  floor_ = std::bit_cast<std::uint64_t>(*last) + 1;
}

double LargestValues::in_place(std::size_t before) const {
  const std::span<const double> all = std::span(values_.get(), size_);
  if (before == 0) return *std::max_element(all.begin(), all.end());
  const Cut cut = cut_of(all, before);
  std::vector<double> same;
  for (const double value : all)
    if (class_of(value) == cut.at) same.push_back(value);
  const auto place = same.begin() + static_cast<std::ptrdiff_t>(before - cut.above);
  std::nth_element(same.begin(), place, same.end(), std::greater<>());
  return *place;
}

}  // namespace qkcts
