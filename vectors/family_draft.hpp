// SPDX-License-Identifier: Apache-2.0
// The inputs of a case while a family is drawing them: binary64 numbers, rounded to the storage format at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vectors/counter_generator.hpp"
#include "vectors/input_family.hpp"

namespace qkcts {

// Streams of the generator, one per kind of draw; numbers are part of the corpus' meaning and never reused.
enum class Draw : std::uint32_t {
  q = 0,
  k = 1,
  v = 2,
  q_gain = 3,
  k_gain = 4,
  q_bias = 5,
  k_bias = 6,
  scale = 7,
  mask = 8,
  bias = 9,
  kv_len = 10,
  direction = 11,
  order = 12,
  poison = 13,
  noise = 14,
  slope = 15,
  sink = 16,
  document = 17,
  prefix = 18,
  v_gain = 19,
  v_bias = 20,
  q_x = 21,
  k_x = 22,
  q_weight = 23,
  k_weight = 24,
  q_weight_bias = 25,
  k_weight_bias = 26,
  q_x_gain = 27,
  k_x_gain = 28,
  q_x_bias = 29,
  k_x_bias = 30,
};

enum class DraftSide { query, key, value };

// What q or k is projected from (QK-PROJ). Empty without a projection.
struct DraftProjection {
  std::int64_t width = 0;      // E
  std::vector<double> x;       // [B, L, E]
  std::vector<double> weight;  // [E, H * D]
  std::vector<double> bias;    // [H * D]
  std::vector<double> gain;    // of the norm before the projection, the factors themselves
  std::vector<double> x_bias;  // of that norm
};

const qkcts_norm& norm_of(const qkcts_contract& terms, DraftSide side);
const qkcts_norm& input_norm_of(const qkcts_contract& terms, DraftSide side);  // before the projection of q or k
const qkcts_norm_range& range_of(const qkcts_contract& terms, DraftSide side);
// Why q and k cannot be given under this contract as they are wanted; empty if they can.
std::string rows_fault(const qkcts_contract& terms);

struct Draft {
  // Nothing is drawn yet: enough to ask whether a family fits.
  Draft(const Contract& contract, const qkcts_shape& shape, Format format, std::uint64_t seed);
  void draw_ordinary();

  Contract contract;
  qkcts_shape shape;
  Format format;
  std::uint64_t seed;

  std::vector<double> q, k, v;                 // row-major, as in the case
  std::vector<double> q_gain, k_gain, v_gain;  // the factors themselves: w or 1 + w by the contract
  std::vector<double> q_bias, k_bias, v_bias;
  DraftProjection q_projection, k_projection;
  // Under a projection: q and k as they stand above are what comes out of it, exactly; what it starts from is made of
  // them at the end. Else the projection starts from what is drawn in q_projection, and q and k above are not used.
  bool planted = false;
  std::vector<double> scale;                              // [1] or [Hq], as stored: the logarithm under scale_exp_cap
  std::vector<double> alibi_slopes, sink;                 // [Hq]
  std::vector<std::uint8_t> mask;                         // [mask_batch, mask_heads, Lq, Lk], 1 = visible
  std::vector<double> bias;                               // the same axes
  std::int64_t broadcast_batch = 1, broadcast_heads = 1;  // of mask and bias
  std::vector<std::int32_t> kv_len, prefix_len, q_document_ids, k_document_ids;
  // Position ids count from first_position on, and are those rows of the tables; without tables they are stored with it
  // added.
  std::vector<std::int32_t> q_position_ids, k_position_ids;
  std::int64_t first_position = 0;

  // Bits that replace a number of k or v at the end: what no double says, such as the payload of a NaN.
  struct Poison {
    Input input;
    std::size_t index;
    std::uint64_t pattern;
  };
  std::vector<Poison> poison;

