// SPDX-License-Identifier: Apache-2.0
#include "adapters/plain_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkcts {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

using Vectors = std::vector<double>;  // [B, heads, length, D]

struct Extents {
  std::int64_t batch, heads, length, dim;
  std::size_t at(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d) const {
    return static_cast<std::size_t>(((b * heads + h) * length + t) * dim + d);
  }
};

double parameter(const SampleTensor& tensor, std::uint32_t axes, const Extents& x, std::int64_t h, std::int64_t d) {
  const std::int64_t index = axes == QKCTS_AXES_SCALAR     ? 0
                             : axes == QKCTS_AXES_HEAD     ? h
                             : axes == QKCTS_AXES_HEAD_DIM ? d
                                                           : h * x.dim + d;
  return tensor.get(static_cast<std::size_t>(index));
}

Vectors normed(const Vectors& x, const Extents& e, const qkcts_norm& norm, const SampleTensor& gain,
               const SampleTensor& bias) {
  Vectors y(x.size());
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
          y[e.at(b, h, t, d)] = (x[e.at(b, h, t, d)] - mean) / divisor[norm.root] * factor + shift;
        }
      }
  return y;
}

Vectors roped(const Vectors& x, const Extents& e, const qkcts_rope& rope, const SampleCase& sample,
              const SampleTensor& positions) {
  const std::int64_t rotated = rope.rotated == 0 ? e.dim : rope.rotated;
  const std::int64_t start = rope.span == QKCTS_SPAN_LAST ? e.dim - rotated : 0;
  Vectors y = x;
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
          const std::size_t entry =
              static_cast<std::size_t>(position) * static_cast<std::size_t>(half) + static_cast<std::size_t>(pair);
          const double c = sample.inputs[sample_cos].get(entry), s = sample.inputs[sample_sin].get(entry);
          const double self = x[e.at(b, h, t, start + lane)], other = x[e.at(b, h, t, start + partner)];
          y[e.at(b, h, t, start + lane)] = self * c + (first ? -other : other) * s;
        }
  return y;
}

bool is_visible(const SampleCase& sample, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k, double bias) {
  const qkcts_mask& mask = sample.terms.mask;
  const qkcts_shape& s = sample.shape;
  const double len =
      sample.inputs[sample_kv_len].present() ? sample.inputs[sample_kv_len].get(static_cast<std::size_t>(b)) : 0;
  const double offsets[] = {0, static_cast<double>(s.k_len - s.q_len), len - static_cast<double>(s.q_len),
                            static_cast<double>(mask.offset)};
  const double distance = static_cast<double>(k) - (static_cast<double>(t) + offsets[mask.alignment]);
  bool visible = bias != -infinity;
  visible = visible && !(mask.causal != 0 && distance > 0);
  visible = visible && !(mask.kv_lengths != 0 && static_cast<double>(k) >= len);
  if (mask.has_window != 0) {
    visible = visible && !(mask.window_left >= 0 && distance < -static_cast<double>(mask.window_left));
    visible = visible && !(mask.window_right >= 0 && distance > static_cast<double>(mask.window_right));
  }
  if (mask.boolean != 0) {
    const SampleTensor& given = sample.inputs[sample_mask];
    const std::int64_t bb = given.shape()[0] == 1 ? 0 : b, hh = given.shape()[1] == 1 ? 0 : h;
    visible =
        visible && given.get(static_cast<std::size_t>(((bb * given.shape()[1] + hh) * s.q_len + t) * s.k_len + k)) != 0;
  }
  return visible;
}

double scale_of(const SampleCase& sample) {
  const qkcts_score& score = sample.terms.score;
  const double forms[] = {1 / std::sqrt(static_cast<double>(sample.shape.head_dim)), score.scale_value,
                          1 / std::sqrt(score.scale_value),
                          sample.inputs[sample_scale].present() ? sample.inputs[sample_scale].get(0) : 0};
  return forms[score.scale_form] / (score.temperature == 0 ? 1 : score.temperature);
}

}  // namespace

