// SPDX-License-Identifier: Apache-2.0
// The two register tiles: up to 6 query rows x 16 keys of <q, k>, and up to 6 rows x 16 columns of P * v.
// Only for translation units built with AVX2 and FMA. Every element is one chain of FMAs in ascending order, whatever
// the number of rows beside it, so that the result of a row does not depend on its neighbours.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "adapters/avx2/plan.hpp"

namespace qkcts::avx2 {

// Every loop over rows and registers is unrolled: only then do the sums live in registers.

// s[r * block_keys + j] = sum over d of q[r * q_stride + d] * panel[d * 16 + j].
template <int rows>
void score_tile(const float* q, std::int64_t q_stride, const float* panel, std::int64_t dim, float* s) {
  __m256 sum[rows][2];
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_ps();
  for (std::int64_t d = 0; d < dim; ++d) {
    const __m256 left = _mm256_load_ps(panel + d * panel_keys);
    const __m256 right = _mm256_load_ps(panel + d * panel_keys + lanes);
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const __m256 x = _mm256_broadcast_ss(q + r * q_stride + d);
      sum[r][0] = _mm256_fmadd_ps(x, left, sum[r][0]);
      sum[r][1] = _mm256_fmadd_ps(x, right, sum[r][1]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) {
    _mm256_store_ps(s + r * block_keys, sum[r][0]);
    _mm256_store_ps(s + r * block_keys + lanes, sum[r][1]);
  }
}

// o[r * stride + c] += sum over k in [first, last) of p[r * block_keys + k] * v[k * stride + c], c < 8 * registers.
template <int rows, int registers>
void value_tile(const float* p, std::int64_t first, std::int64_t last, const float* v, std::int64_t stride, float* o) {
  __m256 sum[rows][registers];
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int c = 0; c < registers; ++c) sum[r][c] = _mm256_load_ps(o + r * stride + c * lanes);
  }
  for (std::int64_t k = first; k < last; ++k) {
    __m256 column[registers];
#pragma GCC unroll 2
    for (int c = 0; c < registers; ++c) column[c] = _mm256_load_ps(v + k * stride + c * lanes);
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const __m256 x = _mm256_broadcast_ss(p + r * block_keys + k);
#pragma GCC unroll 2
      for (int c = 0; c < registers; ++c) sum[r][c] = _mm256_fmadd_ps(x, column[c], sum[r][c]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int c = 0; c < registers; ++c) _mm256_store_ps(o + r * stride + c * lanes, sum[r][c]);
  }
}

// Calls body with the number of rows, 1 .. 6, as a compile-time constant.
template <class Body>
void with_row_count(std::int64_t rows, Body body) {
  switch (rows) {
    case 1:
      return body.template operator()<1>();
    case 2:
      return body.template operator()<2>();
    case 3:
      return body.template operator()<3>();
    case 4:
      return body.template operator()<4>();
    case 5:
      return body.template operator()<5>();
    default:
      return body.template operator()<6>();
  }
}

}  // namespace qkcts::avx2
