// SPDX-License-Identifier: Apache-2.0
// |got - z| of many elements at a time, where it is plain that they lie within Delta: the figures of
// exact_distance.hpp, bit for bit, at a small part of its price. What is not plain is left to that.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "conformance/format.hpp"

namespace qkcts {

inline constexpr std::size_t quick_elements = 64;

struct QuickDistances {
  bool all_settled = false;
  double largest_ratio = 0;  // where all are settled
  // Of element i: 0 if its distance is settled, and it is within Delta. Else the figures mean nothing.
  alignas(64) std::array<std::uint64_t, quick_elements> odd;
  alignas(64) std::array<double, quick_elements> ulps, ratio;
  // 2i: ulps, negative where got < z.hi; 2i + 1: negative where |got| < |z.hi|. They are added side by side.
  alignas(64) std::array<double, 2 * quick_elements> signed_and_outward;
};

struct UlpSums {
  double ulps = 0, signed_ulps = 0, outward_ulps = 0;
};

// `got`: patterns of `format`; z = hi + lo/256 * ulp64(hi). 1 to quick_elements. Where all are settled, their figures
// are added to the sums one after the other, while the next ones are measured: bits do not depend on the machine, and
// the sums cost little.
void measure_quickly(Format format, std::size_t count, const std::byte* got, const double* hi, const std::int16_t* lo,
                     const float* delta, QuickDistances& distances, UlpSums& sums);

}  // namespace qkcts
