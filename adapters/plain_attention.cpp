// SPDX-License-Identifier: Apache-2.0
#include "adapters/plain_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "adapters/plain_rounding.hpp"
#include "adapters/plain_vectors.hpp"

namespace qkcts {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Of a tensor [B or 1, Hq or 1, Lq, Lk].
double broadcast(const SampleTensor& given, const qkcts_shape& s, std::int64_t b, std::int64_t h, std::int64_t t,
                 std::int64_t k) {
  const std::int64_t bb = given.shape()[0] == 1 ? 0 : b, hh = given.shape()[1] == 1 ? 0 : h;
  return given.get(static_cast<std::size_t>(((bb * given.shape()[1] + hh) * s.q_len + t) * s.k_len + k));
}

double entry(const SampleCase& sample, SampleInput input, std::int64_t index) {
  return sample.inputs[input].get(static_cast<std::size_t>(index));
}

// Keys from query (b, t) to key k; negative: behind.
double distance(const SampleCase& sample, std::int64_t b, std::int64_t t, std::int64_t k) {
  const qkcts_shape& s = sample.shape;
  const double len = sample.inputs[sample_kv_len].present() ? entry(sample, sample_kv_len, b) : 0;
  const double offsets[] = {0, static_cast<double>(s.k_len - s.q_len), len - static_cast<double>(s.q_len),
                            static_cast<double>(sample.terms.mask.offset)};
  return static_cast<double>(k) - (static_cast<double>(t) + offsets[sample.terms.mask.alignment]);
}

// Everything by which <q, k> is multiplied.
double scale_of(const SampleCase& sample, std::int64_t b, std::int64_t h, std::int64_t t) {
  const qkcts_score& score = sample.terms.score;
  const qkcts_logits& logits = sample.terms.logits;
  double learned = 0;
  if (sample.inputs[sample_scale].present()) {
    learned = entry(sample, sample_scale, logits.scale_axes == QKCTS_SCALE_PER_HEAD ? h : 0);
    if (logits.scale_exp_cap > 0) learned = std::fmin(std::exp(logits.scale_exp_cap), std::exp(learned));
  }
  const double forms[] = {1 / std::sqrt(static_cast<double>(sample.shape.head_dim)), score.scale_value,
                          1 / std::sqrt(score.scale_value), learned};
  double scale = forms[score.scale_form] / (score.temperature == 0 ? 1 : score.temperature);
  if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_LOG) {
    const double p = entry(sample, sample_q_positions, b * sample.shape.q_len + t);
    scale *= 1 + logits.query_alpha * std::log(1 + std::floor((p + logits.query_shift) / logits.query_period));
  }
  if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_LOG_RATIO) {
    const double p = entry(sample, sample_q_positions, b * sample.shape.q_len + t);
    scale *= 1 + logits.query_alpha * std::fmax(std::log((p + logits.query_shift) / logits.query_period), 0);
  }
  return scale;
}

double alibi(const SampleCase& sample, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) {
  if (sample.terms.logits.alibi == QKCTS_ALIBI_NONE) return 0;
  const double away = distance(sample, b, t, k);
  const double forms[] = {0, away, -std::fabs(away), static_cast<double>(k - sample.shape.k_len + 1)};
  return entry(sample, sample_alibi_slopes, h) * forms[sample.terms.logits.alibi];
}

// The value after cap, bias and linear bias.
double capped_of(const SampleCase& sample, double score, double bias, double linear) {
  const qkcts_score& terms = sample.terms.score;
  double capped = score + (terms.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP ? bias : 0);
  if (terms.softcap > 0) capped = terms.softcap * std::tanh(capped / terms.softcap);
  return capped + (terms.bias_order == QKCTS_BIAS_AFTER_SOFTCAP ? bias : 0) + linear;
}

