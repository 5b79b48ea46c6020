// SPDX-License-Identifier: Apache-2.0
// Numbers of the storage formats in memory. Widening is exact, narrowing rounds once, to nearest even.
#pragma once

#include <cstring>

#include <qkcts/contract.h>

#include "adapters/cuda/platform.hpp"

namespace qkcts::cuda {

QKCTS_DEVICE std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

QKCTS_DEVICE float float_of(std::uint32_t bits) {
  float value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

QKCTS_DEVICE float from_bfloat16(std::uint16_t bits) {
  return float_of(std::uint32_t{bits} << 16);
}

QKCTS_DEVICE std::uint16_t to_bfloat16(float value) {
  const std::uint32_t bits = bits_of(value);
  // A payload of low bits only would be carried into infinity: a NaN is made quiet instead.
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

QKCTS_DEVICE float from_binary16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t rest = bits & 0x7fffu;
  // Exponent and fraction moved to their place in binary32 make a number that is too small by 2^112, subnormals
  // included; infinity and NaN only lack exponent bits.
  if (rest >= 0x7c00u) return float_of(sign | 0x7f800000u | (rest << 13));
  return float_of(sign | bits_of(float_of(rest << 13) * 0x1p112f));
}

QKCTS_DEVICE std::uint16_t to_binary16(float value) {
  const std::uint32_t sign = bits_of(value) >> 16 & 0x8000u;
  const std::uint32_t size = bits_of(value) & 0x7fffffffu;
  if (size > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (size >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65520: half an ulp beyond the largest
  if (size < 0x38800000u) {
    // Below 2^-14 the quantum is 2^-24, that of a sum with 0.5 in binary32: the sum is rounded where it has to be.
    return static_cast<std::uint16_t>(sign | (bits_of(float_of(size) + 0.5f) - bits_of(0.5f)));
  }
  const std::uint32_t rounded = size + 0xfffu + ((size >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}

template <class Real>
QKCTS_DEVICE Real load(std::uint32_t format, const void* from, std::int64_t i);

template <>
QKCTS_DEVICE float load<float>(std::uint32_t format, const void* from, std::int64_t i) {
  if (format == QKCTS_BINARY32) return static_cast<const float*>(from)[i];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(from)[i];
  return format == QKCTS_BFLOAT16 ? from_bfloat16(bits) : from_binary16(bits);
}

template <>
QKCTS_DEVICE double load<double>(std::uint32_t /*binary64*/, const void* from, std::int64_t i) {
  return static_cast<const double*>(from)[i];
}

QKCTS_DEVICE void store(std::uint32_t format, void* to, std::int64_t i, float value) {
  if (format == QKCTS_BINARY32) {
    static_cast<float*>(to)[i] = value;
  } else {
    static_cast<std::uint16_t*>(to)[i] = format == QKCTS_BFLOAT16 ? to_bfloat16(value) : to_binary16(value);
  }
}

QKCTS_DEVICE void store(std::uint32_t /*binary64*/, void* to, std::int64_t i, double value) {
  static_cast<double*>(to)[i] = value;
}

}  // namespace qkcts::cuda
