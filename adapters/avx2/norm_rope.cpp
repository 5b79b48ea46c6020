// SPDX-License-Identifier: Apache-2.0
#include "adapters/avx2/norm_rope.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "adapters/avx2/row_format.hpp"
#include "adapters/avx2/vector_math.hpp"

namespace qkcts::avx2 {

namespace {

// A gain or bias tensor as one value per lane of a token.
AlignedFloats expand(const Plan& plan, const StridedTensor& tensor, std::uint32_t axes, std::int64_t heads,
                     std::uint32_t gain) {
  AlignedFloats result(static_cast<std::size_t>(heads * plan.dim_stride));
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t d = 0; d < plan.shape.head_dim; ++d) {
      const std::byte* from = tensor.first;
      if (axes == QKCTS_AXES_HEAD) from = tensor.at(h);
      if (axes == QKCTS_AXES_HEAD_DIM) from = tensor.at(d);
      if (axes == QKCTS_AXES_HEAD_HEAD_DIM) from = tensor.at(h, d);
      if (axes == QKCTS_AXES_FULL_WIDTH) from = tensor.at(h * plan.shape.head_dim + d);
      float& value = result.data()[h * plan.dim_stride + d];
      load_row(tensor, from, 1, 1, &value);
      if (gain == QKCTS_GAIN_ONE_PLUS_W) value = 1.0f + value;
    }
  }
  return result;
}

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
void clear_padding(float* token, std::int64_t heads, std::int64_t dim, std::int64_t stride) {
  if (dim == stride) return;
  for (std::int64_t h = 0; h < heads; ++h) std::fill(token + h * stride + dim, token + (h + 1) * stride, 0.0f);
}

void rotate_half_split(float* a, float* b, const float* c, const float* s, std::int64_t pairs) {
  std::int64_t i = 0;
  for (; i + lanes <= pairs; i += lanes) {
    const __m256 x = _mm256_loadu_ps(a + i);
    const __m256 y = _mm256_loadu_ps(b + i);
    const __m256 cosine = _mm256_load_ps(c + i);
    const __m256 sine = _mm256_load_ps(s + i);
    _mm256_storeu_ps(a + i, _mm256_fmsub_ps(x, cosine, _mm256_mul_ps(y, sine)));
    _mm256_storeu_ps(b + i, _mm256_fmadd_ps(y, cosine, _mm256_mul_ps(x, sine)));
  }
  for (; i < pairs; ++i) {
    const float x = a[i];
    const float y = b[i];
    a[i] = x * c[i] - y * s[i];
    b[i] = y * c[i] + x * s[i];
  }
}

void rotate_interleaved(float* x, const float* c, const float* s, std::int64_t pairs) {
  const __m256i each_twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  std::int64_t i = 0;
  for (; i + 4 <= pairs; i += 4) {
    const __m256 both = _mm256_loadu_ps(x + 2 * i);
    const __m256 swapped = _mm256_permute_ps(both, 0xb1);
    const __m256 cosine = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(c + i)), each_twice);
    const __m256 sine = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(s + i)), each_twice);
    // Even lanes subtract, odd lanes add.
    _mm256_storeu_ps(x + 2 * i, _mm256_fmaddsub_ps(both, cosine, _mm256_mul_ps(swapped, sine)));
  }
  for (; i < pairs; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    x[2 * i] = a * c[i] - b * s[i];
    x[2 * i + 1] = b * c[i] + a * s[i];
  }
}

}  // namespace

TokenTransform::TokenTransform(const Plan& plan, const VectorPlan& side) : plan_(plan), side_(side) {
  const qkcts_norm& norm = side.norm;
  if (norm.applied != 0 && norm.gain != QKCTS_GAIN_NONE)
    factor_ = expand(plan, side.gain, norm.gain_axes, side.heads, norm.gain);
  if (norm.applied != 0 && norm.bias_axes != QKCTS_AXES_NONE)
    bias_ = expand(plan, side.bias, norm.bias_axes, side.heads, QKCTS_GAIN_W);
  if (plan.rope.order != QKCTS_ROPE_NONE) {
    cos_ = AlignedFloats(plan.rope.rotated / 2);
    sin_ = AlignedFloats(plan.rope.rotated / 2);
  }
}

void TokenTransform::apply(std::int64_t b, std::int64_t t, float* token) {
  load(b, t, token);
  const auto turn = [&] {
    load_angles(b, t);
    rotate(token);
    store(side_.rope_out, b, t, token);
  };
  if (plan_.rope.order == QKCTS_ROPE_THEN_NORM) turn();
  transform(token);
  store(side_.norm_out, b, t, token);
  if (plan_.rope.order == QKCTS_NORM_THEN_ROPE) turn();
}

