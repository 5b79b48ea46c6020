// SPDX-License-Identifier: Apache-2.0
// QK-normalised attention, one plain step after the other: load or project -> norm and rope -> scores -> softmax ->
// output.
//
// Real is the arithmetic (double for binary64 cases, float for all others); one rounding per operation, and a stage is
// rounded to its storage format only where it is observed, unless the contract names a rounding point before. Each step
// is virtual so that a mutant can replace exactly one of them.
#pragma once

#include <array>
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

enum class Side { query, key, value };

// What belongs to one of q, k and v, and has its index.
template <class Thing>
struct BySide : std::array<Thing, 3> {
  using std::array<Thing, 3>::operator[];
  Thing& operator[](Side side) { return (*this)[static_cast<std::size_t>(side)]; }
  const Thing& operator[](Side side) const { return (*this)[static_cast<std::size_t>(side)]; }
};

// QK-PROJ: where q or k comes from.
template <class Real>
struct Projection {
  TensorView x;              // [B, L, E]
  std::vector<Real> weight;  // [E, heads * D]
  std::vector<Real> bias;    // [heads * D], or empty
  NormParameter<Real> norm_gain, norm_bias;

  bool present() const { return x.present(); }
};

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
  // QK-ROUND: x at a point of the contract; `format` 0: not rounded.
  Real rounded(std::uint32_t format, Real x) const { return format == 0 ? x : rounded_to(format, x); }
  virtual Real rounded_to(std::uint32_t format, Real x) const;

  // QK-PROJ, one token with all its heads: norm of the row x, product with the matrix, bias.
  virtual void project_token(Side side, std::int64_t b, std::int64_t t, std::span<Real> token) const;
  virtual void normalise_row(Side side, std::span<Real> x) const;
  virtual void multiply_row(Side side, std::span<const Real> x, std::span<Real> token) const;
  // One token, all its heads, [heads, width], in place. The first is clip_after(multiplier * norm(clip_before(x))).
  virtual void transform_token(Side side, std::span<Real> token);
  virtual void normalise_token(Side side, std::span<Real> token);
  // d of one group of lanes, and what becomes of one centred entry before the gain.
  virtual Real divisor_of(Side side, std::span<const Real> group, Real mean) const;
  virtual Real unit_of(Side side, Real centred, Real d) const;
  virtual std::int64_t position_of(Side side, std::int64_t b, std::int64_t t) const;
  // C and S of a head at a position, from the tables or computed.
  virtual Turn<Real> turn_at(Side side, std::int64_t h, std::int64_t position) const;
  virtual void rotate_head(Side side, const Turn<Real>& turn, std::span<Real> head) const;
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

  const qkcts_norm& norm_of(Side side) const;
  const qkcts_norm& input_norm_of(Side side) const;  // that before the projection
  const qkcts_norm_range& range_of(Side side) const;
  qkcts_norm_range& range_of(Side side);
  const qkcts_vector_rounding& points_of(Side side) const;
  const qkcts_input_rounding& input_points_of(Side side) const;  // those before the projection
  std::int64_t heads_of(Side side) const { return side == Side::query ? shape_.q_heads : shape_.kv_heads; }
  std::int64_t length_of(Side side) const { return side == Side::query ? shape_.q_len : shape_.k_len; }
  std::int64_t width_of(Side side) const { return side == Side::value ? shape_.v_head_dim : shape_.head_dim; }
  bool rotates(Side side) const { return side != Side::value && terms_.rope.order != QKCTS_ROPE_NONE; }
  bool observed(qkcts_stage stage) const { return stages_[stage].present(); }
  std::int64_t query_offset(std::int64_t b) const;  // i' - i of QK-MASK
  Real tau(const QueryRow<Real>& row) const;        // everything that multiplies <q, k>
  Real bias_of(const QueryRow<Real>& row, std::int64_t k) const;
  bool propagates() const { return terms_.softmax.hidden_values == QKCTS_HIDDEN_PROPAGATED; }
  bool is_added(const QueryRow<Real>& row, std::int64_t k) const;
  Real alibi_of(const QueryRow<Real>& row, std::int64_t k) const;
  Real sink_of(const QueryRow<Real>& row) const { return sinks_[row.h]; }
  bool has_sink_column() const { return terms_.softmax.sink == QKCTS_SINK_COLUMN; }
  Real power(Real x) const;      // e^x or 2^x: QK-BASE-01
  Real logarithm(Real x) const;  // its inverse
  std::span<const Real> query(std::int64_t b, std::int64_t h, std::int64_t t) const;
  std::span<const Real> key(std::int64_t b, std::int64_t kv, std::int64_t t) const;
  std::span<const Real> value(std::int64_t b, std::int64_t kv, std::int64_t t) const;
  Real raw(Side side, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d) const;  // of the input itself

  qkcts_contract terms_;
  qkcts_shape shape_;
  std::vector<double> tau_;                  // scale / temperature, by query head
  std::vector<double> frequencies_;          // by pair, where the angles are computed
  std::vector<double> slopes_;               // by query head, where the contract has QK-ALIBI
  std::vector<Real> sinks_;                  // by query head, where the contract has QK-SINK
  BySide<NormParameter<Real>> gain_, bias_;  // of the norms of q, k and v
  BySide<Projection<Real>> projection_;      // of q and k, where the contract has QK-PROJ
  TensorView cos_, sin_, position_[2], documents_[2];
  TensorView learned_scale_, mask_, additive_, kv_len_, prefix_len_;
  TensorView stages_[QKCTS_STAGE_COUNT];

 private:
  void bind_vectors(const qkcts_inputs& inputs);
  void bind_projection(const qkcts_inputs& inputs);
  void bind_positions(const qkcts_inputs& inputs);
  void bind_mask(const qkcts_inputs& inputs);
  void choose_scale();
  void prepare_vectors(Side side);
  void rotate_token(Side side, std::int64_t b, std::int64_t t, std::span<Real> token) const;
  void empty_softmax(QueryRow<Real>& row) const;
  std::span<const Real> vector(Side side, std::int64_t b, std::int64_t h, std::int64_t t) const;

  BySide<TensorView> vectors_in_;
  BySide<std::vector<Real>> vectors_;  // [B, H, L, width]: what scores and output are made of
};

extern template class Attention<float>;
extern template class Attention<double>;

}  // namespace qkcts::scalar