  RandomStream stream(Draw draw) const { return {seed, static_cast<std::uint32_t>(draw)}; }
  const qkcts_norm& norm(DraftSide side) const { return norm_of(contract.terms, side); }
  const qkcts_norm_range& range(DraftSide side) const { return range_of(contract.terms, side); }
  std::vector<double>& rows(DraftSide side);
  std::vector<double>& gain(DraftSide side);
  std::vector<double>& norm_bias(DraftSide side);
  DraftProjection& projection(DraftSide side) { return side == DraftSide::query ? q_projection : k_projection; }
  const DraftProjection& projection(DraftSide side) const {
    return side == DraftSide::query ? q_projection : k_projection;
  }
  std::int64_t heads(DraftSide side) const { return side == DraftSide::query ? shape.q_heads : shape.kv_heads; }
  std::int64_t tokens(DraftSide side) const { return side == DraftSide::query ? shape.q_len : shape.k_len; }
  std::int64_t lanes(DraftSide side) const { return side == DraftSide::value ? shape.v_head_dim : shape.head_dim; }
  std::int64_t kv_head(std::int64_t h) const { return kv_head_of(contract.terms, shape, h); }
  // First element of a row.
  double* row(DraftSide side, std::int64_t b, std::int64_t h, std::int64_t t);
  double* v_row(std::int64_t b, std::int64_t h, std::int64_t t) { return row(DraftSide::value, b, h, t); }
  std::size_t mask_index(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t j) const;

  // Row = cosine * u + sqrt(1 - cosine^2) * row, u the sign vector of the key head: rms 1, and aligned as said.
  void point(DraftSide side, std::int64_t b, std::int64_t h, std::int64_t t, double cosine);

  bool projects() const { return contract.terms.projection.form != QKCTS_PROJECTION_NONE; }
  bool rotates() const { return contract.terms.rope.order != QKCTS_ROPE_NONE; }
  bool has_tables() const { return rotates() && contract.terms.rotation.angles == QKCTS_ANGLES_TABLE; }
  // Every rotation by the same angle, so that dots are those of the unrotated vectors.
  void freeze_positions();
  void set_gain(DraftSide side, double factor);  // every lane; the bias becomes 0

  // The score of q = k of rms 1 under gains of 1, but for a learned scale and what depends on the position.
  double aligned_score() const;
  // The standard deviation, about, of the scores of ordinary rows of head h.
  double ordinary_score(std::int64_t h) const;
  void set_scale(double factor);  // the learned one, of every head
  // The largest number that q and k can hold at every rounding point.
  double largest_vector() const;
  // Makes q and k of unit rms, aligned, score `size`, by amplitude, gain or learned scale, whichever the contract
  // leaves open; the rows themselves are multiplied by the amplitude in `amplify`. False if it leaves nothing open.
  bool fit_score(double size);
  double q_amplitude = 1, k_amplitude = 1;
  void amplify();
};

// Parts of the ordinary draft, by the file that draws them.
void draw_ordinary_positions(Draft& draft);   // draft_position.cpp
void draw_ordinary_visibility(Draft& draft);  // draft_visibility.cpp: lengths, mask, documents, prefix
void draw_ordinary_logits(Draft& draft);      // draft_logit.cpp: scale, slopes, sinks
void draw_ordinary_projection(Draft& draft);  // draft_projection.cpp

// The first numbers of a stream; those of binary64 have more bits than the others.
std::vector<double> gaussians(const Draft& draft, Draw draw, std::size_t count);
// A projection from which q or k comes out as it stands in the draft, exactly.
DraftProjection planted_projection(const Draft& draft, DraftSide side);

// The case; cos and sin, if the contract needs them, are left to the caller (DrawnCase says which rows).
DrawnCase sealed(const Draft& draft);

// Reading a case back, for promises. The rows of one side, [B, H, L, lanes]: the input, or what its projection makes of
// x without a norm, rounded to the storage format.
Tensor rows_of(const Case& c, DraftSide side);
std::vector<double> row_of(const Tensor& tensor, std::int64_t row);
double sum_of_squares(const std::vector<double>& row);
double dot(const std::vector<double>& left, const std::vector<double>& right);
// exp of minus this underflows to 0 in the accumulator.
double underflow_gap(Format format);
// Why families of numbers near the end of the range leave a contract out: what overflows at a point has no value.
std::string narrow_points_fault(const Draft& draft);

}  // namespace qkcts
