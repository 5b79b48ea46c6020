// SPDX-License-Identifier: Apache-2.0
#include "adapters/sample_case.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

namespace qkcts {

std::string SampleCase::text() const {
  std::ostringstream out;
  out << contract_text(terms) << " shape{" << shape.batch << ' ' << shape.q_heads << ' ' << shape.kv_heads << ' '
      << shape.q_len << ' ' << shape.k_len << ' ' << shape.head_dim << ' ' << shape.v_head_dim << "} format " << format;
  return out.str();
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
      k{s.batch, s.kv_heads, s.k_len, s.head_dim}, v{s.batch, s.kv_heads, s.k_len, s.v_head_dim},
      keys{s.batch, s.q_heads, s.q_len, s.k_len}, lse{s.batch, s.q_heads, s.q_len},
      out{s.batch, s.q_heads, s.q_len, s.v_head_dim};
  const std::array<std::vector<std::int64_t>, QKCTS_STAGE_COUNT> extents{q,    k,   q,   k, keys, keys, keys,
                                                                         keys, lse, out, q, k,    v};
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
                                        &inputs.prefix_len,
                                        &inputs.v_gain,
                                        &inputs.v_bias,
                                        &inputs.q_x,
                                        &inputs.k_x,
                                        &inputs.q_weight,
                                        &inputs.k_weight,
                                        &inputs.q_weight_bias,
                                        &inputs.k_weight_bias,
                                        &inputs.q_x_gain,
                                        &inputs.q_x_bias,
                                        &inputs.k_x_gain,
                                        &inputs.k_x_bias};
  static_assert(std::size(slots) == sample_input_count);
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
