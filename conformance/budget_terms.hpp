// SPDX-License-Identifier: Apache-2.0
// The sources of error that a budget counts, one enumerator per heading of docs/budgets.md.
#pragma once

#include "conformance/budget.hpp"

namespace qkcts {

// In the order in which they enter the computation, which is the order in which explain switches them on.
enum class BudgetTerm : std::uint32_t {
  input_operands,        // I1
  projection_dot,        // W1
  projection_bias,       // W2
  projection_underflow,  // W3
  norm_statistic,        // N1
  norm_mean,             // N2
  norm_epsilon,          // N3
  norm_root,             // N4
  norm_gain,             // N5
  norm_bias,             // N6
  norm_underflow,        // N7
  norm_factor,           // N8
  clamp_constant,        // N9
  rope_rounding,         // R1
  rope_underflow,        // R2
  angle_frequency,       // R3
  angle_wave,            // R4
  matrix_operands,       // M1
  matrix_alignment,      // M2
  score_dot,             // S1
  score_scale,           // S2
  score_underflow,       // S3
  scale_exponential,     // S4
  query_temperature,     // S5
  cap_quotient,          // C1
  cap_tanh,              // C2
  cap_product,           // C3
  bias_sum,              // C4
  cap_underflow,         // C5
  linear_bias,           // C6
  softmax_exponent,      // P1
  softmax_exponential,   // P2
  softmax_sum,           // P3
  softmax_quotient,      // P4
  probability_storage,   // P5
  softmax_underflow,     // P6
  split_merge,           // P7
  sink_logit,            // P8
  logarithm,             // L1
  logarithm_base,        // L2
  output_sum,            // O1
  output_quotient,       // O2
  output_underflow,      // O3
  fresh_weights,         // O7
  value_norm,            // O5
  sink_factor,           // O4
  rounding_point,        // Q1
  rounding_root,         // Q2
  rounding_weight,       // Q3
  rounding_read,         // Q4
  stage_storage,         // F1
  evidence_resolution,   // F2
  count_
};

}  // namespace qkcts
