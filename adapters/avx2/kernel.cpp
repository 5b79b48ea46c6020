// SPDX-License-Identifier: Apache-2.0
#include "adapters/avx2/kernel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "adapters/avx2/aligned_floats.hpp"
#include "adapters/avx2/logits.hpp"
#include "adapters/avx2/prologue.hpp"
#include "adapters/avx2/register_tile.hpp"
#include "adapters/avx2/row_format.hpp"
#include "adapters/avx2/vector_math.hpp"

namespace qkcts::avx2 {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// One query row between two blocks of keys: the sums are relative to exp(largest).
struct RunningRow {
  LogitRow logits;
  float largest = -infinity;
  float sum = 0;
};

// The rows of one batch entry that read one key head: [group head, query token].
class HeadAttention {
 public:
  explicit HeadAttention(const Plan& plan);
  // `values`: the rows of pack_values(), or null.
  void run(std::int64_t b, std::int64_t kv, const float* queries, const float* panels, const float* values);

 private:
  void load_values(std::int64_t b, std::int64_t kv, const float* values);
  void start_rows(std::int64_t b, std::int64_t kv, std::int64_t first, std::int64_t count);
  void visit_block(std::int64_t block, std::int64_t count, const float* queries, const float* panels);
  void visit_tile(std::int64_t first_row, std::int64_t rows, KeyInterval keys, std::int64_t block, const float* queries,
                  const float* panels);
  void weigh_row(std::int64_t r, std::int64_t block, std::int64_t first_panel, std::int64_t panels, float* s);
  void finish_row(std::int64_t r);
  void write_empty_row(const RunningRow& row);
  void write_weights(std::int64_t r);

  // Hidden keys are visited too if somebody looks at their scores.
  bool visits_all() const { return plan_.observed(QKCTS_STAGE_SCORES) || plan_.observed(QKCTS_STAGE_CAPPED); }
  bool keeps_logits() const { return plan_.observed(QKCTS_STAGE_MASKED) || plan_.observed(QKCTS_STAGE_PROBS); }

