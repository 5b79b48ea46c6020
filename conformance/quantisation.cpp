// SPDX-License-Identifier: Apache-2.0
#include "conformance/quantisation.hpp"

#include <algorithm>
#include <cmath>

#include "conformance/format.hpp"

namespace qkcts {
namespace {

// The integer nearest to x / scale, ties to even, where |x| < 128 * scale. The quotient in binary64 points at the
// neighbourhood in any rounding mode; a midpoint times the scale has at most 9 + 24 significant bits, so the comparison
// that decides is exact.
int nearest_integer(double x, double scale) {
  const double size = std::fabs(x);
  int n = std::max(static_cast<int>(size / scale) - 1, 0);
  while (size > (n + 0.5) * scale || (size == (n + 0.5) * scale && n % 2 != 0)) ++n;
  return x < 0 ? -n : n;
}

int clamped_code(double x, double scale, int lowest, int highest) {
  if (x >= highest * scale) return highest;
  if (x <= lowest * scale) return lowest;
  return nearest_integer(x, scale);
}

// The quotient in binary64 points at the neighbourhood in any rounding mode; 127 times a midpoint of binary16 has at
// most 7 + 12 significant bits, so the comparison that decides is exact.
double block_scale(double largest) {
  const auto number = [](std::uint64_t pattern) { return decode(Format::binary16, pattern); };
  std::uint64_t pattern = encode(Format::binary16, largest / 127, Overflow::saturate);
  const std::uint64_t top = encode(Format::binary16, parameters(Format::binary16).largest);
  const auto exceeds_midpoint_above = [&](std::uint64_t low) {
    const double midpoint = 127 * ((number(low) + number(low + 1)) / 2);
    return largest > midpoint || (largest == midpoint && low % 2 != 0);
  };
  while (pattern > 0 && !exceeds_midpoint_above(pattern - 1)) --pattern;
  while (pattern < top && exceeds_midpoint_above(pattern)) ++pattern;
  return number(pattern);
}

}  // namespace

std::int8_t quantise(double x, double scale) {
  return static_cast<std::int8_t>(clamped_code(x, scale, -128, 127));
}

QuantisedBlocks quantise_blocks(std::span<const double> x) {
  QuantisedBlocks result;
  for (std::size_t first = 0; first < x.size(); first += quantisation_block) {
    const std::span<const double> block = x.subspan(first, std::min(quantisation_block, x.size() - first));
    double largest = 0;
    for (const double number : block) largest = std::max(largest, std::fabs(number));
    const double scale = block_scale(largest);
    result.scales.push_back(scale);
    for (const double number : block)
      result.codes.push_back(static_cast<std::int8_t>(scale == 0 ? 0 : clamped_code(number, scale, -127, 127)));
  }
  return result;
}

std::vector<double> dequantised(const QuantisedBlocks& blocks) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < blocks.codes.size(); ++i)
    numbers.push_back(blocks.codes[i] * blocks.scales[i / quantisation_block]);
  return numbers;
}

}  // namespace qkcts