void TokenTransform::load(std::int64_t b, std::int64_t t, float* token) const {
  for (std::int64_t h = 0; h < side_.heads; ++h)
    load_row(side_.in, side_.in.at(b, h, t), side_.in.stride[3], plan_.shape.head_dim, token + h * plan_.dim_stride);
}

void TokenTransform::store(const StridedTensor& stage, std::int64_t b, std::int64_t t, const float* token) const {
  if (!stage.present()) return;
  for (std::int64_t h = 0; h < side_.heads; ++h)
    store_row(stage, stage.at(b, h, t), stage.stride[3], plan_.shape.head_dim, token + h * plan_.dim_stride);
}

// The zeros behind D stay zeros: a clamp and a factor keep them.
void TokenTransform::transform(float* token) const {
  clamp(side_.range.clip_before, token);
  if (side_.norm.applied != 0) normalise(token);
  const auto factor = static_cast<float>(side_.range.multiplier);
  if (factor != 0 && factor != 1)
    std::transform(token, token + side_.heads * plan_.dim_stride, token, [=](float x) { return x * factor; });
  clamp(side_.range.clip_after, token);
}

void TokenTransform::clamp(double bound, float* token) const {
  if (bound == 0) return;
  const auto c = static_cast<float>(bound);
  std::transform(token, token + side_.heads * plan_.dim_stride, token,
                 [=](float x) { return std::min(std::max(x, -c), c); });
}

void TokenTransform::normalise(float* token) const {
  const qkcts_norm& norm = side_.norm;
  const bool whole_token = norm.axis == QKCTS_AXIS_FULL_WIDTH;
  const std::int64_t heads = whole_token ? side_.heads : 1;
  const std::int64_t width = heads * plan_.dim_stride;
  const double n = static_cast<double>(heads * plan_.shape.head_dim);
  for (std::int64_t first = 0; first < side_.heads * plan_.dim_stride; first += width) {
    float* x = token + first;
    if (norm.center != 0) {
      // Two passes, also where one would do: the real number is the same.
      const __m256 mean = splat(static_cast<float>(static_cast<double>(sum(x, width)) / n));
      for (std::int64_t i = 0; i < width; i += lanes)
        _mm256_store_ps(x + i, _mm256_sub_ps(_mm256_load_ps(x + i), mean));
      clear_padding(x, heads, plan_.shape.head_dim, plan_.dim_stride);
    }
    const double squares = sum_of_squares(x, width);
    const __m256 divisor = splat(root(norm, norm.statistic == QKCTS_SUM_SQUARE ? squares : squares / n));
    for (std::int64_t i = 0; i < width; i += lanes) {
      __m256 y = _mm256_div_ps(_mm256_load_ps(x + i), divisor);
      if (!factor_.empty()) y = _mm256_mul_ps(y, _mm256_load_ps(factor_.data() + first + i));
      if (!bias_.empty()) y = _mm256_add_ps(y, _mm256_load_ps(bias_.data() + first + i));
      _mm256_store_ps(x + i, y);
    }
    clear_padding(x, heads, plan_.shape.head_dim, plan_.dim_stride);  // 0/0 where the divisor is 0
  }
}

void TokenTransform::load_angles(std::int64_t b, std::int64_t t) {
  std::int32_t row = 0;
  std::memcpy(&row, side_.positions.at(b, t), sizeof row);
  const std::int64_t pairs = plan_.rope.rotated / 2;
  load_row(plan_.cos, plan_.cos.at(row), plan_.cos.stride[1], pairs, cos_.data());
  load_row(plan_.sin, plan_.sin.at(row), plan_.sin.stride[1], pairs, sin_.data());
  if (plan_.rotation.sense == QKCTS_SENSE_NEGATIVE)
    std::transform(sin_.data(), sin_.data() + pairs, sin_.data(), std::negate<>());
}

void TokenTransform::rotate(float* token) const {
  const std::int64_t rotated = plan_.rope.rotated;
  const std::int64_t first = plan_.rope.span == QKCTS_SPAN_LAST ? plan_.shape.head_dim - rotated : 0;
  for (std::int64_t h = 0; h < side_.heads; ++h) {
    float* x = token + h * plan_.dim_stride + first;
    if (plan_.rope.pairing == QKCTS_INTERLEAVED) {
      rotate_interleaved(x, cos_.data(), sin_.data(), rotated / 2);
    } else {
      rotate_half_split(x, x + rotated / 2, cos_.data(), sin_.data(), rotated / 2);
    }
  }
}

}  // namespace qkcts::avx2
