// SPDX-License-Identifier: Apache-2.0
#include "adapters/avx2/row_format.hpp"

#include <immintrin.h>

#include <bit>
#include <cstring>

namespace qkcts::avx2 {

namespace {

float widen_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

std::uint16_t narrow_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);  // stays a NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float widen_binary16(std::uint16_t bits) {
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

std::uint16_t narrow_binary16(float value) {
  return static_cast<std::uint16_t>(
      _mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), 0));
}

template <class Widen>
void load_narrow(const std::byte* from, std::int64_t stride, std::int64_t count, float* row, Widen widen) {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from + i * stride * 2, 2);
    row[i] = widen(bits);
  }
}

template <class Narrow>
void store_narrow(std::byte* to, std::int64_t stride, std::int64_t count, const float* row, Narrow narrow) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint16_t bits = narrow(row[i]);
    std::memcpy(to + i * stride * 2, &bits, 2);
  }
}

}  // namespace

void load_row(const StridedTensor& tensor, const std::byte* from, std::int64_t stride, std::int64_t count, float* row) {
  switch (tensor.element) {
    case Element::binary32:
      if (stride == 1) {
        std::memcpy(row, from, static_cast<std::size_t>(count) * 4);
      } else {
        for (std::int64_t i = 0; i < count; ++i) std::memcpy(row + i, from + i * stride * 4, 4);
      }
      return;
    case Element::binary16:
      return load_narrow(from, stride, count, row, widen_binary16);
    case Element::bfloat16:
      return load_narrow(from, stride, count, row, widen_bfloat16);
    default:
      throw InvalidArguments("a floating-point input has another element type");
  }
}

void store_row(const StridedTensor& tensor, std::byte* to, std::int64_t stride, std::int64_t count, const float* row) {
  switch (tensor.element) {
    case Element::binary32:
      if (stride == 1) {
        std::memcpy(to, row, static_cast<std::size_t>(count) * 4);
      } else {
        for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * stride * 4, row + i, 4);
      }
      return;
    case Element::binary16:
      return store_narrow(to, stride, count, row, narrow_binary16);
    case Element::bfloat16:
      return store_narrow(to, stride, count, row, narrow_bfloat16);
    default:
      throw InvalidArguments("a stage has an element type that this kernel does not write");
  }
}

}  // namespace qkcts::avx2
