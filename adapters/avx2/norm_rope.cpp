// SPDX-License-Identifier: Apache-2.0
#include "adapters/avx2/norm_rope.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "adapters/avx2/row_format.hpp"
#include "adapters/avx2/row_norm.hpp"
#include "adapters/avx2/vector_math.hpp"

namespace qkcts::avx2 {

namespace {

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

TokenTransform::TokenTransform(const Plan& plan, const VectorPlan& side) : plan_(plan), side_(side), projection_(side) {
  const qkcts_norm& norm = side.norm;
  const HeadLayout layout{side.heads, side.dim, side.stride};
  if (norm.applied != 0 && norm.gain != QKCTS_GAIN_NONE) factor_ = expand(side.gain, norm.gain_axes, layout, norm.gain);
  if (norm.applied != 0 && norm.bias_axes != QKCTS_AXES_NONE)
    bias_ = expand(side.bias, norm.bias_axes, layout, QKCTS_GAIN_W);
  if (side.rope_order != QKCTS_ROPE_NONE) {
    cos_ = AlignedFloats(plan.rope.rotated / 2);
    sin_ = AlignedFloats(plan.rope.rotated / 2);
  }
}

void TokenTransform::apply(std::int64_t b, std::int64_t t, float* token) {
  if (projection_.present()) {
    projection_.apply(b, t, token);
    store(side_.projection_out, b, t, token);
  } else {
    load(b, t, token);
  }
  const auto turn = [&] {
    rotate(b, t, token);
    store(side_.rope_out, b, t, token);
  };
  if (side_.rope_order == QKCTS_ROPE_THEN_NORM) turn();
  transform(token);
  store(side_.norm_out, b, t, token);
  if (side_.rope_order == QKCTS_NORM_THEN_ROPE) turn();
}

void TokenTransform::load(std::int64_t b, std::int64_t t, float* token) const {
  for (std::int64_t h = 0; h < side_.heads; ++h)
    load_row(side_.in, side_.in.at(b, h, t), side_.in.stride[3], side_.dim, token + h * side_.stride);
}

void TokenTransform::store(const StridedTensor& stage, std::int64_t b, std::int64_t t, const float* token) const {
  if (!stage.present()) return;
  for (std::int64_t h = 0; h < side_.heads; ++h)
    store_row(stage, stage.at(b, h, t), stage.stride[3], side_.dim, token + h * side_.stride);
}

// The zeros behind the lanes of a head stay zeros: a clamp and a factor keep them.
void TokenTransform::transform(float* token) const {
  clamp(side_.range.clip_before, token);
  if (side_.norm.applied != 0) normalise(token);
  const auto factor = static_cast<float>(side_.range.multiplier);
  if (factor != 0 && factor != 1)
    std::transform(token, token + side_.heads * side_.stride, token, [=](float x) { return x * factor; });
  clamp(side_.range.clip_after, token);
}

void TokenTransform::clamp(double bound, float* token) const {
  if (bound == 0) return;
  const auto c = static_cast<float>(bound);
  std::transform(token, token + side_.heads * side_.stride, token,
                 [=](float x) { return std::min(std::max(x, -c), c); });
}

void TokenTransform::normalise(float* token) const {
  const bool whole_token = side_.norm.axis == QKCTS_AXIS_FULL_WIDTH;
  const HeadLayout group{whole_token ? side_.heads : 1, side_.dim, side_.stride};
  for (std::int64_t first = 0; first < side_.heads * side_.stride; first += group.size())
    normalise_group(side_.norm, group, factor_.empty() ? nullptr : factor_.data() + first,
                    bias_.empty() ? nullptr : bias_.data() + first, token + first);
}

// Row of the tables of head h, or of all heads.
void TokenTransform::load_angles(std::int64_t h, std::int64_t position) {
  const std::int64_t pairs = plan_.rope.rotated / 2;
  const bool per_head = plan_.rotation.tables == QKCTS_TABLES_PER_HEAD;
  const auto load = [&](const StridedTensor& table, float* row) {
    load_row(table, per_head ? table.at(h, position) : table.at(position), table.stride[per_head ? 2 : 1], pairs, row);
  };
  load(plan_.cos, cos_.data());
  load(plan_.sin, sin_.data());
  if (plan_.rotation.sense == QKCTS_SENSE_NEGATIVE)
    std::transform(sin_.data(), sin_.data() + pairs, sin_.data(), std::negate<>());
}

void TokenTransform::rotate(std::int64_t b, std::int64_t t, float* token) {
  std::int32_t position = 0;
  std::memcpy(&position, side_.positions.at(b, t), sizeof position);
  const std::int64_t rotated = plan_.rope.rotated;
  const std::int64_t first = plan_.rope.span == QKCTS_SPAN_LAST ? side_.dim - rotated : 0;
  for (std::int64_t h = 0; h < side_.heads; ++h) {
    if (h == 0 || plan_.rotation.tables == QKCTS_TABLES_PER_HEAD) load_angles(h, position);
    float* x = token + h * side_.stride + first;
    if (plan_.rope.pairing == QKCTS_INTERLEAVED) {
      rotate_interleaved(x, cos_.data(), sin_.data(), rotated / 2);
    } else {
      rotate_half_split(x, x + rotated / 2, cos_.data(), sin_.data(), rotated / 2);
    }
  }
}

}  // namespace qkcts::avx2
