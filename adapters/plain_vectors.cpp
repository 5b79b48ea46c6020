// SPDX-License-Identifier: Apache-2.0
#include "adapters/plain_vectors.hpp"

#include <cmath>

#include "adapters/plain_rounding.hpp"

namespace qkcts {

namespace {

double parameter(const SampleTensor& tensor, std::uint32_t axes, const PlainExtents& x, std::int64_t h,
                 std::int64_t d) {
  const std::int64_t index = axes == QKCTS_AXES_SCALAR     ? 0
                             : axes == QKCTS_AXES_HEAD     ? h
                             : axes == QKCTS_AXES_HEAD_DIM ? d
                                                           : h * x.dim + d;
  return tensor.get(static_cast<std::size_t>(index));
}

PlainVectors normed(const SampleCase& sample, const PlainVectors& x, const PlainExtents& e, const qkcts_norm& norm,
                    const SampleTensor& gain, const SampleTensor& bias, const qkcts_vector_rounding& points) {
  const auto rn = [&](std::uint32_t point, double value) { return plain_rounded(sample.terms, point, value); };
  PlainVectors y(x.size());
  for (std::int64_t b = 0; b < e.batch; ++b)
    for (std::int64_t h = 0; h < e.heads; ++h)
      for (std::int64_t t = 0; t < e.length; ++t) {
        const bool full = norm.axis == QKCTS_AXIS_FULL_WIDTH;
        double sum = 0, count = 0;
        for (std::int64_t g = full ? 0 : h; g < (full ? e.heads : h + 1); ++g)
          for (std::int64_t d = 0; d < e.dim; ++d, ++count) sum += x[e.at(b, g, t, d)];
        const double mean = norm.center != 0 ? sum / count : 0;
        double squares = 0;
        for (std::int64_t g = full ? 0 : h; g < (full ? e.heads : h + 1); ++g)
          for (std::int64_t d = 0; d < e.dim; ++d) squares += std::pow(x[e.at(b, g, t, d)] - mean, 2);
        const double t2 = norm.statistic == QKCTS_SUM_SQUARE ? squares : squares / count;
        const double divisor[] = {std::sqrt(t2 + norm.eps), std::sqrt(t2) + norm.eps,
                                  std::fmax(std::sqrt(t2), norm.eps), std::sqrt(std::fmax(t2, norm.eps))};
        for (std::int64_t d = 0; d < e.dim; ++d) {
          const double w = norm.gain == QKCTS_GAIN_NONE ? 1 : parameter(gain, norm.gain_axes, e, h, d);
          const double factor = norm.gain == QKCTS_GAIN_ONE_PLUS_W ? 1 + w : w;
          const double shift = norm.bias_axes == QKCTS_AXES_NONE ? 0 : parameter(bias, norm.bias_axes, e, h, d);
          const double root = rn(points.root, divisor[norm.root]), c = x[e.at(b, h, t, d)] - mean;
          const double unit = points.reciprocal != 0 ? c * rn(points.reciprocal, 1 / root) : c / root;
          y[e.at(b, h, t, d)] = rn(points.unit, unit) * factor + shift;
        }
      }
  return y;
}

// 0 stands for no bound.
void clip(PlainVectors& x, double bound) {
  if (bound == 0) return;
  for (double& value : x) value = std::fmax(-bound, std::fmin(bound, value));
}

// Radians per position of pair i, from the period that theta gives to it.
double radians(const qkcts_contract& terms, std::int64_t lanes, std::int64_t i) {
  const qkcts_rotation& r = terms.rotation;
  const double R = static_cast<double>(lanes), pair = static_cast<double>(i), s = r.factor;
  const double two_pi = 8 * std::atan(1.0);
  const double period = two_pi * std::exp(2 * pair / R * std::log(terms.rope.theta));
  const auto mix = [&](double own) { return own * two_pi / period + (1 - own) * two_pi / (s * period); };
  switch (r.scaling) {
    case QKCTS_SCALING_LINEAR:
      return mix(0);
    case QKCTS_SCALING_NTK:
      return two_pi / (period * std::pow(s, 2 * pair / (R - 2)));
    case QKCTS_SCALING_YARN: {
      // The index at which a pair makes the given number of turns in the original length.
      const auto index = [&](double turns) {
        return R / 2 * std::log(r.original_length / (turns * two_pi)) / std::log(terms.rope.theta);
      };
      double first = index(r.high), last = index(r.low);
      if (r.untruncated == 0) first = std::floor(first), last = std::ceil(last);
      first = std::fmax(first, 0);
      last = std::fmin(last, R - 1);
      if (first == last) last += 0.001;
      // In the formula's own words: where the ends have changed places, every pair in front of both is scaled.
      return mix(1 - std::fmax(0, std::fmin(1, (pair - first) / (last - first))));
    }
    case QKCTS_SCALING_LLAMA3: {
      const double turns = r.original_length / period;
      return mix(turns > r.high ? 1 : turns < r.low ? 0 : (turns - r.low) / (r.high - r.low));
    }
    case QKCTS_SCALING_PROPORTIONAL:
      return pair < std::floor(s * R / 2) ? mix(1) : 0;
    default:
      return mix(1);
  }
}

PlainVectors roped(const PlainVectors& x, const PlainExtents& e, const SampleCase& sample,
                   const SampleTensor& positions, const qkcts_vector_rounding& points) {
  const auto rn = [&](std::uint32_t point, double value) { return plain_rounded(sample.terms, point, value); };
  const qkcts_rope& rope = sample.terms.rope;
  const qkcts_rotation& more = sample.terms.rotation;
  const std::int64_t rotated = rope.rotated == 0 ? e.dim : rope.rotated;
  const std::int64_t start = rope.span == QKCTS_SPAN_LAST ? e.dim - rotated : 0;
  const bool stretched = more.angles == QKCTS_ANGLES_COMPUTED && more.attention_factor != 0;
  const double stretch = stretched ? more.attention_factor : 1;
  PlainVectors y = x;
  for (std::int64_t b = 0; b < e.batch; ++b)
    for (std::int64_t h = 0; h < e.heads; ++h)
      for (std::int64_t t = 0; t < e.length; ++t)
        for (std::int64_t lane = 0; lane < rotated; ++lane) {
          const bool split = rope.pairing == QKCTS_HALF_SPLIT;
          const std::int64_t half = rotated / 2;
          const bool first = split ? lane < half : lane % 2 == 0;
          const std::int64_t pair = split ? lane % half : lane / 2;
          const std::int64_t partner = split ? (first ? lane + half : lane - half) : (first ? lane + 1 : lane - 1);
          const double position = positions.get(static_cast<std::size_t>(b * e.length + t));
          double c = 0, s = 0;
          if (more.angles == QKCTS_ANGLES_COMPUTED) {
            c = std::cos(position * radians(sample.terms, rotated, pair));
            s = std::sin(position * radians(sample.terms, rotated, pair));
          } else {
            const std::vector<std::int64_t>& table = sample.inputs[sample_cos].shape();
            const std::int64_t before = table.size() == 3 ? h * table[1] : 0;
            const auto entry = static_cast<std::size_t>((before + static_cast<std::int64_t>(position)) * half + pair);
            c = sample.inputs[sample_cos].get(entry);
            s = sample.inputs[sample_sin].get(entry);
          }
          const double turn = more.sense == QKCTS_SENSE_NEGATIVE ? -s : s;
          const double self = x[e.at(b, h, t, start + lane)], other = x[e.at(b, h, t, start + partner)];
          const bool moved = more.layout == QKCTS_LAYOUT_DEINTERLEAVED;
          const std::int64_t to = moved ? pair + (first ? 0 : half) : lane;
          const double own = rn(points.rope_product, self * (stretch * c));
          const double others = rn(points.rope_product, other * (stretch * turn));
          y[e.at(b, h, t, start + to)] = rn(points.rope, first ? own - others : own + others);
        }
  return y;
}

// [B, L, E] through its norm and the matrix: [B, H, L, D].
PlainVectors projected(const SampleCase& sample, std::size_t side, const PlainExtents& to) {
  const qkcts_projection& terms = sample.terms.projection;
  const SampleTensor& weight = sample.inputs[sample_q_weight + side];
  const std::int64_t width = weight.shape()[0], columns = to.heads * to.dim;
  const PlainExtents rows{to.batch, 1, to.length, width};
  PlainVectors x = sample.inputs[sample_q_x + side].values();
  const qkcts_norm& norm = side == 0 ? terms.q_input : terms.k_input;
  const std::size_t gain = side == 0 ? sample_q_x_gain : sample_k_x_gain;
  const qkcts_rounding& rounding = sample.terms.rounding;
  const qkcts_input_rounding& points = side == 0 ? rounding.q_input : rounding.k_input;
  qkcts_vector_rounding inner{};
  inner.unit = points.unit;
  if (norm.applied != 0) {
    x = normed(sample, x, rows, norm, sample.inputs[gain], sample.inputs[gain + 1], inner);
    for (double& value : x) value = plain_rounded(sample.terms, points.norm, value);
  }
  PlainVectors y(static_cast<std::size_t>(to.batch * to.length * columns));
  for (std::int64_t b = 0; b < to.batch; ++b)
    for (std::int64_t t = 0; t < to.length; ++t)
      for (std::int64_t column = 0; column < columns; ++column) {
        double sum = 0;
        for (std::int64_t e = 0; e < width; ++e)
          sum += x[rows.at(b, 0, t, e)] * weight.get(static_cast<std::size_t>(e * columns + column));
        if (terms.bias != 0) sum += sample.inputs[sample_q_weight_bias + side].get(static_cast<std::size_t>(column));
        y[to.at(b, column / to.dim, t, column % to.dim)] =
            plain_rounded(sample.terms, (side == 0 ? rounding.q : rounding.k).projection, sum);
      }
  return y;
}

// Clamps, norm and multiplier of one side.
PlainVectors transformed(const SampleCase& sample, PlainVectors x, const PlainExtents& e, const qkcts_norm& norm,
                         const qkcts_norm_range& range, std::size_t gain, std::size_t bias,
                         const qkcts_vector_rounding& points) {
  clip(x, range.clip_before);
  if (norm.applied != 0) x = normed(sample, x, e, norm, sample.inputs[gain], sample.inputs[bias], points);
  for (double& value : x) value *= range.multiplier == 0 ? 1 : range.multiplier;
  clip(x, range.clip_after);
  for (double& value : x) value = plain_rounded(sample.terms, points.norm, value);
  return x;
}

}  // namespace

PlainVectors plain_side(const SampleCase& sample, std::size_t side, StageValues& stages) {
  const qkcts_contract& terms = sample.terms;
  const qkcts_shape& s = sample.shape;
  const PlainExtents extents = side == 0 ? PlainExtents{s.batch, s.q_heads, s.q_len, s.head_dim}
                                         : PlainExtents{s.batch, s.kv_heads, s.k_len, s.head_dim};
  const qkcts_vector_rounding& points = side == 0 ? terms.rounding.q : terms.rounding.k;
  PlainVectors x;
  if (terms.projection.form == QKCTS_PROJECTION_NONE) {
    x = sample.inputs[sample_q + side].values();
  } else {
    x = stages[QKCTS_STAGE_Q_PROJ + side] = projected(sample, side, extents);
  }
  for (const std::uint32_t step : {QKCTS_ROPE_THEN_NORM, QKCTS_ROPE_NONE, QKCTS_NORM_THEN_ROPE}) {
    if (step == QKCTS_ROPE_NONE) {
      x = transformed(sample, x, extents, side == 0 ? terms.q_norm : terms.k_norm,
                      side == 0 ? terms.q_range : terms.k_range, sample_q_gain + side, sample_q_bias + side, points);
      stages[QKCTS_STAGE_Q_NORM + side] = x;
    } else if (terms.rope.order == step) {
      x = roped(x, extents, sample, sample.inputs[sample_q_positions + side], points);
      stages[QKCTS_STAGE_Q_ROPE + side] = x;
    }
  }
  return x;
}

PlainVectors plain_values(const SampleCase& sample, StageValues& stages) {
  const qkcts_shape& s = sample.shape;
  const PlainExtents extents{s.batch, s.kv_heads, s.k_len, s.v_head_dim};
  const qkcts_contract& terms = sample.terms;
  return stages[QKCTS_STAGE_V_NORM] = transformed(sample, sample.inputs[sample_v].values(), extents, terms.v_norm,
                                                  terms.v_range, sample_v_gain, sample_v_bias, terms.rounding.v);
}

}  // namespace qkcts
