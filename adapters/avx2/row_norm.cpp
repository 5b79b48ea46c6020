// SPDX-License-Identifier: Apache-2.0
#include "adapters/avx2/row_norm.hpp"

#include <algorithm>
#include <cmath>

#include "adapters/avx2/plan.hpp"
#include "adapters/avx2/row_format.hpp"
#include "adapters/avx2/vector_math.hpp"

namespace qkcts::avx2 {

namespace {

float sum(const float* x, std::int64_t count) {
  __m256 even = _mm256_setzero_ps();
  __m256 odd = _mm256_setzero_ps();
  std::int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    even = _mm256_add_ps(even, _mm256_load_ps(x + i));
    odd = _mm256_add_ps(odd, _mm256_load_ps(x + i + lanes));
  }
  if (i < count) even = _mm256_add_ps(even, _mm256_load_ps(x + i));
  return horizontal_sum(_mm256_add_ps(even, odd));
}

float sum_of_squares(const float* x, std::int64_t count) {
  __m256 even = _mm256_setzero_ps();
  __m256 odd = _mm256_setzero_ps();
  std::int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const __m256 first = _mm256_load_ps(x + i);
    const __m256 second = _mm256_load_ps(x + i + lanes);
    even = _mm256_fmadd_ps(first, first, even);
    odd = _mm256_fmadd_ps(second, second, odd);
  }
  if (i < count) even = _mm256_fmadd_ps(_mm256_load_ps(x + i), _mm256_load_ps(x + i), even);
  return horizontal_sum(_mm256_add_ps(even, odd));
}

// The divisor d(t, eps): in binary64 from the binary32 sum on, rounded once.
float root(const qkcts_norm& norm, double t) {
  switch (norm.root) {
    case QKCTS_OUTSIDE_ROOT:
      return static_cast<float>(std::sqrt(t) + norm.eps);
    case QKCTS_MAX_ROOT:
      return static_cast<float>(std::max(std::sqrt(t), norm.eps));
    case QKCTS_MAX_INSIDE:
      return static_cast<float>(std::sqrt(std::max(t, norm.eps)));
    default:
      return static_cast<float>(std::sqrt(t + norm.eps));
  }
}

// Whole registers were written; the lanes behind D have to be 0 again.
void clear_padding(float* x, const HeadLayout& layout) {
  if (layout.dim == layout.stride) return;
  for (std::int64_t h = 0; h < layout.heads; ++h)
    std::fill(x + h * layout.stride + layout.dim, x + (h + 1) * layout.stride, 0.0f);
}

}  // namespace

AlignedFloats expand(const StridedTensor& tensor, std::uint32_t axes, const HeadLayout& layout, std::uint32_t gain) {
  AlignedFloats result(static_cast<std::size_t>(layout.size()));
  for (std::int64_t h = 0; h < layout.heads; ++h) {
    for (std::int64_t d = 0; d < layout.dim; ++d) {
      const std::byte* from = tensor.first;
      if (axes == QKCTS_AXES_HEAD) from = tensor.at(h);
      if (axes == QKCTS_AXES_HEAD_DIM) from = tensor.at(d);
      if (axes == QKCTS_AXES_HEAD_HEAD_DIM) from = tensor.at(h, d);
      if (axes == QKCTS_AXES_FULL_WIDTH) from = tensor.at(h * layout.dim + d);
      float& value = result.data()[h * layout.stride + d];
      load_row(tensor, from, 1, 1, &value);
      if (gain == QKCTS_GAIN_ONE_PLUS_W) value = 1.0f + value;
    }
  }
  return result;
}

void normalise_group(const qkcts_norm& norm, const HeadLayout& layout, const float* factor, const float* bias,
                     float* x) {
  const std::int64_t width = layout.size();
  const double n = static_cast<double>(layout.heads * layout.dim);
  if (norm.center != 0) {
    // Two passes, also where one would do: the real number is the same.
    const __m256 mean = splat(static_cast<float>(static_cast<double>(sum(x, width)) / n));
    for (std::int64_t i = 0; i < width; i += lanes) _mm256_store_ps(x + i, _mm256_sub_ps(_mm256_load_ps(x + i), mean));
    clear_padding(x, layout);
  }
  const double squares = sum_of_squares(x, width);
  const __m256 divisor = splat(root(norm, norm.statistic == QKCTS_SUM_SQUARE ? squares : squares / n));
  for (std::int64_t i = 0; i < width; i += lanes) {
    __m256 y = _mm256_div_ps(_mm256_load_ps(x + i), divisor);
    if (factor != nullptr) y = _mm256_mul_ps(y, _mm256_load_ps(factor + i));
    if (bias != nullptr) y = _mm256_add_ps(y, _mm256_load_ps(bias + i));
    _mm256_store_ps(x + i, y);
  }
  clear_padding(x, layout);  // 0/0 where the divisor is 0
}

}  // namespace qkcts::avx2