  const Plan& plan_;
  const std::int64_t keys_padded_;
  AlignedFloats values_;  // [Lk rounded up to a block, value_stride]
  AlignedFloats output_;  // [block_rows, value_stride]
  AlignedFloats s_;       // [tile_rows, block_keys]: dot products, then logits, then weights
  AlignedFloats logits_;  // [block_rows, keys_padded], only if keeps_logits()
  std::array<RunningRow, block_rows> rows_;
};

HeadAttention::HeadAttention(const Plan& plan)
    : plan_(plan),
      keys_padded_(round_up(plan.shape.k_len, block_keys)),
      values_(static_cast<std::size_t>(keys_padded_ * plan.value_stride)),
      output_(static_cast<std::size_t>(block_rows * plan.value_stride)),
      s_(static_cast<std::size_t>(tile_rows * block_keys)) {
  if (keeps_logits()) logits_ = AlignedFloats(static_cast<std::size_t>(block_rows * keys_padded_));
}

void HeadAttention::load_values(std::int64_t b, std::int64_t kv, const float* values) {
  if (values != nullptr) {
    std::copy_n(values, plan_.shape.k_len * plan_.value_stride, values_.data());
    return;
  }
  const StridedTensor& in = plan_.value.in;
  for (std::int64_t k = 0; k < plan_.shape.k_len; ++k)
    load_row(in, in.at(b, kv, k), in.stride[3], plan_.shape.v_head_dim, values_.data() + k * plan_.value_stride);
}

void HeadAttention::run(std::int64_t b, std::int64_t kv, const float* queries, const float* panels,
                        const float* values) {
  load_values(b, kv, values);
  const std::int64_t rows = plan_.group() * plan_.shape.q_len;
  for (std::int64_t first = 0; first < rows; first += block_rows) {
    const std::int64_t count = std::min(block_rows, rows - first);
    start_rows(b, kv, first, count);
    for (std::int64_t block = 0; block < plan_.shape.k_len; block += block_keys)
      visit_block(block, count, queries + first * plan_.dim_stride, panels);
    for (std::int64_t r = 0; r < count; ++r) finish_row(r);
  }
}

void HeadAttention::start_rows(std::int64_t b, std::int64_t kv, std::int64_t first, std::int64_t count) {
  for (std::int64_t r = 0; r < count; ++r) {
    RunningRow& row = rows_[r];
    row = RunningRow{};
    row.logits.b = b;
    row.logits.h = plan_.query_head(kv, (first + r) / plan_.shape.q_len);
    row.logits.t = (first + r) % plan_.shape.q_len;
    row.logits.tau = plan_.tau(b, row.logits.h, row.logits.t);
    row.logits.keys = plan_.visible_keys(b, row.logits.t);
  }
  std::fill_n(output_.data(), count * plan_.value_stride, 0.0f);
  if (keeps_logits()) std::fill_n(logits_.data(), count * keys_padded_, -infinity);
}

void HeadAttention::visit_block(std::int64_t block, std::int64_t count, const float* queries, const float* panels) {
  const std::int64_t block_end = std::min(block + block_keys, plan_.shape.k_len);
  for (std::int64_t first = 0; first < count; first += tile_rows) {
    const std::int64_t rows = std::min(tile_rows, count - first);
    KeyInterval keys{plan_.shape.k_len, 0};
    for (std::int64_t r = first; r < first + rows; ++r) {
      const KeyInterval& visible = rows_[r].logits.keys;
      if (visible.first >= visible.last) continue;
      keys.first = std::min(keys.first, visible.first);
      keys.last = std::max(keys.last, visible.last);
    }
    if (visits_all()) keys = {0, plan_.shape.k_len};
    keys = {std::max(keys.first, block), std::min(keys.last, block_end)};
    if (keys.first < keys.last) visit_tile(first, rows, keys, block, queries + first * plan_.dim_stride, panels);
  }
}

void HeadAttention::visit_tile(std::int64_t first_row, std::int64_t rows, KeyInterval keys, std::int64_t block,
                               const float* queries, const float* panels) {
  const std::int64_t first_panel = (keys.first - block) / panel_keys;
  const std::int64_t last_panel = round_up(keys.last - block, panel_keys) / panel_keys;
  const std::int64_t panel_size = plan_.dim_stride * panel_keys;
  const float* block_panels = panels + block / panel_keys * panel_size;
  float* s = s_.data();
  with_row_count(rows, [&]<int row_count>() {
    for (std::int64_t p = first_panel; p < last_panel; ++p)
      score_tile<row_count>(queries, plan_.dim_stride, block_panels + p * panel_size, plan_.shape.head_dim,
                            s + p * panel_keys);
  });
  for (std::int64_t r = 0; r < rows; ++r)
    weigh_row(first_row + r, block, first_panel, last_panel - first_panel, s + r * block_keys);

  const float* values = values_.data() + block * plan_.value_stride;
  float* output = output_.data() + first_row * plan_.value_stride;
  with_row_count(rows, [&]<int row_count>() {
    const std::int64_t first = keys.first - block;
    const std::int64_t last = keys.last - block;
    const std::int64_t stride = plan_.value_stride;
    std::int64_t c = 0;
    for (; c + 2 * lanes <= stride; c += 2 * lanes)
      value_tile<row_count, 2>(s, first, last, values + c, stride, output + c);
    if (c < stride) value_tile<row_count, 1>(s, first, last, values + c, stride, output + c);
  });
}

// Logits to weights exp(s - largest); where the maximum rises, what was summed before shrinks by exp(old - new).
void HeadAttention::weigh_row(std::int64_t r, std::int64_t block, std::int64_t first_panel, std::int64_t panels,
                              float* s) {
  RunningRow& row = rows_[r];
  const std::int64_t first = first_panel * panel_keys;
  const std::int64_t count = panels * panel_keys;
  s += first;
  const float top = finish_logits(plan_, row.logits, block + first, count / lanes, s);
  if (keeps_logits()) std::copy_n(s, count, logits_.data() + r * keys_padded_ + block + first);
  if (top > row.largest) {
    const float shrink = _mm256_cvtss_f32(exp(splat(row.largest - top)));
    row.largest = top;
    row.sum *= shrink;
    float* output = output_.data() + r * plan_.value_stride;
    for (std::int64_t d = 0; d < plan_.value_stride; d += lanes)
      _mm256_store_ps(output + d, _mm256_mul_ps(_mm256_load_ps(output + d), splat(shrink)));
  }
  // Nothing visible so far: (-inf) - (-inf) would be NaN; any finite shift gives the weights 0 that are wanted.
  const __m256 shift = splat(row.largest == -infinity ? 0.0f : row.largest);
  __m256 sum = _mm256_setzero_ps();
  for (std::int64_t i = 0; i < count; i += lanes) {
    const __m256 weight = exp(_mm256_sub_ps(_mm256_load_ps(s + i), shift));
    _mm256_store_ps(s + i, weight);
    sum = _mm256_add_ps(sum, weight);
  }
  row.sum += horizontal_sum(sum);
}

void HeadAttention::finish_row(std::int64_t r) {
  const RunningRow& row = rows_[r];
  const LogitRow& at = row.logits;
  if (!at.any_visible) return write_empty_row(row);
  float* output = output_.data() + r * plan_.value_stride;
  for (std::int64_t d = 0; d < plan_.value_stride; d += lanes) {
    // Adding +0 turns -0 into +0: whether a skipped block would have done so must not show.
    const __m256 mean = _mm256_div_ps(_mm256_load_ps(output + d), splat(row.sum));
    _mm256_store_ps(output + d, _mm256_add_ps(mean, _mm256_setzero_ps()));
  }
  const StridedTensor& stage = plan_.stage(QKCTS_STAGE_OUTPUT);
  if (stage.present()) store_row(stage, stage.at(at.b, at.h, at.t), stage.stride[3], plan_.shape.v_head_dim, output);
  const StridedTensor& lse_stage = plan_.stage(QKCTS_STAGE_LSE);
  if (lse_stage.present()) {
    const float lse = static_cast<float>(row.largest + std::log(static_cast<double>(row.sum)));
    store_row(lse_stage, lse_stage.at(at.b, at.h, at.t), 1, 1, &lse);
  }
  if (keeps_logits()) write_weights(r);
}

void HeadAttention::write_weights(std::int64_t r) {
  const RunningRow& row = rows_[r];
  const LogitRow& at = row.logits;
  float* logits = logits_.data() + r * keys_padded_;
  const StridedTensor& masked = plan_.stage(QKCTS_STAGE_MASKED);
  if (masked.present()) store_row(masked, masked.at(at.b, at.h, at.t), masked.stride[3], plan_.shape.k_len, logits);
  const StridedTensor& probs = plan_.stage(QKCTS_STAGE_PROBS);
  if (!probs.present()) return;
  for (std::int64_t k = 0; k < keys_padded_; k += lanes) {
    const __m256 weight = exp(_mm256_sub_ps(_mm256_load_ps(logits + k), splat(row.largest)));
    _mm256_store_ps(logits + k, _mm256_div_ps(weight, splat(row.sum)));
  }
  store_row(probs, probs.at(at.b, at.h, at.t), probs.stride[3], plan_.shape.k_len, logits);
}

void HeadAttention::write_empty_row(const RunningRow& row) {
  const LogitRow& at = row.logits;
  const std::uint32_t rule = plan_.mask.empty_row;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto fill = [&](qkcts_stage which, std::int64_t count, float value) {
    const StridedTensor& stage = plan_.stage(which);
    if (!stage.present()) return;
    for (std::int64_t i = 0; i < count; ++i) store_row(stage, stage.at(at.b, at.h, at.t, i), 1, 1, &value);
  };
  fill(QKCTS_STAGE_MASKED, plan_.shape.k_len, -infinity);
  fill(QKCTS_STAGE_LSE, 1, rule == QKCTS_EMPTY_NAN ? nan : -infinity);
  if (rule != QKCTS_EMPTY_UNIFORM) {
    fill(QKCTS_STAGE_PROBS, plan_.shape.k_len, rule == QKCTS_EMPTY_NAN ? nan : 0.0f);
    fill(QKCTS_STAGE_OUTPUT, plan_.shape.v_head_dim, rule == QKCTS_EMPTY_NAN ? nan : 0.0f);
    return;
  }
  const float keys = static_cast<float>(plan_.shape.k_len);
  fill(QKCTS_STAGE_PROBS, plan_.shape.k_len, 1.0f / keys);
  const StridedTensor& output = plan_.stage(QKCTS_STAGE_OUTPUT);
  for (std::int64_t d = 0; output.present() && d < plan_.shape.v_head_dim; ++d) {
    float sum = 0;
    for (std::int64_t k = 0; k < plan_.shape.k_len; ++k) sum += values_.data()[k * plan_.value_stride + d];
    const float mean = sum / keys;
    store_row(output, output.at(at.b, at.h, at.t, d), 1, 1, &mean);
  }
}

}  // namespace

void attend(const Plan& plan) {
  const AlignedFloats queries = pack_queries(plan);
  const AlignedFloats panels = pack_keys(plan);
  const AlignedFloats values = pack_values(plan);
  const std::int64_t head_panels = panel_count(plan) * plan.dim_stride * panel_keys;
  HeadAttention head(plan);
  for (std::int64_t b = 0; b < plan.shape.batch; ++b) {
    for (std::int64_t kv = 0; kv < plan.shape.kv_heads; ++kv) {
      const std::int64_t index = b * plan.shape.kv_heads + kv;
      head.run(b, kv, queries.data() + index * plan.group() * plan.shape.q_len * plan.dim_stride,
               panels.data() + index * head_panels,
               values.empty() ? nullptr : values.data() + index * plan.shape.k_len * plan.value_stride);
    }
  }
}

}  // namespace qkcts::avx2
