// SPDX-License-Identifier: Apache-2.0
// One call as the kernels see it: numbers and pointers to device memory, passed by value. Tensors are dense and
// row-major; `storage` is the format of the case, Real the arithmetic: double for binary64, float for all others.
#pragma once

#include <cstdint>

#include <qkcts/contract.h>

namespace qkcts::cuda {

enum Side { query_side = 0, key_side = 1, value_side = 2 };

// QK-PROJ of q or k; x is null where q or k is an input.
struct ProjectionProblem {
  const void* x;       // storage [B, length, width]
  const void* weight;  // storage [width, heads * D]
  const void* bias;    // storage [heads * D], or null
  const void* norm_gain;
  const void* norm_bias;
  std::int64_t width;
  void* row;  // Real [B, length, width]: x after its norm
  qkcts_norm norm;
  qkcts_input_rounding points;
};

// q, k or v on its way to the scores or the output.
struct SideProblem {
  std::int64_t heads, length, width;
  const void* in;  // storage [B, heads, length, width]
  ProjectionProblem projection;
  void* vectors;  // Real [B, heads, length, width]: the result; null for v where a matrix unit takes it as it is
  const void* gain;
  const void* bias;
  qkcts_norm norm;
  qkcts_norm_range range;
  qkcts_vector_rounding points;
  std::uint32_t rope_order;       // QKCTS_ROPE_NONE for v
  const std::int32_t* table_row;  // [B, length]: where a token's angles stand in cos and sin
  const void* cosine;             // Real [table_rows, R/2], or one such table per head
  const void* sine;
  std::int64_t table_rows;
  void* turned;          // Real, as vectors: where a turn that moves lanes leaves them; else null
  void* projection_out;  // storage, or null: not observed
  void* norm_out;
  void* rope_out;
  // For the matrix unit: the result as a sum of `parts` numbers of 16 bits, [parts, B, heads, length, padded].
  std::uint16_t* operands;
  std::uint8_t* irregular;  // [B, heads, length]: the parts do not add up to the vector; null: they always do
  std::int64_t padded;      // width rounded up to whole steps of the matrix unit
  std::int32_t parts;
};

struct Problem {
  qkcts_shape shape;
  std::uint32_t storage;
  SideProblem side[3];
  qkcts_rope rope;
  qkcts_rotation rotation;
  std::uint32_t bias_order;
  std::uint32_t alibi;
  double softcap;
  qkcts_mask mask;
  qkcts_softmax softmax;
  qkcts_regions regions;
  qkcts_heads heads;
  qkcts_rounding rounding;
  const void* tau;     // Real [B, Hq, Lq]: everything that multiplies <q, k>
  const void* slopes;  // Real [Hq]
  const void* sinks;   // Real [Hq]
  const void* bias;    // storage [B|1, Hq|1, Lq, Lk]
  std::int64_t bias_batch_stride, bias_head_stride;
  const std::uint8_t* boolean;  // [B|1, Hq|1, Lq, Lk]
  std::int64_t boolean_batch_stride, boolean_head_stride;
  const std::int32_t* kv_len;
  const std::int32_t* prefix_len;
  const std::int32_t* q_documents;
  const std::int32_t* k_documents;
  // Stages, or null: not observed.
  void* scores;  // Real
  void* capped;  // Real
  void* masked;  // Real; also kept for the weights
  void* probs;   // storage
  void* lse;     // Real
  void* output;  // storage
  // What the parts of a row know, [splits, B, Hq, Lq] and for the sums [..., Dv]; Real, but for `seen`.
  void* part_largest;
  void* part_sum;
  std::int32_t* part_seen;
  void* part_output;
  std::int64_t splits, keys_of_split;
  // Of whole rows [B, Hq, Lq], where weights are wanted.
  void* row_largest;
  void* row_sum;
  std::int32_t* row_seen;
  void* weights;  // Real [B, Hq, Lq, Lk]: p behind its rounding point, of which then the output is made; else null
};

inline constexpr std::int64_t rows_of(const Problem& problem) {
  return problem.shape.batch * problem.shape.q_heads * problem.shape.q_len;
}

}  // namespace qkcts::cuda