// Rows of keys that nobody sees are free.
void free_hidden_rows(const SampleCase& sample, StageValues& stages) {
  const qkcts_shape& s = sample.shape;
  for (const qkcts_stage stage : {QKCTS_STAGE_K_NORM, QKCTS_STAGE_K_ROPE, QKCTS_STAGE_V_NORM}) {
    const std::int64_t width = stage == QKCTS_STAGE_V_NORM ? s.v_head_dim : s.head_dim;
    const PlainExtents extents{s.batch, s.kv_heads, s.k_len, width};
    for (std::int64_t b = 0; b < s.batch && !stages[stage].empty(); ++b)
      for (std::int64_t k = 0; k < s.k_len; ++k)
        for (std::int64_t h = 0; h < s.kv_heads && !plain_seen(sample, b, k); ++h)
          for (std::int64_t d = 0; d < width; ++d) stages[stage][extents.at(b, h, k, d)] = nan;
  }
}

// Softmax and output of one row; `masked` is -infinity at hidden keys.
void finish_row(const SampleCase& sample, const PlainVectors& values, const std::vector<double>& masked, std::int64_t b,
                std::int64_t h, StageValues& stages) {
  const qkcts_shape& s = sample.shape;
  const qkcts_softmax& softmax = sample.terms.softmax;
  const std::uint32_t rule = sample.terms.mask.empty_row;
  const bool tile = sample.terms.heads.mapping == QKCTS_HEADS_TILE;
  const std::int64_t kv = tile ? h % s.kv_heads : h * s.kv_heads / s.q_heads;
  const double ln_base = softmax.base == QKCTS_BASE_TWO ? std::log(2.0) : 1;
  const double ln_returned = softmax.lse_base == QKCTS_BASE_TWO ? std::log(2.0) : 1;
  const bool column = softmax.sink == QKCTS_SINK_COLUMN;
  const double sink = softmax.sink != QKCTS_SINK_NONE ? entry(sample, sample_sink, h) : -infinity;

  double largest = *std::max_element(masked.begin(), masked.end());
  const bool nothing_seen = largest == -infinity;
  if (column) largest = std::fmax(largest, sink);
  const bool empty = largest == -infinity;
  double sum = column ? std::exp(ln_base * (sink - largest)) : 0;
  for (const double m : masked) sum += std::exp(ln_base * (m - (empty ? 0 : largest)));
  const double lse = ln_base * largest + std::log(sum);
  stages[QKCTS_STAGE_LSE].push_back(empty && rule == QKCTS_EMPTY_NAN ? nan : lse / ln_returned);

  const double factor = softmax.sink == QKCTS_SINK_POST_SCALE && !empty ? 1 / (1 + std::exp(sink - lse)) : 1;
  std::vector<double> out(static_cast<std::size_t>(s.v_head_dim), 0.0);
  for (std::int64_t k = 0; k < s.k_len; ++k) {
    double p = std::exp(ln_base * (masked[static_cast<std::size_t>(k)] - largest)) / sum;
    if (empty) p = rule == QKCTS_EMPTY_ZERO ? 0 : rule == QKCTS_EMPTY_NAN ? nan : 1 / static_cast<double>(s.k_len);
    p = plain_rounded(sample.terms, sample.terms.rounding.probs, p);
    stages[QKCTS_STAGE_PROBS].push_back(p);
    // Excluded: not multiplied by 0.
    const bool hidden = masked[static_cast<std::size_t>(k)] == -infinity && !(nothing_seen && empty && p != 0) &&
                        softmax.hidden_values != QKCTS_HIDDEN_PROPAGATED;
    const std::int64_t row = ((b * s.kv_heads + kv) * s.k_len + k) * s.v_head_dim;
    for (std::int64_t d = 0; d < s.v_head_dim && !hidden; ++d)
      out[static_cast<std::size_t>(d)] += p * values[static_cast<std::size_t>(row + d)];
  }
  for (double& o : out) o = plain_rounded(sample.terms, sample.terms.rounding.output, factor * o);
  stages[QKCTS_STAGE_OUTPUT].insert(stages[QKCTS_STAGE_OUTPUT].end(), out.begin(), out.end());
}

}  // namespace

