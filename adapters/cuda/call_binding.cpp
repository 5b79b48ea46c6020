// SPDX-License-Identifier: Apache-2.0
// From contract and tensors to what the kernels read. Inputs that came with a clause are given only beside it, so an
// old host's shorter list is never read too far.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "adapters/cuda/call.hpp"
#include "adapters/cuda/launches.hpp"
#include "adapters/cuda/operands.hpp"
#include "adapters/cuda/scale.hpp"

namespace qkcts::cuda {

namespace {

std::vector<std::int32_t> host_integers(const qkcts_tensor* tensor, const char* name) {
  const std::vector<std::byte> bytes = packed(tensor, int32_type, name);
  std::vector<std::int32_t> values(bytes.size() / sizeof(std::int32_t));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<double> host_numbers(std::uint32_t format, const qkcts_tensor* tensor, const char* name) {
  const std::vector<std::byte> bytes = packed(tensor, element_type(format), name);
  std::vector<double> values;
  for (std::int64_t i = 0; i < element_count(*tensor); ++i)
    values.push_back(format == QKCTS_BINARY64 ? load<double>(format, bytes.data(), i)
                                              : static_cast<double>(load<float>(format, bytes.data(), i)));
  return values;
}

}  // namespace

void Call::bind_projection(Side which) {
  const bool q = which == query_side;
  const qkcts_projection& terms = terms_.projection;
  ProjectionProblem& plan = problem_.side[which].projection;
  const qkcts_tensor* x = q ? in_.q_x : in_.k_x;
  plan.x = input(x, q ? "q_x" : "k_x");
  plan.width = x->shape[2];
  plan.weight = input(q ? in_.q_weight : in_.k_weight, q ? "q_weight" : "k_weight");
  if (terms.bias != 0)
    plan.bias = input(q ? in_.q_weight_bias : in_.k_weight_bias, q ? "q_weight_bias" : "k_weight_bias");
  plan.norm = q ? terms.q_input : terms.k_input;
  plan.points = q ? terms_.rounding.q_input : terms_.rounding.k_input;
  plan.row = room(problem_.shape.batch * problem_.side[which].length * plan.width, real_bytes());
  if (plan.norm.applied == 0) return;
  if (plan.norm.gain != QKCTS_GAIN_NONE)
    plan.norm_gain = input(q ? in_.q_x_gain : in_.k_x_gain, q ? "q_x_gain" : "k_x_gain");
  if (plan.norm.bias_axes != QKCTS_AXES_NONE)
    plan.norm_bias = input(q ? in_.q_x_bias : in_.k_x_bias, q ? "q_x_bias" : "k_x_bias");
}

void Call::bind_sides() {
  const qkcts_shape& shape = problem_.shape;
  SideProblem& q = problem_.side[query_side];
  SideProblem& k = problem_.side[key_side];
  SideProblem& v = problem_.side[value_side];
  q.heads = shape.q_heads;
  q.length = shape.q_len;
  k.heads = v.heads = shape.kv_heads;
  k.length = v.length = shape.k_len;
  q.width = k.width = shape.head_dim;
  v.width = shape.v_head_dim;
  q.norm = terms_.q_norm;
  k.norm = terms_.k_norm;
  v.norm = terms_.v_norm;
  q.range = terms_.q_range;
  k.range = terms_.k_range;
  v.range = terms_.v_range;
  q.points = terms_.rounding.q;
  k.points = terms_.rounding.k;
  v.points = terms_.rounding.v;
  q.rope_order = k.rope_order = terms_.rope.order;
  if (terms_.projection.form == QKCTS_PROJECTION_NONE) {
    q.in = input(in_.q, "q");
    k.in = input(in_.k, "k");
  } else {
    bind_projection(query_side);
    bind_projection(key_side);
  }
  v.in = input(in_.v, "v");
  const auto bind_norm = [&](SideProblem& side, const qkcts_tensor* gain, const char* gain_name,
                             const qkcts_tensor* bias, const char* bias_name) {
    if (side.norm.gain != QKCTS_GAIN_NONE) side.gain = input(gain, gain_name);
    if (side.norm.bias_axes != QKCTS_AXES_NONE) side.bias = input(bias, bias_name);
  };
  if (q.norm.applied != 0) bind_norm(q, in_.q_gain, "q_gain", in_.q_bias, "q_bias");
  if (k.norm.applied != 0) bind_norm(k, in_.k_gain, "k_gain", in_.k_bias, "k_bias");
  if (v.norm.applied != 0) bind_norm(v, in_.v_gain, "v_gain", in_.v_bias, "v_bias");
  q.projection_out = stage(QKCTS_STAGE_Q_PROJ);
  k.projection_out = stage(QKCTS_STAGE_K_PROJ);
  q.norm_out = stage(QKCTS_STAGE_Q_NORM);
  k.norm_out = stage(QKCTS_STAGE_K_NORM);
  v.norm_out = stage(QKCTS_STAGE_V_NORM);
  q.rope_out = stage(QKCTS_STAGE_Q_ROPE);
  k.rope_out = stage(QKCTS_STAGE_K_ROPE);
  for (SideProblem& side : problem_.side)
    side.vectors = room(shape.batch * side.heads * side.length * side.width, real_bytes());
}

void Call::bind_table(Side which, const qkcts_tensor* positions, const char* name) {
  SideProblem& side = problem_.side[which];
  side.cosine = reals(in_.cos, "cos");
  side.sine = reals(in_.sin, "sin");
  side.table_rows = in_.cos->shape[in_.cos->ndim - 2];
  side.table_row = integers(positions, name);
}

// A table of one row per token.
void Call::bind_computed_angles(Side which, const qkcts_tensor* positions, const char* name) {
  SideProblem& side = problem_.side[which];
  const double factor = terms_.rotation.attention_factor == 0 ? 1 : terms_.rotation.attention_factor;
  const std::vector<double> frequencies = pair_frequencies(terms_.rope, terms_.rotation, problem_.rope.rotated);
  std::vector<double> cosine, sine;
  std::vector<std::byte> rows;
  for (const std::int32_t position : host_integers(positions, name)) {
    const auto row = static_cast<std::int32_t>(rows.size() / sizeof(std::int32_t));
    rows.resize(rows.size() + sizeof row);
    std::memcpy(rows.data() + rows.size() - sizeof row, &row, sizeof row);
    for (const double frequency : frequencies) {
      cosine.push_back(factor * std::cos(position * frequency));
      sine.push_back(factor * std::sin(position * frequency));
    }
  }
  side.table_rows = static_cast<std::int64_t>(rows.size() / sizeof(std::int32_t));
  side.cosine = upload_reals(cosine);
  side.sine = upload_reals(sine);
  side.table_row = static_cast<const std::int32_t*>(arena_.take(rows));
}

void Call::bind_rotation() {
  if (terms_.rope.order == QKCTS_ROPE_NONE) return;
  for (const Side which : {query_side, key_side}) {
    SideProblem& side = problem_.side[which];
    const qkcts_tensor* positions = which == query_side ? in_.q_position_ids : in_.k_position_ids;
    const char* name = which == query_side ? "q_position_ids" : "k_position_ids";
    if (terms_.rotation.angles == QKCTS_ANGLES_COMPUTED) {
      bind_computed_angles(which, positions, name);
    } else {
      bind_table(which, positions, name);
    }
    const bool moves = terms_.rope.pairing == QKCTS_INTERLEAVED && terms_.rotation.layout == QKCTS_LAYOUT_DEINTERLEAVED;
    if (moves) side.turned = room(problem_.shape.batch * side.heads * side.length * side.width, real_bytes());
  }
}

void Call::bind_scores() {
  const qkcts_logits& logits = terms_.logits;
  std::vector<double> learned;
  if (terms_.score.scale_form == QKCTS_SCALE_LEARNED_SCALAR) learned = host_numbers(in_.format, in_.scale, "scale");
  std::vector<std::int32_t> positions;
  if (logits.query_temperature != QKCTS_QUERY_TEMPERATURE_NONE)
    positions = host_integers(in_.q_position_ids, "q_position_ids");
  problem_.tau = upload_reals(row_scales(terms_, problem_.shape, learned, positions));
  problem_.softcap = terms_.score.softcap;
  problem_.bias_order = terms_.score.bias_order;
  problem_.alibi = logits.alibi;
  if (problem_.alibi != QKCTS_ALIBI_NONE) problem_.slopes = reals(in_.alibi_slopes, "alibi_slopes");
  if (terms_.softmax.sink != QKCTS_SINK_NONE) problem_.sinks = upload_reals(host_numbers(in_.format, in_.sink, "sink"));
}

void Call::bind_mask() {
  const std::int64_t scores = problem_.shape.q_len * problem_.shape.k_len;
  const auto strides = [&](const qkcts_tensor& tensor, std::int64_t& batch_stride, std::int64_t& head_stride) {
    batch_stride = tensor.shape[0] == 1 ? 0 : tensor.shape[1] * scores;
    head_stride = tensor.shape[1] == 1 ? 0 : scores;
  };
  if (problem_.bias_order != QKCTS_BIAS_NONE) {
    problem_.bias = input(in_.bias, "bias");
    strides(*in_.bias, problem_.bias_batch_stride, problem_.bias_head_stride);
  }
  if (problem_.mask.boolean != 0) {
    problem_.boolean = static_cast<const std::uint8_t*>(arena_.take(packed(in_.mask, bool_type, "mask")));
    strides(*in_.mask, problem_.boolean_batch_stride, problem_.boolean_head_stride);
  }
  if (problem_.mask.kv_lengths != 0 || problem_.mask.alignment == QKCTS_BOTTOM_RIGHT_VALID)
    problem_.kv_len = integers(in_.kv_len, "kv_len");
  if (problem_.regions.prefix != 0) problem_.prefix_len = integers(in_.prefix_len, "prefix_len");
  if (problem_.regions.documents == 0) return;
  problem_.q_documents = integers(in_.q_document_ids, "q_document_ids");
  problem_.k_documents = integers(in_.k_document_ids, "k_document_ids");
}

// Is the vector exact in the storage format: never touched, or rounded to it last, in every lane?
bool Call::exact(Side which) const {
  const SideProblem& side = problem_.side[which];
  const std::uint32_t storage = problem_.storage;
  const bool ranges = side.range.clip_before != 0 || side.range.clip_after != 0 ||
                      (side.range.multiplier != 0 && side.range.multiplier != 1);
  const bool changed = side.norm.applied != 0 || ranges || side.projection.x != nullptr;
  if (side.rope_order == QKCTS_ROPE_NONE) return !changed || side.points.norm == storage;
  if (side.rope_order == QKCTS_ROPE_THEN_NORM) return side.points.norm == storage;
  const bool norm_is_exact = !changed || side.points.norm == storage;  // what lanes beside the rotated span keep
  return side.points.rope == storage && (norm_is_exact || problem_.rope.rotated == problem_.shape.head_dim);
}

// On the matrix unit: 16-bit storage, values as they are stored, nothing that has to be rounded between the products or
// kept out of a product with weight 0.
void Call::choose_path() {
  const Settings& settings = arena_.device().settings();
  const qkcts_rounding& points = problem_.rounding;
  const bool narrow = problem_.storage == QKCTS_BFLOAT16 || problem_.storage == QKCTS_BINARY16;
  const bool plain_product = points.scaled_q == 0 && points.probs == 0;
  const bool finite = problem_.softmax.hidden_values == QKCTS_HIDDEN_FINITE;
  const bool possible = narrow && plain_product && finite && exact(value_side);
  for (SideProblem& side : problem_.side) side.padded = (side.width + unit_depth - 1) / unit_depth * unit_depth;
  const int parts = exact(query_side) && exact(key_side) ? 1 : split_parts;
  problem_.side[query_side].parts = problem_.side[key_side].parts = parts;
  problem_.side[value_side].parts = 1;
  on_unit_ = possible && settings.path != Path::plain && fits_unit(problem_, arena_.device().shared_memory());
  if (!on_unit_) return;
  for (SideProblem& side : problem_.side) {
    const std::int64_t rows = problem_.shape.batch * side.heads * side.length;
    side.operands = static_cast<std::uint16_t*>(room(side.parts * rows * side.padded, sizeof(std::uint16_t)));
    if (side.parts > 1) side.irregular = static_cast<std::uint8_t*>(room(rows, 1));
  }
}

// Few queries and many keys: there are too few tiles to keep a GPU busy, so the keys of a row are shared out. Lengths
// alone decide, so that a row does not depend on what stands beside it.
void Call::choose_split() {
  constexpr std::int64_t few_queries = 8, keys_of_part = 512, most_parts = 1024;
  const std::int64_t keys = problem_.shape.k_len, asked = arena_.device().settings().split_keys;
  std::int64_t part = keys;
  if (asked > 0) part = asked;
  if (asked < 0 && problem_.shape.q_len <= few_queries) part = keys_of_part;
  part = std::max(part, (keys + most_parts - 1) / most_parts);
  problem_.keys_of_split = std::max<std::int64_t>((part + 31) / 32 * 32, 32);
  problem_.splits = std::max<std::int64_t>((keys + problem_.keys_of_split - 1) / problem_.keys_of_split, 1);
}

}  // namespace qkcts::cuda
