// SPDX-License-Identifier: Apache-2.0
#include "adapters/scalar/number_format.hpp"

#include <bit>

namespace qkcts::scalar {

namespace {

constexpr std::uint32_t magnitude_bits = 0x7fffffffu;
constexpr std::uint32_t binary32_infinity = 0x7f800000u;

// The low `cut` bits of `bits` rounded away to nearest even; a carry runs into the exponent, which is what it should
// do.
constexpr std::uint32_t round_off(std::uint32_t bits, int cut) {
  const std::uint32_t half_below = (std::uint32_t{1} << (cut - 1)) - 1;
  return (bits + half_below + ((bits >> cut) & 1u)) >> cut;
}

}  // namespace

float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

std::uint16_t to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const bool nan = (bits & magnitude_bits) > binary32_infinity;
  // Rounding could carry a NaN whose payload is all low bits into infinity: quiet it instead.
  return static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40u : round_off(bits, 16));
}

float from_binary16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // exact: 10 bits, and normal in binary32
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  const std::uint32_t wide_exponent = exponent == 0x1f ? 0xffu : exponent - 15u + 127u;
  return std::bit_cast<float>(sign | (wide_exponent << 23) | (fraction << 13));
}

std::uint16_t to_binary16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & magnitude_bits;
  constexpr std::uint32_t smallest_normal = 0x38800000u;     // 2^-14
  constexpr std::uint32_t rounds_to_infinity = 0x477ff000u;  // 65520 = 65504 + half an ulp, a tie to even
  if (magnitude > binary32_infinity) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= rounds_to_infinity) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < smallest_normal) {
    // ulp(0.5) is 2^-24, the binary16 quantum: the addition rounds to it, and its result counts the quanta.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign |
                                      (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f)));
  }
  return static_cast<std::uint16_t>(sign | (round_off(magnitude, 13) - ((127u - 15u) << 10)));
}

}  // namespace qkcts::scalar
