// SPDX-License-Identifier: Apache-2.0
#include "adapters/avx2/prologue.hpp"

#include <algorithm>
#include <cstring>

#include <immintrin.h>

#include "adapters/avx2/norm_rope.hpp"

namespace qkcts::avx2 {

namespace {

// to[j * to_stride + i] = from[i * from_stride + j] for i, j < 8.
void transpose_8x8(const float* from, std::int64_t from_stride, float* to, std::int64_t to_stride) {
  __m256 row[8];
  for (std::int64_t i = 0; i < 8; ++i) row[i] = _mm256_load_ps(from + i * from_stride);
  __m256 pair[8];
  for (int i = 0; i < 4; ++i) {
    pair[2 * i] = _mm256_unpacklo_ps(row[2 * i], row[2 * i + 1]);
    pair[2 * i + 1] = _mm256_unpackhi_ps(row[2 * i], row[2 * i + 1]);
  }
  __m256 quad[8];
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 2; ++i) {
      const __m256 a = pair[4 * half + i];
      const __m256 b = pair[4 * half + i + 2];
      quad[4 * half + 2 * i] = _mm256_shuffle_ps(a, b, 0x44);
      quad[4 * half + 2 * i + 1] = _mm256_shuffle_ps(a, b, 0xee);
    }
  }
  for (std::int64_t j = 0; j < 4; ++j) {
    _mm256_store_ps(to + j * to_stride, _mm256_permute2f128_ps(quad[j], quad[j + 4], 0x20));
    _mm256_store_ps(to + (j + 4) * to_stride, _mm256_permute2f128_ps(quad[j], quad[j + 4], 0x31));
  }
}

}  // namespace

std::int64_t panel_count(const Plan& plan) {
  return round_up(plan.shape.k_len, panel_keys) / panel_keys;
}

AlignedFloats pack_queries(const Plan& plan) {
  const VectorPlan& side = plan.query;
  const std::int64_t dim = plan.dim_stride;
  AlignedFloats rows(static_cast<std::size_t>(plan.shape.batch * side.heads * side.length * dim));
  AlignedFloats token(static_cast<std::size_t>(side.heads * dim));
  TokenTransform transform(plan, side);
  for (std::int64_t b = 0; b < plan.shape.batch; ++b) {
    for (std::int64_t t = 0; t < side.length; ++t) {
      transform.apply(b, t, token.data());
      for (std::int64_t h = 0; h < side.heads; ++h)
        std::copy_n(token.data() + h * dim, dim,
                    rows.data() + ((b * side.heads + plan.slot(h)) * side.length + t) * dim);
    }
  }
  return rows;
}

AlignedFloats pack_keys(const Plan& plan) {
  const VectorPlan& side = plan.key;
  const std::int64_t dim = plan.dim_stride;
  const std::int64_t panels = panel_count(plan);
  const std::int64_t panel_size = dim * panel_keys;
  AlignedFloats packed(static_cast<std::size_t>(plan.shape.batch * side.heads * panels * panel_size));
  AlignedFloats tokens(static_cast<std::size_t>(8 * side.heads * dim));
  TokenTransform transform(plan, side);
  for (std::int64_t b = 0; b < plan.shape.batch; ++b) {
    for (std::int64_t first = 0; first < side.length; first += 8) {
      const std::int64_t count = std::min<std::int64_t>(8, side.length - first);
      for (std::int64_t i = 0; i < 8; ++i) {
        float* token = tokens.data() + i * side.heads * dim;
        if (i < count) {
          transform.apply(b, first + i, token);
        } else {
          std::fill_n(token, side.heads * dim, 0.0f);
        }
      }
      for (std::int64_t h = 0; h < side.heads; ++h) {
        float* panel = packed.data() + ((b * side.heads + h) * panels + first / panel_keys) * panel_size;
        for (std::int64_t d = 0; d < dim; d += 8)
          transpose_8x8(tokens.data() + h * dim + d, side.heads * dim, panel + d * panel_keys + first % panel_keys,
                        panel_keys);
      }
    }
  }
  return packed;
}

AlignedFloats pack_values(const Plan& plan) {
  const VectorPlan& side = plan.value;
  if (!side.changes()) return {};
  AlignedFloats rows(static_cast<std::size_t>(plan.shape.batch * side.heads * side.length * side.stride));
  AlignedFloats token(static_cast<std::size_t>(side.heads * side.stride));
  TokenTransform transform(plan, side);
  for (std::int64_t b = 0; b < plan.shape.batch; ++b) {
    for (std::int64_t t = 0; t < side.length; ++t) {
      transform.apply(b, t, token.data());
      for (std::int64_t h = 0; h < side.heads; ++h)
        std::copy_n(token.data() + h * side.stride, side.stride,
                    rows.data() + ((b * side.heads + h) * side.length + t) * side.stride);
    }
  }
  return rows;
}

}  // namespace qkcts::avx2
