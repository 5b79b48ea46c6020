// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "adapters/plain_attention.hpp"
#include "adapters/sample_case.hpp"

namespace qkcts {

namespace {

// Eight significant bits: held exactly by every storage format.
double draw(std::mt19937_64& source) {
  // One draw after the other: the order in which arguments are evaluated differs between compilers.
  const double magnitude = static_cast<double>(pick(source, 128, 255)) * 0x1p-7;
  const auto exponent = static_cast<int>(pick(source, -4, 0));
  return std::ldexp(source() % 2 == 0 ? magnitude : -magnitude, exponent);
}

std::vector<std::int64_t> parameter_shape(std::uint32_t axes, std::int64_t heads, std::int64_t dim) {
  switch (axes) {
    case QKCTS_AXES_SCALAR:
      return {1};
    case QKCTS_AXES_HEAD_DIM:
      return {dim};
    case QKCTS_AXES_HEAD:
      return {heads};
    case QKCTS_AXES_HEAD_HEAD_DIM:
      return {heads, dim};
    default:
      return {heads * dim};
  }
}

// NaN and infinities where no query looks.
void spoil_hidden_keys(SampleCase& sample, std::mt19937_64& source) {
  const double nothing[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity()};
  const qkcts_shape& shape = sample.shape;
  for (const SampleInput input : {sample_k, sample_v}) {
    SampleTensor& tensor = sample.inputs[input];
    if (!tensor.present()) continue;  // k under a projection
    const std::int64_t width = tensor.shape()[3];
    for (std::int64_t b = 0; b < shape.batch; ++b)
      for (std::int64_t k = 0; k < shape.k_len; ++k) {
        if (plain_seen(sample, b, k)) continue;
        for (std::int64_t h = 0; h < shape.kv_heads; ++h)
          for (std::int64_t d = 0; d < width; ++d)
            tensor.set(static_cast<std::size_t>(((b * shape.kv_heads + h) * shape.k_len + k) * width + d),
                       nothing[source() % 3]);
      }
  }
}

}  // namespace

void draw_inputs(SampleCase& sample, std::mt19937_64& source, SampleLayout layout) {
  const qkcts_contract& terms = sample.terms;
  const qkcts_shape& shape = sample.shape;
  const std::uint8_t code = sample.format == QKCTS_BFLOAT16 ? QKCTS_DL_BFLOAT : QKCTS_DL_FLOAT;
  const std::uint8_t bits = sample.format == QKCTS_BINARY64 ? 64 : sample.format == QKCTS_BINARY32 ? 32 : 16;
  const std::uint8_t table_bits = sample.format == QKCTS_BINARY64 ? 64 : 32;
  const auto real = [&](SampleInput input, std::vector<std::int64_t> extents) {
    SampleTensor& tensor = sample.inputs[input] = SampleTensor(code, bits, std::move(extents), layout);
    for (std::size_t i = 0; i < tensor.count(); ++i) tensor.set(i, draw(source));
  };
  const auto wide = [&](SampleInput input, std::vector<std::int64_t> extents) {
    SampleTensor& tensor = sample.inputs[input] = SampleTensor(QKCTS_DL_FLOAT, table_bits, std::move(extents), layout);
    for (std::size_t i = 0; i < tensor.count(); ++i) tensor.set(i, draw(source) / 16);
  };
  const auto integer = [&](SampleInput input, std::vector<std::int64_t> extents, std::int64_t last) {
    SampleTensor& tensor = sample.inputs[input] = SampleTensor(QKCTS_DL_INT, 32, std::move(extents), layout);
    for (std::size_t i = 0; i < tensor.count(); ++i) tensor.set(i, static_cast<double>(pick(source, 0, last)));
  };
  const auto broadcast = [&](std::int64_t extent) { return source() % 2 == 0 ? 1 : extent; };

  sample.inputs = {};
  real(sample_v, {shape.batch, shape.kv_heads, shape.k_len, shape.v_head_dim});
  const auto norm = [&](const qkcts_norm& n, SampleInput gain, SampleInput bias, std::int64_t heads, std::int64_t dim) {
    if (n.applied == 0) return;
    if (n.gain != QKCTS_GAIN_NONE) real(gain, parameter_shape(n.gain_axes, heads, dim));
    if (n.bias_axes != QKCTS_AXES_NONE) real(bias, parameter_shape(n.bias_axes, heads, dim));
  };
  norm(terms.q_norm, sample_q_gain, sample_q_bias, shape.q_heads, shape.head_dim);
  norm(terms.k_norm, sample_k_gain, sample_k_bias, shape.kv_heads, shape.head_dim);
  norm(terms.v_norm, sample_v_gain, sample_v_bias, shape.kv_heads, shape.v_head_dim);
  if (terms.projection.form != QKCTS_PROJECTION_NONE) {
    // E is mostly none of the other lengths, sometimes that of the result.
    const auto project = [&](SampleInput x, SampleInput weight, SampleInput bias, std::int64_t length,
                             std::int64_t columns) {
      const std::int64_t e = one_of<std::int64_t>(source, {1, 6, 11, std::min<std::int64_t>(columns, 80)});
      real(x, {shape.batch, length, e});
      real(weight, {e, columns});
      if (terms.projection.bias != 0) real(bias, {columns});
      return e;
    };
    const std::int64_t q_columns = shape.q_heads * shape.head_dim, k_columns = shape.kv_heads * shape.head_dim;
    const std::int64_t eq = project(sample_q_x, sample_q_weight, sample_q_weight_bias, shape.q_len, q_columns);
    const std::int64_t ek = project(sample_k_x, sample_k_weight, sample_k_weight_bias, shape.k_len, k_columns);
    norm(terms.projection.q_input, sample_q_x_gain, sample_q_x_bias, 1, eq);
    norm(terms.projection.k_input, sample_k_x_gain, sample_k_x_bias, 1, ek);
  } else {
    real(sample_q, {shape.batch, shape.q_heads, shape.q_len, shape.head_dim});
    real(sample_k, {shape.batch, shape.kv_heads, shape.k_len, shape.head_dim});
  }
  const bool rotates = terms.rope.order != QKCTS_ROPE_NONE;
  const std::int64_t rows = std::max(shape.q_len, shape.k_len) + 3;
  if (rotates || terms.logits.query_temperature != QKCTS_QUERY_TEMPERATURE_NONE)
    integer(sample_q_positions, {shape.batch, shape.q_len}, rows - 1);
  if (rotates) integer(sample_k_positions, {shape.batch, shape.k_len}, rows - 1);
  if (rotates && terms.rotation.angles == QKCTS_ANGLES_TABLE) {
    const std::int64_t pairs = (terms.rope.rotated == 0 ? shape.head_dim : terms.rope.rotated) / 2;
    for (const SampleInput which : {sample_cos, sample_sin}) {
      const bool per_head = terms.rotation.tables == QKCTS_TABLES_PER_HEAD;
      const std::int64_t heads = per_head ? shape.q_heads : 1;
      std::vector<std::int64_t> extents{rows, pairs};
      if (per_head) extents.insert(extents.begin(), heads);
      SampleTensor& table = sample.inputs[which] = SampleTensor(QKCTS_DL_FLOAT, table_bits, extents, layout);
      for (std::int64_t row = 0; row < heads * rows; ++row) {
        for (std::int64_t i = 0; i < pairs; ++i) {
          const std::int64_t head = row / rows;
          const double slower = static_cast<double>(head * pairs + i) / static_cast<double>(heads * pairs);
          const double angle = static_cast<double>(row % rows) * std::pow(100.0, -slower);
          const double entry = which == sample_cos ? std::cos(angle) : std::sin(angle);
          table.set(static_cast<std::size_t>(row * pairs + i), static_cast<float>(entry));
        }
      }
    }
  }
  if (terms.score.scale_form == QKCTS_SCALE_LEARNED_SCALAR) {
    const bool per_head = terms.logits.scale_axes == QKCTS_SCALE_PER_HEAD;
    real(sample_scale, {per_head ? shape.q_heads : 1});
    SampleTensor& scale = sample.inputs[sample_scale];
    for (std::size_t i = 0; i < scale.count(); ++i) scale.set(i, 1.25 - 0.25 * static_cast<double>(i));
  }
  if (terms.mask.boolean != 0) {
    SampleTensor& mask = sample.inputs[sample_mask] = SampleTensor(
        QKCTS_DL_BOOL, 8, {broadcast(shape.batch), broadcast(shape.q_heads), shape.q_len, shape.k_len}, layout);
    for (std::size_t i = 0; i < mask.count(); ++i) mask.set(i, source() % 4 != 0 ? 1 : 0);
    // Some rows without a single visible key.
    for (std::size_t i = 0; i < mask.count(); ++i)
      if (i / static_cast<std::size_t>(shape.k_len) % 5 == 2) mask.set(i, 0);
  }
  if (terms.score.bias_order != QKCTS_BIAS_NONE) {
    real(sample_bias, {broadcast(shape.batch), broadcast(shape.q_heads), shape.q_len, shape.k_len});
    SampleTensor& bias = sample.inputs[sample_bias];
    for (std::size_t i = 0; i < bias.count(); ++i)
      if (source() % 5 == 0) bias.set(i, -std::numeric_limits<double>::infinity());
  }
  if (terms.mask.kv_lengths != 0 || terms.mask.alignment == QKCTS_BOTTOM_RIGHT_VALID)
    integer(sample_kv_len, {shape.batch}, shape.k_len);
  if (terms.logits.alibi != QKCTS_ALIBI_NONE) wide(sample_alibi_slopes, {shape.q_heads});
  if (terms.softmax.sink != QKCTS_SINK_NONE) real(sample_sink, {shape.q_heads});
  if (terms.regions.documents != 0) {
    integer(sample_q_documents, {shape.batch, shape.q_len}, 2);
    integer(sample_k_documents, {shape.batch, shape.k_len}, 2);
  }
  if (terms.regions.prefix != 0) integer(sample_prefix_len, {shape.batch}, shape.k_len);
  if (terms.softmax.hidden_values == QKCTS_HIDDEN_EXCLUDED) spoil_hidden_keys(sample, source);
}

}  // namespace qkcts
