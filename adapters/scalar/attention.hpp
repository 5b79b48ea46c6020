// SPDX-License-Identifier: Apache-2.0
// QK-normalised attention, one plain step after the other: load -> norm and rope -> scores -> softmax -> output.
//
// Real is the arithmetic (double for binary64 cases, float for all others); one rounding per operation, and a stage is
// rounded to its storage format only where it is observed. Each step is virtual so that a mutant can replace exactly
// one of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <qkcts/adapter.h>

#include "adapters/scalar/layout.hpp"
#include "adapters/scalar/norm.hpp"

namespace qkcts::scalar {

enum class Side { query, key };

// One query row on its way through the stages. Vectors over keys have k_len elements.
template <class Real>
struct QueryRow {
  std::int64_t b = 0, h = 0, t = 0;
  std::vector<std::uint8_t> visible;
  std::vector<Real> scores, capped, masked, probs;
  std::vector<Real> output;
  Real lse = 0;
  bool empty = false;  // no key is visible
};

template <class Real>
class Attention {
 public:
  // Throws InvalidArguments if an input that the contract needs is missing.
  Attention(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
            const qkcts_outputs& outputs);
  virtual ~Attention() = default;
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  void run();

 protected:
  // Norm of all heads of one token, [heads, head_dim], in place.
  virtual void normalise_token(Side side, std::span<Real> token);
  // d of one group of lanes.
  virtual Real divisor_of(Side side, std::span<const Real> group, Real mean) const;
  // Rotation of all heads of one token, in place.
  virtual void rotate_token(Side side, std::int64_t b, std::int64_t t, std::span<Real> token);
  // QK-HEADS: the key/value head that query head h reads.
  virtual std::int64_t kv_head(std::int64_t h) const;
  // QK-MASK, one key of one query row.
  virtual bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const;
  virtual void score_row(QueryRow<Real>& row);    // visible -> scores
  virtual void cap_row(QueryRow<Real>& row);      // scores  -> capped
  virtual void mask_row(QueryRow<Real>& row);     // capped  -> masked
  virtual void softmax_row(QueryRow<Real>& row);  // masked  -> probs, lse
  virtual void output_row(QueryRow<Real>& row);   // probs   -> output
  virtual void store_row(const QueryRow<Real>& row);
  virtual void store_token(qkcts_stage stage, std::int64_t b, std::int64_t t, std::span<const Real> token);

  const qkcts_norm& norm_of(Side side) const { return side == Side::query ? terms_.q_norm : terms_.k_norm; }
  bool observed(qkcts_stage stage) const { return stages_[stage].present(); }
  std::int64_t query_offset(std::int64_t b) const;  // q' - q of QK-MASK
  Real bias_of(const QueryRow<Real>& row, std::int64_t k) const;
  std::span<const Real> query(std::int64_t b, std::int64_t h, std::int64_t t) const;
  std::span<const Real> key(std::int64_t b, std::int64_t kv, std::int64_t t) const;
  std::span<const Real> value(std::int64_t b, std::int64_t kv, std::int64_t t) const;

  qkcts_contract terms_;
  qkcts_shape shape_;
  Real tau_ = 1;                           // scale / temperature
  NormParameter<Real> gain_[2], bias_[2];  // by Side
  TensorView cos_, sin_, position_[2];
  TensorView scale_, mask_, additive_, kv_len_;
  TensorView stages_[QKCTS_STAGE_COUNT];

 private:
  void prepare_vectors(Side side);
  void prepare_values();
  void choose_scale();

  TensorView vectors_in_[2], values_in_;
  std::vector<Real> vectors_[2];  // [B, H, L, D]: what the scores are made of
  std::vector<Real> values_;      // [B, Hkv, Lk, Dv]
};

extern template class Attention<float>;
extern template class Attention<double>;

}  // namespace qkcts::scalar
