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
};

enum class Side { query, key };

struct Draft {
  // Nothing is drawn yet: enough to ask whether a family fits.
  Draft(const Contract& contract, const qkcts_shape& shape, Format format, std::uint64_t seed);
  void draw_ordinary();

  Contract contract;
  qkcts_shape shape;
  Format format;
  std::uint64_t seed;

  std::vector<double> q, k, v;         // row-major, as in the case
  std::vector<double> q_gain, k_gain;  // the factors themselves: w or 1 + w by the contract
  std::vector<double> q_bias, k_bias;
  double scale = 0;
  std::vector<std::uint8_t> mask;                         // [mask_batch, mask_heads, Lq, Lk], 1 = visible
  std::vector<double> bias;                               // the same axes
  std::int64_t broadcast_batch = 1, broadcast_heads = 1;  // of mask and bias
  std::vector<std::int32_t> kv_len, q_position_ids, k_position_ids;
  std::int64_t first_position = 0;

  RandomStream stream(Draw draw) const { return {seed, static_cast<std::uint32_t>(draw)}; }
  const qkcts_norm& norm(Side side) const;
  std::vector<double>& rows(Side side) { return side == Side::query ? q : k; }
  std::int64_t heads(Side side) const { return side == Side::query ? shape.q_heads : shape.kv_heads; }
  std::int64_t tokens(Side side) const { return side == Side::query ? shape.q_len : shape.k_len; }
  // First element of a row of q or k.
  double* row(Side side, std::int64_t b, std::int64_t h, std::int64_t t);
  double* v_row(std::int64_t b, std::int64_t h, std::int64_t t);
  std::size_t mask_index(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t j) const;

  // Every rotation by the same angle, so that dots are those of the unrotated vectors.
  void freeze_positions();
  void set_gain(Side side, double factor);  // every lane; the bias becomes 0

  // Makes q and k of unit rms, aligned, score `size`, by amplitude, gain or learned scale, whichever the contract
  // leaves open; the rows themselves are multiplied by the amplitude in `amplify`. False if it leaves nothing open.
  bool fit_score(double size);
  double q_amplitude = 1, k_amplitude = 1;
  void amplify();
};

// The case; cos and sin, if the contract needs them, are left to the caller (DrawnCase says which rows).
DrawnCase sealed(const Draft& draft);

// Reading a case back, for promises.
std::vector<double> row_of(const Tensor& tensor, std::int64_t row);
double sum_of_squares(const std::vector<double>& row);
double dot(const std::vector<double>& left, const std::vector<double>& right);

}  // namespace qkcts
