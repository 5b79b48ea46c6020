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

void bind_norm(const qkcts_norm& norm, const qkcts_tensor* gain, const qkcts_tensor* bias, StridedTensor& to_gain,
               StridedTensor& to_bias) {
  if (norm.applied == 0) return;
  if (norm.gain != QKCTS_GAIN_NONE) to_gain = needed(gain, "a gain is missing");
  if (norm.bias_axes != QKCTS_AXES_NONE) to_bias = needed(bias, "a bias is missing");
}

ProjectionPlan projection_plan(const qkcts_tensor* x, const qkcts_tensor* weight, bool biased, const qkcts_tensor* bias,
                               const qkcts_norm& norm, const qkcts_tensor* norm_gain, const qkcts_tensor* norm_bias) {
  ProjectionPlan plan;
  plan.x = needed(x, "q_x or k_x is missing");
  plan.width = x->shape[2];
  plan.weight = needed(weight, "q_weight or k_weight is missing");
  if (biased) plan.bias = needed(bias, "the bias of a projection is missing");
  plan.norm = norm;
  bind_norm(norm, norm_gain, norm_bias, plan.norm_gain, plan.norm_bias);
  return plan;
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

  dim_stride = round_up(shape.head_dim, lanes);
  value_stride = round_up(shape.v_head_dim, lanes);
  plan_vectors(terms, in);
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
}

// Inputs that came with a clause are given only beside it, so an old host's shorter list is never read too far.
void Plan::plan_vectors(const qkcts_contract& terms, const qkcts_inputs& in) {
  query.heads = shape.q_heads;
  key.heads = value.heads = shape.kv_heads;
  query.length = shape.q_len;
  key.length = value.length = shape.k_len;
  query.dim = key.dim = shape.head_dim;
  value.dim = shape.v_head_dim;
  query.stride = key.stride = dim_stride;
  value.stride = value_stride;
  query.norm = terms.q_norm;
  key.norm = terms.k_norm;
  value.norm = terms.v_norm;
  query.range = terms.q_range;
  key.range = terms.k_range;
  value.range = terms.v_range;
  if (terms.projection.form == QKCTS_PROJECTION_NONE) {
    query.in = needed(in.q, "q is missing");
    key.in = needed(in.k, "k is missing");
  } else {
    const bool biased = terms.projection.bias != 0;
    query.projection = projection_plan(in.q_x, in.q_weight, biased, in.q_weight_bias, terms.projection.q_input,
                                       in.q_x_gain, in.q_x_bias);
    key.projection = projection_plan(in.k_x, in.k_weight, biased, in.k_weight_bias, terms.projection.k_input,
                                     in.k_x_gain, in.k_x_bias);
  }
  value.in = needed(in.v, "v is missing");
  bind_norm(query.norm, in.q_gain, in.q_bias, query.gain, query.bias);
  bind_norm(key.norm, in.k_gain, in.k_bias, key.gain, key.bias);
  if (value.norm.applied != 0) bind_norm(value.norm, in.v_gain, in.v_bias, value.gain, value.bias);
  query.rope_order = key.rope_order = rope.order;
  query.projection_out = stages[QKCTS_STAGE_Q_PROJ];
  key.projection_out = stages[QKCTS_STAGE_K_PROJ];
  query.norm_out = stages[QKCTS_STAGE_Q_NORM];
  key.norm_out = stages[QKCTS_STAGE_K_NORM];
  value.norm_out = stages[QKCTS_STAGE_V_NORM];
  query.rope_out = stages[QKCTS_STAGE_Q_ROPE];
  key.rope_out = stages[QKCTS_STAGE_K_ROPE];
}

double Plan::query_factor(std::int64_t b, std::int64_t t) const {
  if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE) return 1;
  std::int32_t position = 0;
  std::memcpy(&position, query.positions.at(b, t), sizeof position);
  if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_LOG_RATIO)
    return 1 + logits.query_alpha * std::log(std::max((position + logits.query_shift) / logits.query_period, 1.0));
  const std::int64_t steps =
      (position + static_cast<std::int64_t>(logits.query_shift)) / static_cast<std::int64_t>(logits.query_period);
  return 1 + logits.query_alpha * std::log1p(static_cast<double>(steps));
}

// Formed in binary64 and rounded once.
float Plan::tau(std::int64_t b, std::int64_t h, std::int64_t t) const {
  return static_cast<float>(scale[static_cast<std::size_t>(h)] * query_factor(b, t));
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
