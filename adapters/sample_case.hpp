// SPDX-License-Identifier: Apache-2.0
// Small random cases for the tests of this folder: any contract, any strides, values that every format holds exactly.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <qkcts/adapter.h>

#include "adapters/sample_contract.hpp"
#include "adapters/sample_tensor.hpp"

namespace qkcts {

// Order of qkcts_inputs.
enum SampleInput {
  sample_q,
  sample_k,
  sample_v,
  sample_q_gain,
  sample_k_gain,
  sample_q_bias,
  sample_k_bias,
  sample_cos,
  sample_sin,
  sample_q_positions,
  sample_k_positions,
  sample_scale,
  sample_mask,
  sample_bias,
  sample_kv_len,
  sample_alibi_slopes,
  sample_sink,
  sample_q_documents,
  sample_k_documents,
  sample_prefix_len,
  sample_v_gain,
  sample_v_bias,
  sample_q_x,
  sample_k_x,
  sample_q_weight,
  sample_k_weight,
  sample_q_weight_bias,
  sample_k_weight_bias,
  sample_q_x_gain,
  sample_q_x_bias,
  sample_k_x_gain,
  sample_k_x_bias,
  sample_input_count
};

struct SampleCase {
  qkcts_contract terms{};
  qkcts_shape shape{};
  std::uint32_t format = QKCTS_BINARY32;
  std::array<SampleTensor, sample_input_count> inputs;

  std::string text() const;  // the contract in one line, for failure messages
};

using StageValues = std::array<std::vector<double>, QKCTS_STAGE_COUNT>;

struct SampleRun {
  qkcts_status status = QKCTS_INTERNAL;
  StageValues stages;  // of the stages that were asked for
  std::string implementation, message;
};

SampleRun run_sample(const qkcts_adapter_table& table, SampleCase& sample, std::uint32_t stages, SampleLayout layout,
                     void* state = nullptr);

// Inputs for the contract and shape of `sample`, of about unit size; fills sample.inputs.
void draw_inputs(SampleCase& sample, std::mt19937_64& source, SampleLayout layout);

// `edit` may take back what a kernel does not implement, before the inputs are drawn.
using ContractEdit = void (*)(qkcts_contract&);
SampleCase random_sample(std::mt19937_64& source, std::uint32_t format, ContractVersion version,
                         ContractEdit edit = nullptr);

}  // namespace qkcts
