// SPDX-License-Identifier: Apache-2.0
#include "harness/pattern_values.hpp"

#include <bit>
#include <cstring>
#include <limits>

#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

// A format of 16 bits, in integers and one exact product of normal numbers: the significand times the power of two of
// its last bit. A subnormal has the exponent of the smallest normal number and no hidden bit.
struct ShortFormat {
  std::int32_t fraction_bits, largest_field;
  std::int64_t smallest_subnormal;  // its exponent in binary64, biased
};

[[gnu::always_inline]] inline void read_short(ShortFormat f, const std::byte* patterns, std::size_t count,
                                              double* __restrict values) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t pattern;
    std::memcpy(&pattern, patterns + i * sizeof pattern, sizeof pattern);
    const std::int32_t magnitude = pattern & 0x7fff;
    const std::int32_t field = magnitude >> f.fraction_bits;
    const std::int32_t fraction = magnitude & ((1 << f.fraction_bits) - 1);
    const std::int32_t hidden = field == 0 ? 0 : 1 << f.fraction_bits;
    const std::int64_t power = (field == 0 ? 0 : field - 1) + f.smallest_subnormal;
    const double size = static_cast<double>(fraction | hidden) * std::bit_cast<double>(power << 52);
    const double special = fraction == 0 ? infinity : nan;
    const double value = field == f.largest_field ? special : size;
    values[i] = (pattern & 0x8000) != 0 ? -value : value;
  }
}

}  // namespace

void read_patterns(Format format, const std::byte* patterns, std::size_t count, double* values) {
  const FormatParameters& f = parameters(format);
  if (format == Format::binary64) {
    std::memcpy(values, patterns, count * sizeof(double));
    return;
  }
  if (f.bits == 16) {
    const ShortFormat shorter = {f.precision - 1, f.emax - f.emin + 2, f.emin - f.precision + 1 + 1023};
    in_widest_lanes([=]() QKCTS_STRAIGHT { read_short(shorter, patterns, count, values); });
    return;
  }
  const auto size = static_cast<std::size_t>(f.bits / 8);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t pattern = 0;
    std::memcpy(&pattern, patterns + i * size, size);
    values[i] = decode(format, pattern);
  }
}

}  // namespace qkcts
