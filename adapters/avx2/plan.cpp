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

std::int32_t load_int(const StridedTensor& tensor, std::int64_t i) {
  std::int32_t value = 0;
  std::memcpy(&value, tensor.at(i), sizeof value);
  return value;
}

double scale_of(const qkcts_score& score, std::int64_t head_dim, const qkcts_tensor* learned) {
  switch (score.scale_form) {
    case QKCTS_SCALE_CONSTANT:
      return score.scale_value;
    case QKCTS_SCALE_INV_SQRT_SCALAR:
      return 1 / std::sqrt(score.scale_value);
    case QKCTS_SCALE_LEARNED_SCALAR: {
      const StridedTensor scale = needed(learned, "scale is missing");
      float value = 0;
      load_row(scale, scale.first, 1, 1, &value);
      return value;
    }
    default:
      return 1 / std::sqrt(static_cast<double>(head_dim));
  }
}

}  // namespace

Plan::Plan(const qkcts_run_args& args) : shape(*args.shape), rope(args.contract->rope), mask(args.contract->mask) {
  const qkcts_contract& terms = *args.contract;
  const qkcts_inputs& in = *args.inputs;
  const std::uint32_t known = std::min<std::uint32_t>(args.outputs->count, QKCTS_STAGE_COUNT);
  for (std::uint32_t i = 0; i < known; ++i) stages[i] = strided(args.outputs->stage[i]);

  query = {terms.q_norm, needed(in.q, "q is missing"), strided(in.q_gain),         strided(in.q_bias),
           {},           stages[QKCTS_STAGE_Q_NORM],   stages[QKCTS_STAGE_Q_ROPE], shape.q_heads,
           shape.q_len};
  key = {terms.k_norm, needed(in.k, "k is missing"), strided(in.k_gain),         strided(in.k_bias),
         {},           stages[QKCTS_STAGE_K_NORM],   stages[QKCTS_STAGE_K_ROPE], shape.kv_heads,
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
    query.positions = needed(in.q_position_ids, "q_position_ids is missing");
    key.positions = needed(in.k_position_ids, "k_position_ids is missing");
  }
  bias_order = terms.score.bias_order;
  if (bias_order != QKCTS_BIAS_NONE) additive = needed(in.bias, "bias is missing");
  if (mask.boolean != 0) boolean = needed(in.mask, "mask is missing");
  if (mask.kv_lengths != 0 || mask.alignment == QKCTS_BOTTOM_RIGHT_VALID)
    kv_len = needed(in.kv_len, "kv_len is missing");

  // Formed in binary64 and rounded once.
  const double temperature = terms.score.temperature == 0 ? 1 : terms.score.temperature;
  tau = static_cast<float>(scale_of(terms.score, shape.head_dim, in.scale) / temperature);
  softcap = static_cast<float>(terms.score.softcap);
  dim_stride = round_up(shape.head_dim, lanes);
  value_stride = round_up(shape.v_head_dim, lanes);
}

KeyInterval Plan::visible_keys(std::int64_t b, std::int64_t t) const {
  std::int64_t offset = 0;
  if (mask.alignment == QKCTS_BOTTOM_RIGHT) offset = shape.k_len - shape.q_len;
  if (mask.alignment == QKCTS_BOTTOM_RIGHT_VALID) offset = load_int(kv_len, b) - shape.q_len;
  if (mask.alignment == QKCTS_OFFSET) offset = mask.offset;
  const std::int64_t place = t + offset;
  KeyInterval keys{0, shape.k_len};
  if (mask.kv_lengths != 0) keys.last = std::min<std::int64_t>(keys.last, load_int(kv_len, b));
  if (mask.causal != 0) keys.last = std::min(keys.last, place + 1);
  if (mask.has_window != 0) {
    // Compared before they are added: a window may be as wide as its type.
    if (mask.window_right >= 0 && mask.window_right < shape.k_len - place)
      keys.last = std::min(keys.last, place + mask.window_right + 1);
    if (mask.window_left >= 0 && mask.window_left < place) keys.first = place - mask.window_left;
  }
  keys.last = std::max(keys.last, keys.first);
  return keys;
}

}  // namespace qkcts::avx2
