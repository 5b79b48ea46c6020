// SPDX-License-Identifier: Apache-2.0
// What q and k are projected from: rows, matrices and the norm before them (QK-PROJ).
#include <algorithm>
#include <cmath>

#include "vectors/family_draft.hpp"

namespace qkcts {
namespace {

// The streams of one side.
struct Streams {
  Draw x, weight, weight_bias, gain, bias;
};
constexpr Streams query_streams = {Draw::q_x, Draw::q_weight, Draw::q_weight_bias, Draw::q_x_gain, Draw::q_x_bias};
constexpr Streams key_streams = {Draw::k_x, Draw::k_weight, Draw::k_weight_bias, Draw::k_x_gain, Draw::k_x_bias};

// The first number from `wanted` on that no other extent of the case has: whoever confuses two axes is noticed.
std::int64_t free_width(const qkcts_shape& s, std::int64_t wanted, std::int64_t other) {
  const std::int64_t taken[] = {s.batch,
                                s.q_heads,
                                s.kv_heads,
                                s.q_len,
                                s.k_len,
                                s.head_dim,
                                s.v_head_dim,
                                s.q_heads * s.head_dim,
                                s.kv_heads * s.head_dim,
                                other};
  while (std::find(std::begin(taken), std::end(taken), wanted) != std::end(taken)) ++wanted;
  return wanted;
}

std::int64_t ordinary_width(const qkcts_shape& s, DraftSide side) {
  const std::int64_t of_queries = free_width(s, s.head_dim + 5, 0);
  return side == DraftSide::query ? of_queries : free_width(s, s.head_dim + 9, of_queries);
}

// Room for every column, and three entries that no column takes.
std::int64_t planted_width(const qkcts_shape& s, DraftSide side) {
  const std::int64_t of_queries = free_width(s, s.q_heads * s.head_dim + 3, 0);
  return side == DraftSide::query ? of_queries : free_width(s, s.kv_heads * s.head_dim + 3, of_queries);
}

std::size_t parameter_count(std::uint32_t axes, std::int64_t width) {
  if (axes == QKCTS_AXES_NONE) return 0;
  return axes == QKCTS_AXES_SCALAR ? 1 : static_cast<std::size_t>(width);
}

std::size_t row_entries(const Draft& draft, DraftSide side, std::int64_t width) {
  return extent_product({draft.shape.batch, draft.tokens(side), width});
}

// Entries of the matrix are of the size that keeps q of the size of x: E^(-1/2), and 1 where the norm before it already
// divides by the length of the row. The bias is half as large as what it is added to.
DraftProjection ordinary_projection(const Draft& draft, DraftSide side) {
  constexpr double bias_share = 0.5, norm_bias_share = 0.375;
  const Streams& streams = side == DraftSide::query ? query_streams : key_streams;
  const qkcts_norm& norm = input_norm_of(draft.contract.terms, side);
  DraftProjection p;
  p.width = ordinary_width(draft.shape, side);
  const auto columns = static_cast<std::size_t>(draft.heads(side) * draft.shape.head_dim);
  p.x = gaussians(draft, streams.x, row_entries(draft, side, p.width));
  p.weight = gaussians(draft, streams.weight, static_cast<std::size_t>(p.width) * columns);
  if (norm.applied == 0 || norm.statistic == QKCTS_MEAN_SQUARE)
    for (double& w : p.weight) w /= std::sqrt(static_cast<double>(p.width));
  if (draft.contract.terms.projection.bias != 0) p.bias = gaussians(draft, streams.weight_bias, columns);
  for (double& b : p.bias) b *= bias_share;
  if (norm.applied == 0) return p;
  const RandomStream gains = draft.stream(streams.gain);
  for (std::size_t e = 0; e < parameter_count(norm.gain_axes, p.width); ++e)
    p.gain.push_back(e % 2 != 0 ? gains.uniform(e, 1.125, 1.5) : gains.uniform(e, 0.5, 0.875));
  const double unit = norm.statistic == QKCTS_MEAN_SQUARE ? 1 : 1 / std::sqrt(static_cast<double>(p.width));
  p.x_bias = gaussians(draft, streams.bias, parameter_count(norm.bias_axes, p.width));
  for (double& b : p.x_bias) b *= norm_bias_share * unit;
  return p;
}

}  // namespace

void draw_ordinary_projection(Draft& draft) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    draft.projection(side) = ordinary_projection(draft, side);
}

