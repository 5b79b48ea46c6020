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
  // Of element i: its distance is settled, and it is within Delta. Else the figures mean nothing.
  std::array<std::uint8_t, quick_elements> settled;
  std::array<double, quick_elements> ulps, ratio;
  std::array<double, quick_elements> signed_ulps;   // negative where got < z.hi
  std::array<double, quick_elements> outward_ulps;  // negative where |got| < |z.hi|
};

// `got` are values of `format` as numbers; z = hi + lo/256 * ulp64(hi). At most quick_elements.
void measure_quickly(Format format, std::size_t count, const double* got, const double* hi, const std::int16_t* lo,
                     const float* delta, QuickDistances& distances);

}  // namespace qkcts
