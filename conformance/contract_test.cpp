// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace qkcts {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(ContractFault, AcceptsEveryShippedContractAndTheZeroContract) {
  EXPECT_EQ(contract_fault(qkcts_contract{}), "");
  for (const std::vector<std::string>& names : {shipped_contracts(), model_contracts()})
    for (const std::string& name : names) EXPECT_EQ(contract_fault(shipped_contract(name).terms), "") << name;
}

// The C struct may come from anywhere: every field out of its range is named.
TEST(ContractFault, NamesTheField) {
  struct Row {
    const char* expected;
    void (*spoil)(qkcts_contract&);
  };
  const Row rows[] = {
      {"q_norm.applied", [](qkcts_contract& t) { t.q_norm.applied = 2; }},
      {"q_norm.center", [](qkcts_contract& t) { t.q_norm.center = 2; }},
      {"k_norm.statistic", [](qkcts_contract& t) { t.k_norm.statistic = 2; }},
      {"q_norm.root", [](qkcts_contract& t) { t.q_norm.root = 4; }},
      {"q_norm.axis", [](qkcts_contract& t) { t.q_norm.axis = 2; }},
      {"q_norm.variance", [](qkcts_contract& t) { t.q_norm.variance = 2; }},
      {"one_pass_clipped", [](qkcts_contract& t) { t.q_norm.variance = QKCTS_VARIANCE_ONE_PASS_CLIPPED; }},
      {"q_norm.gain ", [](qkcts_contract& t) { t.q_norm.gain = 3; }},
      {"q_norm.gain_axes", [](qkcts_contract& t) { t.q_norm.gain_axes = 6; }},
      {"q_norm.gain_axes", [](qkcts_contract& t) { t.q_norm.gain_axes = QKCTS_AXES_NONE; }},
      {"q_norm.bias_axes", [](qkcts_contract& t) { t.q_norm.bias_axes = 99; }},
      {"q_norm.eps", [](qkcts_contract& t) { t.q_norm.eps = -1; }},
      {"q_norm.eps", [](qkcts_contract& t) { t.q_norm.eps = nan; }},
      {"rope.order", [](qkcts_contract& t) { t.rope.order = 3; }},
      {"rope.pairing", [](qkcts_contract& t) { t.rope.pairing = 2; }},
      {"rope.span", [](qkcts_contract& t) { t.rope.span = 2; }},
      {"rope.rotated", [](qkcts_contract& t) { t.rope.rotated = 3; }},
      {"rope.theta", [](qkcts_contract& t) { t.rope.theta = 1; }},
      {"rope.theta", [](qkcts_contract& t) { t.rope.theta = nan; }},
      {"rope_then_norm needs a norm",
       [](qkcts_contract& t) {
         t.rope.order = QKCTS_ROPE_THEN_NORM;
         t.q_norm.applied = t.k_norm.applied = 0;
       }},
      {"score.scale_form", [](qkcts_contract& t) { t.score.scale_form = 4; }},
      {"score.scale_value",
       [](qkcts_contract& t) {
         t.score.scale_form = QKCTS_SCALE_CONSTANT;
         t.score.scale_value = 0;
       }},
      {"score.temperature", [](qkcts_contract& t) { t.score.temperature = -1; }},
      {"score.softcap", [](qkcts_contract& t) { t.score.softcap = nan; }},
      {"score.bias_order", [](qkcts_contract& t) { t.score.bias_order = 3; }},
      {"mask.alignment", [](qkcts_contract& t) { t.mask.alignment = 4; }},
      {"mask.alignment bottom_right_valid needs",
       [](qkcts_contract& t) { t.mask.alignment = QKCTS_BOTTOM_RIGHT_VALID; }},
      {"mask.causal", [](qkcts_contract& t) { t.mask.causal = 7; }},
      {"mask.empty_row", [](qkcts_contract& t) { t.mask.empty_row = 3; }},
      {"mask.offset",
       [](qkcts_contract& t) {
         t.mask.alignment = QKCTS_OFFSET;
         t.mask.offset = std::numeric_limits<std::int64_t>::min();
       }},
      {"mask.window",
       [](qkcts_contract& t) {
         t.mask.has_window = 1;
         t.mask.window_left = std::numeric_limits<std::int64_t>::max();
       }},
      {"q_norm.clip_before", [](qkcts_contract& t) { t.q_range.clip_before = -1; }},
      {"k_norm.clip_after", [](qkcts_contract& t) { t.k_range.clip_after = nan; }},
      {"k_norm.multiplier", [](qkcts_contract& t) { t.k_range.multiplier = -2; }},
      {"rope.sense", [](qkcts_contract& t) { t.rotation.sense = 2; }},
      {"rope.layout 2", [](qkcts_contract& t) { t.rotation.layout = 2; }},
      {"rope.layout deinterleaved needs", [](qkcts_contract& t) { t.rotation.layout = QKCTS_LAYOUT_DEINTERLEAVED; }},
      {"rope.angles", [](qkcts_contract& t) { t.rotation.angles = 2; }},
      {"rope.scaling", [](qkcts_contract& t) { t.rotation.scaling = 6; }},
      {"rope.factor", [](qkcts_contract& t) { t.rotation.scaling = QKCTS_SCALING_LINEAR; }},
      {"rope.factor is 2, must be at most 1",
       [](qkcts_contract& t) {
         t.rotation.scaling = QKCTS_SCALING_PROPORTIONAL;
         t.rotation.factor = 2;
       }},
      {"rope.scaling ntk needs more than one pair",
       [](qkcts_contract& t) {
         t.rotation.scaling = QKCTS_SCALING_NTK;
         t.rotation.factor = 2;
         t.rope.rotated = 2;
       }},
      {"rope.original_length",
       [](qkcts_contract& t) {
         t.rotation.scaling = QKCTS_SCALING_YARN;
         t.rotation.factor = 2;
       }},
      {"must satisfy 0 < low < high",
       [](qkcts_contract& t) { t.rotation = {0, 0, 0, QKCTS_SCALING_LLAMA3, 2, 64, 4, 4, 0, 0, 0}; }},
      {"rope.attention_factor", [](qkcts_contract& t) { t.rotation.attention_factor = -1; }},
      {"score.scale_axes",
       [](qkcts_contract& t) {
         t.score.scale_form = QKCTS_SCALE_LEARNED_SCALAR;
         t.logits.scale_axes = 2;
       }},
      {"score.scale_exp_cap",
       [](qkcts_contract& t) {
         t.score.scale_form = QKCTS_SCALE_LEARNED_SCALAR;
         t.logits.scale_exp_cap = -1;
       }},
      {"score.alibi", [](qkcts_contract& t) { t.logits.alibi = 4; }},
      {"score.query_temperature", [](qkcts_contract& t) { t.logits.query_temperature = 3; }},
      {"score.query_period is 0", [](qkcts_contract& t) { t.logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG; }},
      {"score.query_shift is 0.5",
       [](qkcts_contract& t) {
         t.logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG;
         t.logits.query_period = 4;
         t.logits.query_shift = 0.5;
       }},
      {"softmax.sink", [](qkcts_contract& t) { t.softmax.sink = 3; }},
      {"softmax.base", [](qkcts_contract& t) { t.softmax.base = 2; }},
      {"softmax.lse_base", [](qkcts_contract& t) { t.softmax.lse_base = 2; }},
      {"post_scale is defined in base e only",
       [](qkcts_contract& t) {
         t.softmax.sink = QKCTS_SINK_POST_SCALE;
         t.softmax.base = QKCTS_BASE_TWO;
       }},
      {"softmax.hidden_values 3", [](qkcts_contract& t) { t.softmax.hidden_values = 3; }},
      {"contradicts mask.empty_row uniform",
       [](qkcts_contract& t) {
         t.softmax.hidden_values = QKCTS_HIDDEN_EXCLUDED;
         t.mask.empty_row = QKCTS_EMPTY_UNIFORM;
       }},
      {"mask.alignment bottom_right_valid needs",
       [](qkcts_contract& t) {
         t.mask = {};
         t.mask.alignment = QKCTS_BOTTOM_RIGHT_VALID;
         t.logits.alibi = QKCTS_ALIBI_LAST_KEY;
       }},
      {"score.query_period is 1.8014398509481984e+16, must be an integer in 1..2^53",
       [](qkcts_contract& t) {
         t.logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG;
         t.logits.query_period = 0x1p54;
       }},
      {"mask.chunk", [](qkcts_contract& t) { t.regions.chunk = -1; }},
      {"mask.documents", [](qkcts_contract& t) { t.regions.documents = 2; }},
      {"mask.prefix needs mask.causal",
       [](qkcts_contract& t) {
         t.mask.causal = 0;
         t.regions.prefix = 1;
       }},
      {"heads.mapping", [](qkcts_contract& t) { t.heads.mapping = 2; }},
      {"v_norm.root", [](qkcts_contract& t) { t.v_norm = {1, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1e-6}; }},
      {"v_norm.multiplier", [](qkcts_contract& t) { t.v_range.multiplier = -1; }},
      {"rope.tables", [](qkcts_contract& t) { t.rotation.tables = 2; }},
      {"projection.form", [](qkcts_contract& t) { t.projection.form = 2; }},
      {"projection.bias",
       [](qkcts_contract& t) {
         t.projection = {QKCTS_PROJECTION_LINEAR, 2, {}, {}};
       }},
      {"k_input_norm.eps",
       [](qkcts_contract& t) {
         t.projection.form = QKCTS_PROJECTION_LINEAR;
         t.projection.k_input.applied = 1;
         t.projection.k_input.eps = -1;
       }},
      {"q_input_norm.gain_axes and bias_axes must be full_width or scalar",
       [](qkcts_contract& t) {
         t.projection.form = QKCTS_PROJECTION_LINEAR;
         t.projection.q_input.applied = 1;
         t.projection.q_input.bias_axes = QKCTS_AXES_HEAD_DIM;
       }},
      {"rounding of k: format 7 is unknown", [](qkcts_contract& t) { t.rounding.k.norm = 7; }},
      {"rounding.q_norm is missing", [](qkcts_contract& t) { t.rounding.q.unit = QKCTS_BFLOAT16; }},
      {"rounding.k_rope is missing", [](qkcts_contract& t) { t.rounding.k.rope_product = QKCTS_BFLOAT16; }},
      {"rounding: format 9 is unknown", [](qkcts_contract& t) { t.rounding.scores = 9; }},
      {"rounding of q_input_norm: format 8", [](qkcts_contract& t) { t.rounding.q_input.norm = 8; }},
      {"rounding.k_input_norm is missing", [](qkcts_contract& t) { t.rounding.k_input.unit = QKCTS_BFLOAT16; }},
      {"rounding.product and rounding.scaled_q exclude each other",
       [](qkcts_contract& t) { t.rounding.product = t.rounding.scaled_q = QKCTS_BFLOAT16; }},
      {"rounding.saturate", [](qkcts_contract& t) { t.rounding.saturate = 2; }},
  };
  for (const Row& row : rows) {
    qkcts_contract terms = shipped_contract("qwen3_rmsnorm").terms;
    row.spoil(terms);
    EXPECT_NE(contract_fault(terms).find(row.expected), std::string::npos)
        << row.expected << ": " << contract_fault(terms);
  }
}

}  // namespace
}  // namespace qkcts
