// SPDX-License-Identifier: Apache-2.0
#include "adapters/avx2/logits.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "adapters/avx2/row_format.hpp"
#include "adapters/avx2/vector_math.hpp"

namespace qkcts::avx2 {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// What the tensors say about a segment of keys; both arrays are padded up to whole registers. `visible` is filled where
// visibility is more than an interval.
struct Segment {
  alignas(32) float bias[block_keys];
  alignas(32) std::uint8_t visible[block_keys];
};

void load_segment(const Plan& plan, const LogitRow& row, std::int64_t first, std::int64_t count, Segment& segment) {
  if (plan.additive.present()) {
    std::fill_n(segment.bias, block_keys, 0.0f);
    load_row(plan.additive, plan.additive.at(row.b, row.h, row.t, first), plan.additive.stride[3], count, segment.bias);
  }
  if (!plan.by_key()) return;
  std::fill_n(segment.visible, count, std::uint8_t{1});
  std::fill_n(segment.visible + count, block_keys - count, std::uint8_t{0});
  if (plan.boolean.present()) {
    const std::byte* from = plan.boolean.at(row.b, row.h, row.t, first);
    for (std::int64_t k = 0; k < count; ++k)
      segment.visible[k] = static_cast<std::uint8_t>(from[k * plan.boolean.stride[3]]);
  }
  if (!plan.k_documents.present()) return;
  std::int32_t own = 0, other = 0;
  std::memcpy(&own, plan.q_documents.at(row.b, row.t), sizeof own);
  for (std::int64_t k = 0; k < count; ++k) {
    std::memcpy(&other, plan.k_documents.at(row.b, first + k), sizeof other);
    if (other != own) segment.visible[k] = 0;
  }
}

// All bits set at keys first .. first + 7 that lie inside the interval.
__m256 inside(const KeyInterval& keys, std::int64_t first) {
  const __m256i k =
      _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(first)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  const __m256i from = _mm256_cmpgt_epi32(k, _mm256_set1_epi32(static_cast<int>(keys.first) - 1));
  const __m256i until = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(keys.last)), k);
  return _mm256_castsi256_ps(_mm256_and_si256(from, until));
}

__m256 nonzero_bytes(const std::uint8_t* bytes) {
  const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
  return _mm256_castsi256_ps(_mm256_cmpgt_epi32(wide, _mm256_setzero_si256()));
}

}  // namespace

float finish_logits(const Plan& plan, LogitRow& row, std::int64_t first, std::int64_t registers, float* s) {
  const std::int64_t count = std::min(registers * lanes, plan.shape.k_len - first);
  const bool open = row.keys.first <= first && first + registers * lanes <= row.keys.last && !plan.by_key() &&
                    !plan.additive.present();
  const bool watched = plan.observed(QKCTS_STAGE_SCORES) || plan.observed(QKCTS_STAGE_CAPPED);
  const __m256 tau = splat(row.tau);
  const __m256 cap = splat(plan.softcap);
  const __m256 minus_infinity = splat(-infinity);
  alignas(32) float scores[block_keys];
  alignas(32) float capped[block_keys];
  Segment segment;
  if (!open) load_segment(plan, row, first, count, segment);

  __m256 largest = minus_infinity;
  __m256 seen = _mm256_setzero_ps();
  for (std::int64_t i = 0; i < registers * lanes; i += lanes) {
    __m256 x = _mm256_mul_ps(_mm256_load_ps(s + i), tau);
    if (watched) _mm256_store_ps(scores + i, x);
    if (plan.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP) x = _mm256_add_ps(x, _mm256_load_ps(segment.bias + i));
    if (plan.softcap > 0) x = _mm256_mul_ps(cap, tanh(_mm256_div_ps(x, cap)));
    if (plan.bias_order == QKCTS_BIAS_AFTER_SOFTCAP) x = _mm256_add_ps(x, _mm256_load_ps(segment.bias + i));
    if (watched) _mm256_store_ps(capped + i, x);
    if (!open) {
      __m256 visible = inside(row.keys, first + i);
      if (plan.by_key()) visible = _mm256_and_ps(visible, nonzero_bytes(segment.visible + i));
      if (plan.additive.present())
        visible = _mm256_and_ps(visible, _mm256_cmp_ps(_mm256_load_ps(segment.bias + i), minus_infinity, _CMP_NEQ_UQ));
      seen = _mm256_or_ps(seen, visible);
      x = _mm256_blendv_ps(minus_infinity, x, visible);
    }
    _mm256_store_ps(s + i, x);
    largest = _mm256_max_ps(largest, x);
  }
  if (open || _mm256_movemask_ps(seen) != 0) row.any_visible = true;

  const auto write = [&](qkcts_stage which, const float* values) {
    const StridedTensor& stage = plan.stage(which);
    if (stage.present()) store_row(stage, stage.at(row.b, row.h, row.t, first), stage.stride[3], count, values);
  };
  if (watched) {
    write(QKCTS_STAGE_SCORES, scores);
    write(QKCTS_STAGE_CAPPED, capped);
  }
  return horizontal_max(largest);
}

}  // namespace qkcts::avx2
