// SPDX-License-Identifier: Apache-2.0
// QK-normalised attention, one plain step after the other: load -> norm and rope -> scores -> softmax -> output.
//
// Real is the arithmetic (double for binary64 cases, float for all others); one rounding per operation, and a stage is
// rounded to its storage format only where it is observed. Each step is virtual so that a mutant can replace exactly
// one of them.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <qkcts/adapter.h>

#include "adapters/scalar/layout.hpp"
#include "adapters/scalar/norm.hpp"
#include "adapters/scalar/rope.hpp"

namespace qkcts::scalar {

template <class Real>
constexpr Real infinity = std::numeric_limits<Real>::infinity();

enum class Side { query, key };

// One query row on its way through the stages. Vectors over keys have k_len elements.
template <class Real>
struct QueryRow {
  std::int64_t b = 0, h = 0, t = 0;
  std::vector<std::uint8_t> visible;
  std::vector<Real> scores, capped, masked, probs;
  std::vector<Real> output;
  Real lse = 0;        // in the base of the weights; returned_lse() is what the stage holds
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
  // One token, all its heads, [heads, head_dim], in place. The first is clip_after(multiplier * norm(clip_before(x))).
  virtual void transform_token(Side side, std::span<Real> token);
  virtual void normalise_token(Side side, std::span<Real> token);
  // d of one group of lanes.
  virtual Real divisor_of(Side side, std::span<const Real> group, Real mean) const;
  virtual std::int64_t position_of(Side side, std::int64_t b, std::int64_t t) const;
  // C and S of a position, from the tables or computed.
  virtual Turn<Real> turn_at(Side side, std::int64_t position) const;
  virtual void rotate_head(const Turn<Real>& turn, std::span<Real> head) const;
  // QK-HEADS: the key/value head that query head h reads.
  virtual std::int64_t kv_head(std::int64_t h) const;
  // QK-QTEMP: the factor of the scores of one query.
  virtual double query_factor(std::int64_t b, std::int64_t t) const;
  // QK-MASK, one key of one query row.
  virtual bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const;
  // QK-ALIBI: what the slope is multiplied by.
  virtual double alibi_distance(const QueryRow<Real>& row, std::int64_t k) const;
  virtual void score_row(QueryRow<Real>& row);    // visible -> scores
  virtual void cap_row(QueryRow<Real>& row);      // scores  -> capped
  virtual void mask_row(QueryRow<Real>& row);     // capped  -> masked
  virtual void softmax_row(QueryRow<Real>& row);  // masked  -> probs, lse
  virtual void output_row(QueryRow<Real>& row);   // probs   -> output
  virtual Real returned_lse(const QueryRow<Real>& row) const;
  virtual void store_row(const QueryRow<Real>& row);
  virtual void store_token(qkcts_stage stage, std::int64_t b, std::int64_t t, std::span<const Real> token);

  const qkcts_norm& norm_of(Side side) const { return side == Side::query ? terms_.q_norm : terms_.k_norm; }
  const qkcts_norm_range& range_of(Side side) const { return side == Side::query ? terms_.q_range : terms_.k_range; }
  bool observed(qkcts_stage stage) const { return stages_[stage].present(); }
  std::int64_t query_offset(std::int64_t b) const;  // i' - i of QK-MASK
  Real tau(const QueryRow<Real>& row) const;        // everything that multiplies <q, k>
  Real bias_of(const QueryRow<Real>& row, std::int64_t k) const;
  Real alibi_of(const QueryRow<Real>& row, std::int64_t k) const;
  Real sink_of(const QueryRow<Real>& row) const { return sinks_[row.h]; }
  bool has_sink_column() const { return terms_.softmax.sink == QKCTS_SINK_COLUMN; }
  Real power(Real x) const;      // e^x or 2^x: QK-BASE-01
  Real logarithm(Real x) const;  // its inverse
  std::span<const Real> query(std::int64_t b, std::int64_t h, std::int64_t t) const;
  std::span<const Real> key(std::int64_t b, std::int64_t kv, std::int64_t t) const;
  std::span<const Real> value(std::int64_t b, std::int64_t kv, std::int64_t t) const;

  qkcts_contract terms_;
  qkcts_shape shape_;
  std::vector<double> tau_;                // scale / temperature, by query head
  std::vector<double> frequencies_;        // by pair, where the angles are computed
  std::vector<double> slopes_;             // by query head, where the contract has QK-ALIBI
  std::vector<Real> sinks_;                // by query head, where the contract has QK-SINK
  NormParameter<Real> gain_[2], bias_[2];  // by Side
  TensorView cos_, sin_, position_[2], documents_[2];
  TensorView learned_scale_, mask_, additive_, kv_len_, prefix_len_;
  TensorView stages_[QKCTS_STAGE_COUNT];

 private:
  void bind_norm(Side side, const qkcts_tensor* gain, const qkcts_tensor* bias);
  void bind_positions(const qkcts_inputs& inputs);
  void bind_mask(const qkcts_inputs& inputs);
  void choose_scale();
  void prepare_vectors(Side side);
  void prepare_values();
  void empty_softmax(QueryRow<Real>& row) const;

  TensorView vectors_in_[2], values_in_;
  std::vector<Real> vectors_[2];  // [B, H, L, D]: what the scores are made of
  std::vector<Real> values_;      // [B, Hkv, Lk, Dv]
};

extern template class Attention<float>;
extern template class Attention<double>;

}  // namespace qkcts::scalar
