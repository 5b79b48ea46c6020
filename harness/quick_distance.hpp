// SPDX-License-Identifier: Apache-2.0
// |got - z| of many elements at a time, where it is plain on which side of Delta they lie: the figures of
// exact_distance.hpp, bit for bit, at a small part of its price. What is not plain is left to that.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "conformance/format.hpp"
#include "conformance/lanes.hpp"

namespace qkcts {

// A block: what is settled as a whole or not at all. And a run: as many as one call looks at.
inline constexpr std::size_t quick_elements = 64, quick_blocks = 4, quick_run = quick_blocks * quick_elements;
constexpr std::size_t blocks_of(std::size_t elements) {
  return (elements + quick_elements - 1) / quick_elements;
}

// Neighbours: blocks, of which the last one may be shorter. z = hi + lo/256 * ulp64(hi).
struct QuickElements {
  Format format = Format::binary32;
  std::size_t count = 0;
  const std::byte* got = nullptr;  // patterns of `format`, wherever they stand
  const double* hi = nullptr;
  const std::int16_t* lo = nullptr;
  const float* delta = nullptr;
};

// Sums by the place of an element in its block, modulo the number of the lanes, which is the same on every machine: the
// additions of a lane wait for each other, those of different lanes do not.
struct UlpSums {
  static constexpr std::size_t lanes = 8;
  // Signed: negative where got < z.hi; outward: where |got| < |z.hi|.
  alignas(64) std::array<double, lanes> ulps{}, signed_ulps{}, outward_ulps{};
};
double sum_of(const std::array<double, UlpSums::lanes>& lanes);

// In place of ulps there: no element, or none that is measured. As an integer it is below all others.
inline constexpr double no_ulps = -0.0;

struct WithinDelta {
  alignas(64) std::array<double, quick_run> ulps;    // no_ulps in what is left of the last block
  alignas(64) std::array<float, quick_run> ratio;    // |got - z| / Delta, off by less than 2^-22 of it, or 2^-49
  std::array<double, quick_blocks> largest_ratio{};  // none in the block is greater, rounded or not
};

// Of a run. How many of its elements are in blocks that lie plainly within Delta, before the first one that does not:
// these have been added to the sums. The figures of the others mean nothing. `lanes`: 2, 4, 8, as far as the machine
// has them. Bits do not depend on it.
std::size_t measure_within(const QuickElements& elements, WithinDelta& within, UlpSums& sums,
                           std::size_t lanes = lane_count());

enum class Side : std::uint8_t { within, beyond, open };

struct EachDistance {
  alignas(64) std::array<std::uint64_t, quick_elements> side;  // Side
  alignas(64) std::array<double, quick_elements> ulps;         // mean nothing of what is open; no_ulps from `count` on
  alignas(64) std::array<double, quick_elements> ratio, signed_ulps, outward_ulps;
};
// Of a block.
void measure_each(const QuickElements& elements, EachDistance& each, std::size_t lanes = lane_count());

}  // namespace qkcts