StageValues plain_attention(const SampleCase& sample) {
  const qkcts_contract& terms = sample.terms;
  const qkcts_shape& s = sample.shape;
  StageValues stages;
  Vectors sides[2] = {sample.inputs[sample_q].values(), sample.inputs[sample_k].values()};
  const Extents extents[2] = {{s.batch, s.q_heads, s.q_len, s.head_dim}, {s.batch, s.kv_heads, s.k_len, s.head_dim}};
  const qkcts_norm* norms[2] = {&terms.q_norm, &terms.k_norm};
  for (std::size_t i = 0; i < 2; ++i) {
    for (const std::uint32_t step : {QKCTS_ROPE_THEN_NORM, QKCTS_ROPE_NONE, QKCTS_NORM_THEN_ROPE}) {
      if (step == QKCTS_ROPE_NONE) {
        if (norms[i]->applied == 0) continue;
        sides[i] =
            normed(sides[i], extents[i], *norms[i], sample.inputs[sample_q_gain + i], sample.inputs[sample_q_bias + i]);
        stages[QKCTS_STAGE_Q_NORM + i] = sides[i];
      } else if (terms.rope.order == step) {
        sides[i] = roped(sides[i], extents[i], terms.rope, sample, sample.inputs[sample_q_positions + i]);
        stages[QKCTS_STAGE_Q_ROPE + i] = sides[i];
      }
    }
  }

  const double tau = scale_of(sample), cap = terms.score.softcap;
  const Vectors values = sample.inputs[sample_v].values();
  const Extents value_extents{s.batch, s.kv_heads, s.k_len, s.v_head_dim};
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.q_heads; ++h)
      for (std::int64_t t = 0; t < s.q_len; ++t) {
        const std::int64_t kv = h * s.kv_heads / s.q_heads;
        Vectors masked;
        for (std::int64_t k = 0; k < s.k_len; ++k) {
          double bias = 0;
          if (terms.score.bias_order != QKCTS_BIAS_NONE) {
            const SampleTensor& given = sample.inputs[sample_bias];
            const std::int64_t bb = given.shape()[0] == 1 ? 0 : b, hh = given.shape()[1] == 1 ? 0 : h;
            bias = given.get(static_cast<std::size_t>(((bb * given.shape()[1] + hh) * s.q_len + t) * s.k_len + k));
          }
          double dot = 0;
          for (std::int64_t d = 0; d < s.head_dim; ++d)
            dot += sides[0][extents[0].at(b, h, t, d)] * sides[1][extents[1].at(b, kv, k, d)];
          const double score = tau * dot;
          double capped = score + (terms.score.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP ? bias : 0);
          if (cap > 0) capped = cap * std::tanh(capped / cap);
          capped += terms.score.bias_order == QKCTS_BIAS_AFTER_SOFTCAP ? bias : 0;
          const bool visible = is_visible(sample, b, h, t, k, bias);
          stages[QKCTS_STAGE_SCORES].push_back(visible ? score : nan);
          stages[QKCTS_STAGE_CAPPED].push_back(visible ? capped : nan);
          masked.push_back(visible ? capped : -infinity);
        }
        stages[QKCTS_STAGE_MASKED].insert(stages[QKCTS_STAGE_MASKED].end(), masked.begin(), masked.end());
        const double largest = *std::max_element(masked.begin(), masked.end());
        double sum = 0;
        for (const double m : masked) sum += std::exp(m - (largest == -infinity ? 0 : largest));
        const std::uint32_t rule = terms.mask.empty_row;
        const bool empty = largest == -infinity;
        stages[QKCTS_STAGE_LSE].push_back(empty && rule == QKCTS_EMPTY_NAN ? nan : largest + std::log(sum));
        Vectors out(static_cast<std::size_t>(s.v_head_dim), 0.0);
        for (std::int64_t k = 0; k < s.k_len; ++k) {
          double p = std::exp(masked[static_cast<std::size_t>(k)] - largest) / sum;
          if (empty)
            p = rule == QKCTS_EMPTY_ZERO ? 0 : rule == QKCTS_EMPTY_NAN ? nan : 1 / static_cast<double>(s.k_len);
          stages[QKCTS_STAGE_PROBS].push_back(p);
          for (std::int64_t d = 0; d < s.v_head_dim; ++d)
            out[static_cast<std::size_t>(d)] += p * values[value_extents.at(b, kv, k, d)];
        }
        stages[QKCTS_STAGE_OUTPUT].insert(stages[QKCTS_STAGE_OUTPUT].end(), out.begin(), out.end());
      }
  return stages;
}

double worst_difference(const std::vector<double>& got, const std::vector<double>& want, NanRule rule) {
  if (got.size() != want.size()) return infinity;
  double size = 1;
  for (const double w : want)
    if (std::isfinite(w)) size = std::max(size, std::fabs(w));
  double worst = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      if (rule == NanRule::must_match && !std::isnan(got[i])) return infinity;
    } else if (std::isfinite(want[i]) && std::isfinite(got[i])) {
      worst = std::max(worst, std::fabs(got[i] - want[i]) / size);
    } else if (got[i] != want[i]) {
      return infinity;
    }
  }
  return worst;
}

}  // namespace qkcts
