// SPDX-License-Identifier: Apache-2.0
#include "harness/largest_values.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <span>

namespace qkcts {
namespace {

// Classes of 8 to a binade from 2^-40 to 2^24, the lowest and the highest open. Sorting out by them is linear and
// without a branch that cannot be foretold.
constexpr std::size_t classes = 512;
constexpr unsigned dropped_bits = 49;
constexpr std::uint64_t lowest = std::uint64_t{1023 - 40} << 3U;

std::size_t class_of(double value) {
  const std::uint64_t leading = std::bit_cast<std::uint64_t>(value) >> dropped_bits;
  return leading < lowest ? 0 : std::min<std::uint64_t>(leading - lowest, classes - 1);
}

// The class of the value with so many before it in falling order, and how many of these are of higher classes.
struct Cut {
  std::size_t at = classes - 1, above = 0;
};

Cut cut_of(std::span<const double> values, std::size_t before) {
  std::array<std::uint32_t, classes> counts{};
  for (const double value : values) ++counts[class_of(value)];
  Cut cut;
  for (; cut.above + counts[cut.at] <= before; --cut.at) cut.above += counts[cut.at];
  return cut;
}

}  // namespace

LargestValues::LargestValues(std::size_t kept)
    : kept_(kept), room_(std::max<std::size_t>(3 * kept, 512)), values_(room_ + most) {}

void LargestValues::add(const double* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {  // no branch: one in twenty is kept, and which one is hard to foretell
    values_[size_] = values[i];
    size_ += std::bit_cast<std::uint64_t>(values[i]) < floor_ ? 0 : 1;
  }
  if (size_ >= room_) thin();
}

// Afterwards there are at least kept_ values, none of those that are gone is above one of them, and half of the room is
// free again.
void LargestValues::thin() {
  const std::span<double> all = std::span(values_).first(size_);
  const std::size_t cut = cut_of(all, kept_ - 1).at;
  size_ = 0;
  for (const double value : all) {
    values_[size_] = value;
    size_ += class_of(value) >= cut ? 1 : 0;
  }
  floor_ = cut == 0 ? 0 : (lowest + cut) << dropped_bits;
  if (size_ <= room_ / 2) return;
  const auto last = all.begin() + static_cast<std::ptrdiff_t>(kept_ - 1);
  std::nth_element(all.begin(), last, all.begin() + static_cast<std::ptrdiff_t>(size_), std::greater<>());
  size_ = kept_;
  floor_ = std::bit_cast<std::uint64_t>(*last) + 1;
}

double LargestValues::in_place(std::size_t before) const {
  const std::span<const double> all = std::span(values_).first(size_);
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
