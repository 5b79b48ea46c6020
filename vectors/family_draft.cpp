// SPDX-License-Identifier: Apache-2.0
#include "vectors/family_draft.hpp"

#include <algorithm>
#include <cmath>

#include "conformance/parameter_place.hpp"
#include "conformance/rounding_range.hpp"

namespace qkcts {
namespace {

std::size_t size_of(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d = 1) {
  return extent_product({a, b, c, d});
}

// A gaussian number; binary64 gets 20 further bits, since the sum of 12 words has only 36.
double gaussian(const Draft& draft, const RandomStream& stream, std::uint64_t index) {
  const double x = stream.gaussian(index);
  return draft.format == Format::binary64 ? x + stream.uniform(index) * 0x1p-33 : x;
}

std::size_t parameter_count(std::uint32_t axes, std::int64_t heads, std::int64_t head_dim) {
  return axes == QKCTS_AXES_NONE ? 0 : parameter_place(axes, heads - 1, head_dim - 1, head_dim) + 1;
}

// Lanes that are rotated together get gains on different sides of 1, whatever the pairing, or else the order of norm
// and rotation could not be seen: lane i differs from lane i^1 and from lane i + R/2.
bool upper_gain(const Draft& draft, DraftSide side, std::size_t lane) {
  if (side == DraftSide::value) return (lane & 1U) != 0;
  const std::int64_t rotated = draft.contract.terms.rope.rotated;
  const auto half = static_cast<std::size_t>((rotated == 0 ? draft.shape.head_dim : rotated) / 2);
  const std::size_t second_half = half != 0 && half % 2 == 0 ? lane / half : 0;
  return ((lane ^ second_half) & 1U) != 0;
}

// Streams of the parameters of a side's norm.
Draw gain_draw(DraftSide side) {
  if (side == DraftSide::value) return Draw::v_gain;
  return side == DraftSide::query ? Draw::q_gain : Draw::k_gain;
}
Draw bias_draw(DraftSide side) {
  if (side == DraftSide::value) return Draw::v_bias;
  return side == DraftSide::query ? Draw::q_bias : Draw::k_bias;
}

std::vector<double> ordinary_gain(const Draft& draft, DraftSide side) {
  const qkcts_norm& norm = draft.norm(side);
  if (norm.applied == 0 || norm.gain == QKCTS_GAIN_NONE) return {};
  const RandomStream stream = draft.stream(gain_draw(side));
  std::vector<double> gain(parameter_count(norm.gain_axes, draft.heads(side), draft.lanes(side)));
  const bool of_lanes = norm.gain_axes != QKCTS_AXES_HEAD && norm.gain_axes != QKCTS_AXES_SCALAR;
  for (std::size_t i = 0; i < gain.size(); ++i) {
    const std::size_t lane = of_lanes ? i % static_cast<std::size_t>(draft.lanes(side)) : i;
    gain[i] = upper_gain(draft, side, lane) ? stream.uniform(i, 1.125, 1.5) : stream.uniform(i, 0.5, 0.875);
  }
  return gain;
}

std::vector<double> ordinary_norm_bias(const Draft& draft, DraftSide side) {
  const qkcts_norm& norm = draft.norm(side);
  if (norm.applied == 0) return {};
  std::vector<double> bias =
      gaussians(draft, bias_draw(side), parameter_count(norm.bias_axes, draft.heads(side), draft.lanes(side)));
  for (double& x : bias) x *= 0.25;
  return bias;
}

}  // namespace

std::vector<double> gaussians(const Draft& draft, Draw draw, std::size_t count) {
  const RandomStream stream = draft.stream(draw);
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = gaussian(draft, stream, i);
  return values;
}

const qkcts_norm& norm_of(const qkcts_contract& terms, DraftSide side) {
  if (side == DraftSide::value) return terms.v_norm;
  return side == DraftSide::query ? terms.q_norm : terms.k_norm;
}

const qkcts_norm& input_norm_of(const qkcts_contract& terms, DraftSide side) {
  return side == DraftSide::query ? terms.projection.q_input : terms.projection.k_input;
}

const qkcts_norm_range& range_of(const qkcts_contract& terms, DraftSide side) {
  if (side == DraftSide::value) return terms.v_range;
  return side == DraftSide::query ? terms.q_range : terms.k_range;
}

Draft::Draft(const Contract& the_contract, const qkcts_shape& the_shape, Format the_format, std::uint64_t the_seed)
    : contract(the_contract), shape(the_shape), format(the_format), seed(the_seed) {}

void Draft::draw_ordinary() {
  const qkcts_contract& terms = contract.terms;
  q = gaussians(*this, Draw::q, size_of(shape.batch, shape.q_heads, shape.q_len, shape.head_dim));
  k = gaussians(*this, Draw::k, size_of(shape.batch, shape.kv_heads, shape.k_len, shape.head_dim));
  v = gaussians(*this, Draw::v, size_of(shape.batch, shape.kv_heads, shape.k_len, shape.v_head_dim));
  for (const DraftSide side : {DraftSide::query, DraftSide::key, DraftSide::value}) {
    gain(side) = ordinary_gain(*this, side);
    norm_bias(side) = ordinary_norm_bias(*this, side);
  }
  const std::uint64_t broadcast = stream(Draw::mask).bits(~std::uint64_t{0});
  broadcast_batch = (broadcast & 1U) != 0 ? shape.batch : 1;
  broadcast_heads = (broadcast & 2U) != 0 ? shape.q_heads : 1;
  if (terms.score.bias_order != QKCTS_BIAS_NONE)
    bias = gaussians(*this, Draw::bias, size_of(broadcast_batch, broadcast_heads, shape.q_len, shape.k_len));
  draw_ordinary_visibility(*this);
  draw_ordinary_positions(*this);
  draw_ordinary_logits(*this);
  if (projects()) draw_ordinary_projection(*this);
}

std::vector<double>& Draft::rows(DraftSide side) {
  if (side == DraftSide::value) return v;
  return side == DraftSide::query ? q : k;
}

std::vector<double>& Draft::gain(DraftSide side) {
  if (side == DraftSide::value) return v_gain;
  return side == DraftSide::query ? q_gain : k_gain;
}

std::vector<double>& Draft::norm_bias(DraftSide side) {
  if (side == DraftSide::value) return v_bias;
  return side == DraftSide::query ? q_bias : k_bias;
}

double* Draft::row(DraftSide side, std::int64_t b, std::int64_t h, std::int64_t t) {
  return rows(side).data() + ((b * heads(side) + h) * tokens(side) + t) * lanes(side);
}

std::size_t Draft::mask_index(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t j) const {
  const std::int64_t b_index = broadcast_batch == 1 ? 0 : b;
  const std::int64_t h_index = broadcast_heads == 1 ? 0 : h;
  return static_cast<std::size_t>(((b_index * broadcast_heads + h_index) * shape.q_len + t) * shape.k_len + j);
}

void Draft::point(DraftSide side, std::int64_t b, std::int64_t h, std::int64_t t, double cosine) {
  const RandomStream direction = stream(Draw::direction);
  const std::int64_t head = side == DraftSide::query ? kv_head(h) : h;
  const double rest = std::sqrt(std::max(0.0, 1 - cosine * cosine));
  double* const x = row(side, b, h, t);
  for (std::int64_t d = 0; d < shape.head_dim; ++d)
    x[d] = cosine * direction.sign(static_cast<std::uint64_t>(head * shape.head_dim + d)) + rest * x[d];
}

void Draft::set_gain(DraftSide side, double factor) {
  std::fill(gain(side).begin(), gain(side).end(), factor);
  std::fill(norm_bias(side).begin(), norm_bias(side).end(), 0.0);
}

std::vector<double> row_of(const Tensor& tensor, std::int64_t row) {
  const auto length = static_cast<std::size_t>(tensor.shape.back());
  std::vector<double> values(length);
  for (std::size_t i = 0; i < length; ++i) values[i] = tensor.value(static_cast<std::size_t>(row) * length + i);
  return values;
}

double sum_of_squares(const std::vector<double>& row) {
  return dot(row, row);
}

double dot(const std::vector<double>& left, const std::vector<double>& right) {
  double sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i) sum += left[i] * right[i];
  return sum;
}

double underflow_gap(Format format) {
  return accumulator_format(format) == Format::binary64 ? 760 : 110;
}

std::string narrow_points_fault(const Draft& draft) {
  const bool ends = rounding_ends_before(draft.contract.terms.rounding, draft.format);
  return ends ? "needs rounding points that saturate, or with the range of the format" : "";
}

}  // namespace qkcts
