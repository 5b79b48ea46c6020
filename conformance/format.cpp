// SPDX-License-Identifier: Apache-2.0
#include "conformance/format.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace qkcts {
namespace {

constexpr std::array<FormatParameters, 6> table = {{
    {"binary64", 64, 53, -1022, 1023, 0x1.fffffffffffffp+1023, true},
    {"binary32", 32, 24, -126, 127, 0x1.fffffep+127, true},
    {"binary16", 16, 11, -14, 15, 0x1.ffcp+15, true},
    {"bfloat16", 16, 8, -126, 127, 0x1.fep+127, true},
    {"e4m3fn", 8, 4, -6, 8, 0x1.cp+8, false},
    {"e5m2", 8, 3, -14, 15, 0x1.cp+15, true},
}};

std::uint64_t sign_bit(const FormatParameters& f) {
  return std::uint64_t{1} << (f.bits - 1);
}

// The pattern above that of the largest number: infinity, or NaN where there is none. The largest has the exponent
// field emax - emin + 1; its fraction is all ones, or, without infinities, all ones but the last.
std::uint64_t first_special(const FormatParameters& f) {
  const std::uint64_t next_exponent = static_cast<std::uint64_t>(f.emax - f.emin + 2) << (f.precision - 1);
  return f.has_infinity ? next_exponent : next_exponent - 1;
}

std::uint64_t nan_pattern(const FormatParameters& f) {
  return f.has_infinity ? first_special(f) | (std::uint64_t{1} << (f.precision - 2)) : first_special(f);
}

// Of a number: its sign, and the pattern of its rounding without the sign, first_special() or more if it overflows.
struct Rounded {
  bool negative;
  std::uint64_t magnitude;
};

// Integers only: the result depends neither on the rounding mode of the thread nor on its flush-to-zero setting.
Rounded rounded(const FormatParameters& f, double value) {
  constexpr std::uint64_t hidden64 = std::uint64_t{1} << 52;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const bool negative = bits >> 63 != 0;
  const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
  if (magnitude == first_special(table[0])) return {negative, first_special(f)};
  if (magnitude == 0) return {negative, 0};

  // |value| = significand * 2^(exponent - 52) with significand in [2^52, 2^53).
  const int field = static_cast<int>(magnitude >> 52);
  std::uint64_t significand = magnitude & (hidden64 - 1);
  int exponent = -1022;
  if (field != 0) {
    significand |= hidden64;
    exponent = field - 1023;
  } else {
    const int shift = std::countl_zero(significand) - 11;
    significand <<= shift;
    exponent -= shift;
  }

  // In units of the quantum 2^(scale - p + 1) of the target, the value is significand >> dropped.
  const int scale = std::max(exponent, f.emin);
  const int dropped = scale - exponent + 53 - f.precision;
  if (dropped > 54) return {negative, 0};  // below half a quantum: significand < 2^53 <= 2^(dropped - 2)
  std::uint64_t units = significand >> dropped;
  if (dropped > 0) {
    const std::uint64_t rest = significand & ((std::uint64_t{1} << dropped) - 1);
    const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
    if (rest > half || (rest == half && (units & 1) != 0)) ++units;
  }
  // units holds the hidden bit of a normal number, so adding it to the field below carries into the exponent by itself.
  return {negative, (static_cast<std::uint64_t>(scale - f.emin) << (f.precision - 1)) + units};
}

// As ldexp(1, n) and ilogb(z), which budgets would call for every element: from the bits, where the number is normal.
double power_of_two(int n) {
  if (n < -1022 || n > 1023) return std::ldexp(1.0, n);
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

int exponent_of(double z) {
  const int field = static_cast<int>(std::bit_cast<std::uint64_t>(z) >> 52 & 0x7ff);
  return field == 0 || field == 0x7ff ? std::ilogb(z) : field - 1023;
}

}  // namespace

const FormatParameters& parameters(Format format) {
  return table[static_cast<std::uint32_t>(format) - 1];
}

std::optional<Format> format_named(std::string_view name) {
  for (std::uint32_t i = 0; i < table.size(); ++i)
    if (table[i].name == name) return static_cast<Format>(i + 1);
  return std::nullopt;
}

bool stores_tensors(Format format) {
  return parameters(format).bits >= 16;
}

std::optional<Format> storage_format_named(std::string_view name) {
  const std::optional<Format> format = format_named(name);
  return format && stores_tensors(*format) ? format : std::nullopt;
}

double unit_roundoff(Format format) {
  return power_of_two(-parameters(format).precision);
}

double smallest_normal(Format format) {
  return power_of_two(parameters(format).emin);
}

double smallest_subnormal(Format format) {
  const FormatParameters& f = parameters(format);
  return power_of_two(f.emin - f.precision + 1);
}

double decode(Format format, std::uint64_t pattern) {
  if (format == Format::binary64) return std::bit_cast<double>(pattern);
  const FormatParameters& f = parameters(format);
  const bool negative = (pattern & sign_bit(f)) != 0;
  const std::uint64_t magnitude = pattern & (sign_bit(f) - 1);
  if (magnitude > first_special(f) || magnitude == nan_pattern(f)) return std::numeric_limits<double>::quiet_NaN();
  double value = std::numeric_limits<double>::infinity();
  if (magnitude < first_special(f)) {
    const std::uint64_t hidden = std::uint64_t{1} << (f.precision - 1);
    const std::uint64_t fraction = magnitude & (hidden - 1);
    const int field = static_cast<int>(magnitude >> (f.precision - 1));
    // A subnormal has the exponent of the smallest normal number and no hidden bit.
    const std::uint64_t significand = field == 0 ? fraction : fraction | hidden;
    value = std::ldexp(static_cast<double>(significand), std::max(field, 1) - 1 + f.emin - f.precision + 1);
  }
  return negative ? -value : value;
}

std::uint64_t encode(Format format, double value, Overflow overflow) {
  const FormatParameters& f = parameters(format);
  const std::uint64_t magnitude = std::bit_cast<std::uint64_t>(value) & ~(std::uint64_t{1} << 63);
  if (magnitude > first_special(table[0])) return nan_pattern(f);
  const Rounded result = rounded(f, value);
  const std::uint64_t limit = overflow == Overflow::saturate ? first_special(f) - 1 : first_special(f);
  return (result.negative ? sign_bit(f) : 0) | std::min(result.magnitude, limit);
}

bool overflows(Format format, double value) {
  const FormatParameters& f = parameters(format);
  return rounded(f, value).magnitude >= first_special(f);
}

double ulp(Format format, double z) {
  const FormatParameters& f = parameters(format);
  const int exponent = z == 0 ? f.emin : std::max(exponent_of(z), f.emin);
  return power_of_two(exponent - f.precision + 1);
}

Format accumulator_format(Format storage) {
  return storage == Format::binary64 ? Format::binary64 : Format::binary32;
}

Format stage_format(qkcts_stage stage, Format storage) {
  switch (stage) {
    case QKCTS_STAGE_SCORES:
    case QKCTS_STAGE_CAPPED:
    case QKCTS_STAGE_MASKED:
    case QKCTS_STAGE_LSE:
      return accumulator_format(storage);
    default:
      return storage;
  }
}

}  // namespace qkcts
