// SPDX-License-Identifier: Apache-2.0
#include "adapters/avx2/plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "adapters/avx2/row_format.hpp"

namespace qkcts::avx2 {

namespace {

StridedTensor needed(const qkcts_tensor* tensor, const char* what) {
  if (tensor == nullptr) throw InvalidArguments(what);
  return strided(tensor);
}

// The entry of QK-SCALE-03 and -04 for query head h.
double learned_scale(const qkcts_logits& logits, const StridedTensor& scale, std::int64_t h) {
  float value = 0;
  load_row(scale, scale.at(logits.scale_axes == QKCTS_SCALE_PER_HEAD ? h : 0), 1, 1, &value);
  const double entry = value;
  return logits.scale_exp_cap == 0 ? entry : std::exp(std::min(entry, logits.scale_exp_cap));
}

double scale_of(const qkcts_contract& terms, std::int64_t head_dim, std::int64_t h, const qkcts_tensor* learned) {
  const qkcts_score& score = terms.score;
  switch (score.scale_form) {
    case QKCTS_SCALE_CONSTANT:
      return score.scale_value;
    case QKCTS_SCALE_INV_SQRT_SCALAR:
      return 1 / std::sqrt(score.scale_value);
    case QKCTS_SCALE_LEARNED_SCALAR:
      return learned_scale(terms.logits, needed(learned, "scale is missing"), h);
    default:
      return 1 / std::sqrt(static_cast<double>(head_dim));
  }
}

}  // namespace

std::int32_t load_int(const StridedTensor& tensor, std::int64_t i) {
  std::int32_t value = 0;
  std::memcpy(&value, tensor.at(i), sizeof value);
  return value;
}

Plan::Plan(const qkcts_run_args& args) : shape(*args.shape) {
  const qkcts_contract terms = qkcts_known_contract(args.contract);
  const qkcts_inputs& in = *args.inputs;
  rope = terms.rope;
  rotation = terms.rotation;
  logits = terms.logits;
  mask = terms.mask;
  regions = terms.regions;
  heads = terms.heads;
  const std::uint32_t known = std::min<std::uint32_t>(args.outputs->count, QKCTS_STAGE_COUNT);
  for (std::uint32_t i = 0; i < known; ++i) stages[i] = strided(args.outputs->stage[i]);

  query = {terms.q_norm,
           terms.q_range,
           needed(in.q, "q is missing"),
           strided(in.q_gain),
           strided(in.q_bias),
           {},
           stages[QKCTS_STAGE_Q_NORM],
           stages[QKCTS_STAGE_Q_ROPE],
           shape.q_heads,
           shape.q_len};
  key = {terms.k_norm,
         terms.k_range,
         needed(in.k, "k is missing"),
         strided(in.k_gain),
         strided(in.k_bias),
         {},
         stages[QKCTS_STAGE_K_NORM],
         stages[QKCTS_STAGE_K_ROPE],
         shape.kv_heads,
         shape.k_len};
  for (const VectorPlan* side : {&query, &key}) {
    if (side->norm.applied == 0) continue;
    if (side->norm.gain != QKCTS_GAIN_NONE && !side->gain.present()) throw InvalidArguments("a gain is missing");
    if (side->norm.bias_axes != QKCTS_AXES_NONE && !side->bias.present()) throw InvalidArguments("a bias is missing");
  }
  values = needed(in.v, "v is missing");
  if (rope.rotated == 0) rope.rotated = static_cast<std::uint32_t>(shape.head_dim);
  if (rope.order != QKCTS_ROPE_NONE) {
    cos = needed(in.cos, "cos is missing");
    sin = needed(in.sin, "sin is missing");
    key.positions = needed(in.k_position_ids, "k_position_ids is missing");
  }
  if (rope.order != QKCTS_ROPE_NONE || logits.query_temperature != QKCTS_QUERY_TEMPERATURE_NONE)
    query.positions = needed(in.q_position_ids, "q_position_ids is missing");
  bias_order = terms.score.bias_order;
  if (bias_order != QKCTS_BIAS_NONE) additive = needed(in.bias, "bias is missing");
  if (mask.boolean != 0) boolean = needed(in.mask, "mask is missing");
  if (mask.kv_lengths != 0 || mask.alignment == QKCTS_BOTTOM_RIGHT_VALID)
    kv_len = needed(in.kv_len, "kv_len is missing");
  if (regions.prefix != 0) prefix_len = needed(in.prefix_len, "prefix_len is missing");
  if (regions.documents != 0) {
    q_documents = needed(in.q_document_ids, "q_document_ids is missing");
    k_documents = needed(in.k_document_ids, "k_document_ids is missing");
  }

  const double temperature = terms.score.temperature == 0 ? 1 : terms.score.temperature;
  for (std::int64_t h = 0; h < shape.q_heads; ++h)
    scale.push_back(scale_of(terms, shape.head_dim, h, in.scale) / temperature);
  softcap = static_cast<float>(terms.score.softcap);
  dim_stride = round_up(shape.head_dim, lanes);
  value_stride = round_up(shape.v_head_dim, lanes);
}

// Formed in binary64 and rounded once.
float Plan::tau(std::int64_t b, std::int64_t h, std::int64_t t) const {
  double factor = 1;
  if (logits.query_temperature != QKCTS_QUERY_TEMPERATURE_NONE) {
    std::int32_t position = 0;
    std::memcpy(&position, query.positions.at(b, t), sizeof position);
    const std::int64_t steps =
        (position + static_cast<std::int64_t>(logits.query_shift)) / static_cast<std::int64_t>(logits.query_period);
    factor += logits.query_alpha * std::log1p(static_cast<double>(steps));
  }
  return static_cast<float>(scale[static_cast<std::size_t>(h)] * factor);
}

std::int64_t Plan::query_head(std::int64_t kv, std::int64_t member) const {
  return heads.mapping == QKCTS_HEADS_TILE ? member * shape.kv_heads + kv : kv * group() + member;
}

std::int64_t Plan::slot(std::int64_t h) const {
  return heads.mapping == QKCTS_HEADS_TILE ? h % shape.kv_heads * group() + h / shape.kv_heads : h;
}

KeyInterval Plan::visible_keys(std::int64_t b, std::int64_t t) const {
  std::int64_t offset = 0;
  if (mask.alignment == QKCTS_BOTTOM_RIGHT) offset = shape.k_len - shape.q_len;
  if (mask.alignment == QKCTS_BOTTOM_RIGHT_VALID) offset = load_int(kv_len, b) - shape.q_len;
  if (mask.alignment == QKCTS_OFFSET) offset = mask.offset;
  const std::int64_t place = t + offset;
  KeyInterval keys{0, shape.k_len};
  if (mask.kv_lengths != 0) keys.last = std::min<std::int64_t>(keys.last, load_int(kv_len, b));
  if (mask.causal != 0) {
    // The prefix is a union of two intervals that both begin at key 0.
    const std::int64_t prefix = regions.prefix != 0 ? load_int(prefix_len, b) : 0;
    keys.last = std::min(keys.last, std::max(place + 1, prefix));
  }
  if (regions.chunk > 0) {
    const std::int64_t behind = place % regions.chunk;  // of the start of its chunk; negative before key 0
    const std::int64_t start = place - behind - (behind < 0 ? regions.chunk : 0);
    keys.first = std::max(keys.first, start);
    keys.last = std::min(keys.last, start + regions.chunk);
  }
  if (mask.has_window != 0) {
    // Compared before they are added: a window may be as wide as its type.
    if (mask.window_right >= 0 && mask.window_right < shape.k_len - place)
      keys.last = std::min(keys.last, place + mask.window_right + 1);
    if (mask.window_left >= 0 && mask.window_left < place) keys.first = std::max(keys.first, place - mask.window_left);
  }
  keys.last = std::max(keys.last, keys.first);
  return keys;
}

}  // namespace qkcts::avx2