bool plain_visible(const SampleCase& sample, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) {
  const qkcts_mask& mask = sample.terms.mask;
  const qkcts_regions& regions = sample.terms.regions;
  const qkcts_shape& s = sample.shape;
  const double away = distance(sample, b, t, k), key = static_cast<double>(k);
  bool visible = true;
  if (mask.causal != 0) visible = away <= 0 || (regions.prefix != 0 && key < entry(sample, sample_prefix_len, b));
  if (regions.chunk > 0) {
    const double chunk = static_cast<double>(regions.chunk);
    visible = visible && std::floor(key / chunk) == std::floor((key - away) / chunk);
  }
  if (regions.documents != 0)
    visible = visible &&
              entry(sample, sample_q_documents, b * s.q_len + t) == entry(sample, sample_k_documents, b * s.k_len + k);
  if (mask.kv_lengths != 0) visible = visible && key < entry(sample, sample_kv_len, b);
  if (mask.has_window != 0) {
    visible = visible && !(mask.window_left >= 0 && away < -static_cast<double>(mask.window_left));
    visible = visible && !(mask.window_right >= 0 && away > static_cast<double>(mask.window_right));
  }
  if (mask.boolean != 0) visible = visible && broadcast(sample.inputs[sample_mask], s, b, h, t, k) != 0;
  if (sample.terms.score.bias_order != QKCTS_BIAS_NONE)
    visible = visible && broadcast(sample.inputs[sample_bias], s, b, h, t, k) != -infinity;
  return visible;
}

bool plain_seen(const SampleCase& sample, std::int64_t b, std::int64_t k) {
  for (std::int64_t h = 0; h < sample.shape.q_heads; ++h)
    for (std::int64_t t = 0; t < sample.shape.q_len; ++t)
      if (plain_visible(sample, b, h, t, k)) return true;
  return false;
}

StageValues plain_attention(const SampleCase& sample) {
  const qkcts_contract& terms = sample.terms;
  const qkcts_shape& s = sample.shape;
  StageValues stages;
  const PlainVectors queries = plain_side(sample, 0, stages), keys = plain_side(sample, 1, stages);
  const PlainVectors values = plain_values(sample, stages);
  const PlainExtents q_at{s.batch, s.q_heads, s.q_len, s.head_dim}, k_at{s.batch, s.kv_heads, s.k_len, s.head_dim};
  const bool tile = terms.heads.mapping == QKCTS_HEADS_TILE;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.q_heads; ++h)
      for (std::int64_t t = 0; t < s.q_len; ++t) {
        const std::int64_t kv = tile ? h % s.kv_heads : h * s.kv_heads / s.q_heads;
        std::vector<double> masked;
        for (std::int64_t k = 0; k < s.k_len; ++k) {
          const bool biased = terms.score.bias_order != QKCTS_BIAS_NONE;
          const double bias = biased ? broadcast(sample.inputs[sample_bias], s, b, h, t, k) : 0;
          const qkcts_rounding& points = terms.rounding;
          const double scale = scale_of(sample, b, h, t);
          double dot = 0;
          for (std::int64_t d = 0; d < s.head_dim; ++d) {
            const double q = queries[q_at.at(b, h, t, d)];
            dot += (points.scaled_q != 0 ? plain_rounded(terms, points.scaled_q, scale * q) : q) *
                   keys[k_at.at(b, kv, k, d)];
          }
          dot = plain_rounded(terms, points.product, dot);
          const double score = plain_rounded(terms, points.scores, points.scaled_q != 0 ? dot : scale * dot);
          const double capped =
              plain_rounded(terms, points.capped, capped_of(sample, score, bias, alibi(sample, b, h, t, k)));
          const bool visible = plain_visible(sample, b, h, t, k);
          stages[QKCTS_STAGE_SCORES].push_back(visible ? score : nan);
          stages[QKCTS_STAGE_CAPPED].push_back(visible ? capped : nan);
          masked.push_back(visible ? capped : -infinity);
        }
        stages[QKCTS_STAGE_MASKED].insert(stages[QKCTS_STAGE_MASKED].end(), masked.begin(), masked.end());
        finish_row(sample, values, masked, b, h, stages);
      }
  if (terms.softmax.hidden_values == QKCTS_HIDDEN_EXCLUDED) free_hidden_rows(sample, stages);
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
