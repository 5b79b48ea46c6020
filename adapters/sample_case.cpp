// SPDX-License-Identifier: Apache-2.0
#include "adapters/sample_case.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "adapters/plain_attention.hpp"

namespace qkcts {

namespace {

// Eight significant bits: held exactly by every storage format.
double draw(std::mt19937_64& source) {
  const double magnitude = static_cast<double>(pick(source, 128, 255)) * 0x1p-7;
  return std::ldexp(source() % 2 == 0 ? magnitude : -magnitude, static_cast<int>(pick(source, -4, 0)));
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

std::string SampleCase::text() const {
  std::ostringstream out;
  out << contract_text(terms) << " shape{" << shape.batch << ' ' << shape.q_heads << ' ' << shape.kv_heads << ' '
      << shape.q_len << ' ' << shape.k_len << ' ' << shape.head_dim << ' ' << shape.v_head_dim << "} format " << format;
  return out.str();
}

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
  real(sample_q, {shape.batch, shape.q_heads, shape.q_len, shape.head_dim});
  real(sample_k, {shape.batch, shape.kv_heads, shape.k_len, shape.head_dim});
  real(sample_v, {shape.batch, shape.kv_heads, shape.k_len, shape.v_head_dim});
  if (terms.q_norm.applied != 0 && terms.q_norm.gain != QKCTS_GAIN_NONE)
    real(sample_q_gain, parameter_shape(terms.q_norm.gain_axes, shape.q_heads, shape.head_dim));
  if (terms.k_norm.applied != 0 && terms.k_norm.gain != QKCTS_GAIN_NONE)
    real(sample_k_gain, parameter_shape(terms.k_norm.gain_axes, shape.kv_heads, shape.head_dim));
  if (terms.q_norm.applied != 0 && terms.q_norm.bias_axes != QKCTS_AXES_NONE)
    real(sample_q_bias, parameter_shape(terms.q_norm.bias_axes, shape.q_heads, shape.head_dim));
  if (terms.k_norm.applied != 0 && terms.k_norm.bias_axes != QKCTS_AXES_NONE)
    real(sample_k_bias, parameter_shape(terms.k_norm.bias_axes, shape.kv_heads, shape.head_dim));
  const bool rotates = terms.rope.order != QKCTS_ROPE_NONE;
  const std::int64_t rows = std::max(shape.q_len, shape.k_len) + 3;
  if (rotates || terms.logits.query_temperature != QKCTS_QUERY_TEMPERATURE_NONE)
    integer(sample_q_positions, {shape.batch, shape.q_len}, rows - 1);
  if (rotates) integer(sample_k_positions, {shape.batch, shape.k_len}, rows - 1);
  if (rotates && terms.rotation.angles == QKCTS_ANGLES_TABLE) {
    const std::int64_t pairs = (terms.rope.rotated == 0 ? shape.head_dim : terms.rope.rotated) / 2;
    for (const SampleInput which : {sample_cos, sample_sin}) {
      SampleTensor& table = sample.inputs[which] = SampleTensor(QKCTS_DL_FLOAT, table_bits, {rows, pairs}, layout);
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t i = 0; i < pairs; ++i) {
          const double angle =
              static_cast<double>(row) * std::pow(100.0, -static_cast<double>(i) / static_cast<double>(pairs));
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

SampleCase random_sample(std::mt19937_64& source, std::uint32_t format, ContractVersion version, ContractEdit edit) {
  SampleCase sample;
  sample.format = format;
  qkcts_shape& shape = sample.shape;
  shape.kv_heads = pick(source, 1, 2);
  shape.q_heads = shape.kv_heads * pick(source, 1, 3);
  shape.batch = pick(source, 1, 2);
  const auto length = [&] {
    return one_of<std::int64_t>(source, {1, 2, 5, 7, 16, 17, 47, 48, 49, 63, 64, 65, 70, 127, 129});
  };
  shape.q_len = std::min<std::int64_t>(length(), 70);
  shape.k_len = length();
  shape.head_dim = one_of<std::int64_t>(source, {1, 2, 3, 7, 8, 9, 16, 20, 31, 32, 64, 80});
  shape.v_head_dim = one_of<std::int64_t>(source, {1, 3, 8, 15, 16, 17, 24, 64, 80});
  sample.terms = random_contract(source, shape, version);
  if (edit != nullptr) edit(sample.terms);
  draw_inputs(sample, source, source() % 2 == 0 ? SampleLayout::contiguous : SampleLayout::scattered);
  return sample;
}

SampleRun run_sample(const qkcts_adapter_table& table, SampleCase& sample, std::uint32_t stages, SampleLayout layout,
                     void* state) {
  const qkcts_shape& s = sample.shape;
  const std::vector<std::int64_t> q{s.batch, s.q_heads, s.q_len, s.head_dim},
      k{s.batch, s.kv_heads, s.k_len, s.head_dim}, keys{s.batch, s.q_heads, s.q_len, s.k_len},
      lse{s.batch, s.q_heads, s.q_len}, out{s.batch, s.q_heads, s.q_len, s.v_head_dim};
  const std::array<std::vector<std::int64_t>, QKCTS_STAGE_COUNT> extents{q, k, q, k, keys, keys, keys, keys, lse, out};
  const std::uint8_t code = sample.format == QKCTS_BFLOAT16 ? QKCTS_DL_BFLOAT : QKCTS_DL_FLOAT;
  const std::uint8_t bits = sample.format == QKCTS_BINARY64 ? 64 : sample.format == QKCTS_BINARY32 ? 32 : 16;
  const std::uint8_t wide = sample.format == QKCTS_BINARY64 ? 64 : 32;

  qkcts_inputs inputs{};
  inputs.struct_size = sizeof inputs;
  inputs.format = sample.format;
  const qkcts_tensor** const slots[] = {&inputs.q,
                                        &inputs.k,
                                        &inputs.v,
                                        &inputs.q_gain,
                                        &inputs.k_gain,
                                        &inputs.q_bias,
                                        &inputs.k_bias,
                                        &inputs.cos,
                                        &inputs.sin,
                                        &inputs.q_position_ids,
                                        &inputs.k_position_ids,
                                        &inputs.scale,
                                        &inputs.mask,
                                        &inputs.bias,
                                        &inputs.kv_len,
                                        &inputs.alibi_slopes,
                                        &inputs.sink,
                                        &inputs.q_document_ids,
                                        &inputs.k_document_ids,
                                        &inputs.prefix_len};
  for (std::size_t i = 0; i < sample_input_count; ++i) *slots[i] = sample.inputs[i].abi();

  std::array<SampleTensor, QKCTS_STAGE_COUNT> written;
  qkcts_outputs outputs{};
  outputs.struct_size = sizeof outputs;
  outputs.count = QKCTS_STAGE_COUNT;
  for (std::size_t i = 0; i < QKCTS_STAGE_COUNT; ++i) {
    if ((stages >> i & 1u) == 0) continue;
    const bool accumulator = i >= QKCTS_STAGE_SCORES && i <= QKCTS_STAGE_LSE && i != QKCTS_STAGE_PROBS;
    written[i] =
        SampleTensor(accumulator ? std::uint8_t{QKCTS_DL_FLOAT} : code, accumulator ? wide : bits, extents[i], layout);
    outputs.stage[i] = written[i].abi();
  }

  char implementation_text[128] = "", message_text[256] = "";
  qkcts_text implementation{sizeof(qkcts_text), sizeof implementation_text, 0, 0, implementation_text};
  qkcts_text message{sizeof(qkcts_text), sizeof message_text, 0, 0, message_text};
  const qkcts_run_args args{sizeof(qkcts_run_args), 0,       state,    &sample.terms,   "{}",
                            &sample.shape,          &inputs, &outputs, &implementation, &message};
  SampleRun result;
  result.status = table.run(&args);
  result.implementation = implementation_text;
  result.message = message_text;
  for (std::size_t i = 0; i < QKCTS_STAGE_COUNT; ++i) result.stages[i] = written[i].values();
  return result;
}

}  // namespace qkcts