std::string rows_fault(const qkcts_contract& terms) {
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    if (terms.projection.form != QKCTS_PROJECTION_NONE && input_norm_of(terms, side).applied != 0)
      return "needs q and k of its own choice, but they come from rows that a norm has changed";
  return {};
}

// Every column takes one entry of x, with a sign; three entries are taken by none. All products are exact, and so are
// the sums of them.
DraftProjection planted_projection(const Draft& draft, DraftSide side) {
  const qkcts_shape& s = draft.shape;
  const Streams& streams = side == DraftSide::query ? query_streams : key_streams;
  const std::int64_t heads = draft.heads(side), tokens = draft.tokens(side), lanes = s.head_dim;
  const std::int64_t columns = heads * lanes;
  DraftProjection p;
  p.width = planted_width(s, side);
  p.x = gaussians(draft, streams.x, row_entries(draft, side, p.width));
  p.weight.assign(static_cast<std::size_t>(p.width * columns), 0);
  if (draft.contract.terms.projection.bias != 0) p.bias.assign(static_cast<std::size_t>(columns), 0);
  const RandomStream random = draft.stream(streams.weight);
  const std::vector<std::uint32_t> taken = random.permutation(static_cast<std::uint32_t>(p.width));
  const std::vector<double>& rows = side == DraftSide::query ? draft.q : draft.k;
  for (std::int64_t column = 0; column < columns; ++column) {
    const std::int64_t entry = taken[static_cast<std::size_t>(column)];
    const double sign = random.sign(static_cast<std::uint64_t>(column) + (std::uint64_t{1} << 40U));
    p.weight[static_cast<std::size_t>(entry * columns + column)] = sign;
    const std::int64_t h = column / lanes, i = column % lanes;
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t t = 0; t < tokens; ++t)
        p.x[static_cast<std::size_t>((b * tokens + t) * p.width + entry)] =
            sign * rows[static_cast<std::size_t>(((b * heads + h) * tokens + t) * lanes + i)];
  }
  return p;
}

Tensor rows_of(const Case& c, DraftSide side) {
  const Input plain = side == DraftSide::value ? Input::v : side == DraftSide::query ? Input::q : Input::k;
  if (c.inputs.has(plain)) return c.inputs.at(plain);
  const bool query = side == DraftSide::query;
  const std::vector<double> x = c.inputs.at(query ? Input::q_x : Input::k_x).values();
  const std::vector<double> weight = c.inputs.at(query ? Input::q_weight : Input::k_weight).values();
  const Input bias_input = query ? Input::q_weight_bias : Input::k_weight_bias;
  const std::vector<double> bias = c.inputs.has(bias_input) ? c.inputs.at(bias_input).values() : std::vector<double>{};
  const std::int64_t heads = query ? c.shape.q_heads : c.shape.kv_heads;
  const std::int64_t tokens = query ? c.shape.q_len : c.shape.k_len, lanes = c.shape.head_dim;
  const auto columns = static_cast<std::size_t>(heads * lanes);
  const std::size_t width = weight.size() / columns;
  Tensor rows = Tensor::zeros(element_type(c.inputs.format), {c.shape.batch, heads, tokens, lanes});
  for (std::size_t i = 0; i < rows.count(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t b = at / (heads * tokens * lanes), t = at / lanes % tokens;
    const auto column = static_cast<std::size_t>(at / (tokens * lanes) % heads * lanes + at % lanes);
    const std::size_t first = static_cast<std::size_t>(b * tokens + t) * width;
    double sum = bias.empty() ? 0 : bias[column];
    for (std::size_t e = 0; e < width; ++e)
      if (weight[e * columns + column] != 0) sum += x[first + e] * weight[e * columns + column];
    rows.set_pattern(i, encode(c.inputs.format, sum));
  }
  return rows;
}

}  // namespace qkcts
