// SPDX-License-Identifier: Apache-2.0
// The largest of many numbers, in memory for few: a quantile near the top without the numbers below it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace qkcts {

class LargestValues {
 public:
  // At least the `kept` (> 0) largest of all that are added.
  explicit LargestValues(std::size_t kept);

  // values >= 0, infinity too; `most` at once, at most.
  static constexpr std::size_t most = 256;
  void add(const double* values, std::size_t count);
  // The same without a copy: where they may be written, and how many have been.
  double* room() { return values_.get() + size_; }
  void take(std::size_t count) {
    size_ += count;
    if (size_ >= room_) thin();
  }
  // Bit patterns of numbers >= 0 rise as they do; what is below this one need not be added.
  std::uint64_t floor() const { return floor_; }

  // The one with so many before it in falling order; fewer than `kept` and than were added.
  double in_place(std::size_t before) const;

 private:
  // Patterns around that of the value with so many before it in falling order: it is one of `from` or above, of which
  // there are `count`, and below `to`, which `above` of them are not.
  struct Bracket {
    std::uint64_t from = 0, to = 0;
    std::size_t count = 0, above = 0;
  };
  template <class Enough>
  Bracket bracket(std::size_t before, const Enough& enough) const;
  void thin();

  std::size_t kept_ = 0, room_ = 0, size_ = 0;
  std::uint64_t floor_ = 0;
  std::unique_ptr<double[]> values_;  // of which size_ count
};

}  // namespace qkcts
