// SPDX-License-Identifier: Apache-2.0
// How the errors of a stage are spread, in ulps: their histogram, and the largest of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "conformance/lanes.hpp"
#include "harness/judgement.hpp"
#include "harness/largest_values.hpp"
#include "harness/quick_distance.hpp"

namespace qkcts {

class UlpCounts {
 public:
  // At least the `kept` largest are at hand in the end. `lanes`: 2, 4 or 8, as far as the machine has them.
  explicit UlpCounts(std::size_t kept, std::size_t lanes = lane_count()) : lanes_(lanes), largest_(kept) {}

  // ulps >= 0, infinity too.
  void add(double ulps);
  // `count` of them in whole blocks, a run at most; at other places there is no_ulps. Is one of them above 0?
  bool add(const double* ulps, std::size_t blocks, std::size_t count);

  std::uint64_t count() const { return count_; }
  std::array<std::uint64_t, histogram_edges.size() + 1> histogram();
  // The one with so many before it in falling order.
  double in_place(std::size_t before) const { return largest_.in_place(before); }

  static constexpr std::size_t counters = 16;  // side by side, of which every machine uses as many as it has lanes for

 private:
  // Of a block a counter takes 4 or 8 elements.
  static constexpr std::size_t blocks_counted = 65535 / 8;
  void gather();

  std::size_t lanes_;
  std::uint64_t count_ = 0;
  std::array<std::uint64_t, histogram_edges.size()> above_{};  // each edge, without the last blocks
  std::size_t blocks_ = 0;
  alignas(64) std::array<std::array<std::uint16_t, counters>, histogram_edges.size()> counts_{};  // of those
  LargestValues largest_;
};

}  // namespace qkcts
