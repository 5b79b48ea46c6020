// SPDX-License-Identifier: Apache-2.0
#include "adapters/avx2/projection.hpp"

#include <algorithm>

#include <immintrin.h>

#include "adapters/avx2/row_format.hpp"
#include "adapters/avx2/row_norm.hpp"

namespace qkcts::avx2 {

namespace {

HeadLayout row_layout(const ProjectionPlan& plan) {
  return {1, plan.width, round_up(plan.width, lanes)};
}

}  // namespace

RowProjection::RowProjection(const VectorPlan& side) : side_(side) {
  if (!present()) return;
  const ProjectionPlan& plan = side.projection;
  const HeadLayout layout{side.heads, side.dim, side.stride}, row = row_layout(plan);
  weight_ = AlignedFloats(static_cast<std::size_t>(plan.width * layout.size()));
  for (std::int64_t e = 0; e < plan.width; ++e)
    for (std::int64_t h = 0; h < side.heads; ++h)
      load_row(plan.weight, plan.weight.at(e, h * side.dim), plan.weight.stride[1], side.dim,
               weight_.data() + e * layout.size() + h * side.stride);
  if (plan.bias.present()) bias_ = expand(plan.bias, QKCTS_AXES_FULL_WIDTH, layout, QKCTS_GAIN_W);
  row_ = AlignedFloats(static_cast<std::size_t>(row.size()));
  if (plan.norm_gain.present()) row_factor_ = expand(plan.norm_gain, plan.norm.gain_axes, row, plan.norm.gain);
  if (plan.norm_bias.present()) row_bias_ = expand(plan.norm_bias, plan.norm.bias_axes, row, QKCTS_GAIN_W);
}

void RowProjection::apply(std::int64_t b, std::int64_t t, float* token) {
  const ProjectionPlan& plan = side_.projection;
  load_row(plan.x, plan.x.at(b, t), plan.x.stride[2], plan.width, row_.data());
  if (plan.norm.applied != 0)
    normalise_group(plan.norm, row_layout(plan), row_factor_.empty() ? nullptr : row_factor_.data(),
                    row_bias_.empty() ? nullptr : row_bias_.data(), row_.data());
  const std::int64_t columns = side_.heads * side_.stride;
  std::fill_n(token, columns, 0.0f);
  for (std::int64_t e = 0; e < plan.width; ++e) {
    const __m256 x = _mm256_broadcast_ss(row_.data() + e);
    const float* weight = weight_.data() + e * columns;
    for (std::int64_t j = 0; j < columns; j += lanes)
      _mm256_store_ps(token + j, _mm256_fmadd_ps(x, _mm256_load_ps(weight + j), _mm256_load_ps(token + j)));
  }
  if (bias_.empty()) return;
  for (std::int64_t j = 0; j < columns; j += lanes)
    _mm256_store_ps(token + j, _mm256_add_ps(_mm256_load_ps(token + j), _mm256_load_ps(bias_.data() + j)));
}

}  // namespace qkcts::avx2
