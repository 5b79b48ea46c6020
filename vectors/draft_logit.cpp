// SPDX-License-Identifier: Apache-2.0
// What acts on the scores of a draft beside q and k: scale, slopes, sinks; and scores of a wanted size.
#include <algorithm>
#include <cmath>

#include "conformance/sound_math.hpp"
#include "vectors/family_draft.hpp"

namespace qkcts {
namespace {

// ln x and e^x by + - * / alone, and rounded far above their error: the same numbers on every machine, and after any
// change of the functions behind them.
double rounded(double x) {
  return std::floor(x * 0x1p20 + 0.5) * 0x1p-20;
}
double logarithm(double x) {
  return rounded(x >= 1 ? log_upper(x) : -log_upper(1 / x));
}
double exponential(double x) {
  return rounded(exp_upper(x));
}

// From here on exp(cap) is no scale that a model has, and the tensor stays below it.
constexpr double largest_usual_cap = 8;

std::vector<double> ordinary_scale(const Draft& draft) {
  const qkcts_logits& logits = draft.contract.terms.logits;
  const RandomStream stream = draft.stream(Draw::scale);
  const bool per_head = logits.scale_axes == QKCTS_SCALE_PER_HEAD;
  const auto entries = static_cast<std::uint64_t>(per_head ? draft.shape.q_heads : 1);
  std::vector<double> scale;
  for (std::uint64_t h = 0; h < entries; ++h) {
    if (logits.scale_exp_cap > largest_usual_cap) {
      scale.push_back(stream.uniform(h, 1, 3));
    } else if (logits.scale_exp_cap > 0) {  // even heads below the cap, odd ones above
      scale.push_back(logits.scale_exp_cap + (h % 2 == 0 ? -1 : 1) * stream.uniform(h, 0.25, 1.25));
    } else {
      // A scale of one is that of a cosine; beside other norms a scale per head keeps the scores of that size.
      scale.push_back(stream.uniform(h, 5, 9) / (per_head ? draft.aligned_score() : 1));
    }
  }
  return scale;
}

// m in [2^-8, 1), no two heads in one binade, with a full odd significand: slope times distance rounds.
std::vector<double> ordinary_slopes(const Draft& draft) {
  const int precision = parameters(accumulator_format(draft.format)).precision;
  const RandomStream stream = draft.stream(Draw::slope);
  const std::vector<std::uint32_t> order = stream.permutation(static_cast<std::uint32_t>(draft.shape.q_heads));
  std::vector<double> slopes;
  for (std::uint64_t h = 0; h < order.size(); ++h) {
    const std::uint64_t top = std::uint64_t{1} << static_cast<unsigned>(precision - 1);
    const std::uint64_t odd = top + 2 * stream.below(h, top / 2) + 1;
    slopes.push_back(std::ldexp(static_cast<double>(odd), -precision - static_cast<int>(order[h] % 8)));
  }
  return slopes;
}

// About as large as the largest scores of a row, in every head another.
std::vector<double> ordinary_sinks(const Draft& draft) {
  const auto heads = static_cast<std::uint32_t>(draft.shape.q_heads);
  const RandomStream stream = draft.stream(Draw::sink);
  const std::vector<std::uint32_t> order = stream.permutation(heads);
  std::vector<double> sinks;
  for (std::uint32_t h = 0; h < heads; ++h) {
    const double low = 1 + 2.0 * order[h] / heads;
    sinks.push_back(draft.ordinary_score(h) * stream.uniform(h, low, low + 1.0 / heads));
  }
  return sinks;
}

}  // namespace

void draw_ordinary_logits(Draft& draft) {
  draft.scale = ordinary_scale(draft);
  if (draft.contract.terms.logits.alibi != QKCTS_ALIBI_NONE) draft.alibi_slopes = ordinary_slopes(draft);
  if (draft.contract.terms.softmax.sink != QKCTS_SINK_NONE) draft.sink = ordinary_sinks(draft);
}

double Draft::aligned_score() const {
  const qkcts_score& score = contract.terms.score;
  const auto lanes = static_cast<double>(shape.head_dim);
  double unit = lanes / (score.temperature > 0 ? score.temperature : 1);  // aligned rows of rms 1
  if (score.scale_form == QKCTS_SCALE_INV_SQRT_HEAD_DIM) unit /= std::sqrt(lanes);
  if (score.scale_form == QKCTS_SCALE_CONSTANT) unit *= score.scale_value;
  if (score.scale_form == QKCTS_SCALE_INV_SQRT_SCALAR) unit /= std::sqrt(score.scale_value);
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const qkcts_norm& n = norm(side);
    const double width = n.axis == QKCTS_AXIS_FULL_WIDTH ? lanes * static_cast<double>(heads(side)) : lanes;
    if (n.applied != 0 && n.statistic == QKCTS_SUM_SQUARE) unit /= std::sqrt(width);
    if (range(side).multiplier > 0) unit *= range(side).multiplier;
  }
  return unit;
}

double Draft::ordinary_score(std::int64_t h) const {
  const double size = aligned_score() / std::sqrt(static_cast<double>(shape.head_dim));
  if (contract.terms.score.scale_form != QKCTS_SCALE_LEARNED_SCALAR) return size;
  const double entry = scale[static_cast<std::size_t>(h) % scale.size()];
  const double cap = contract.terms.logits.scale_exp_cap;
  return size * (cap > 0 ? exponential(std::min(entry, cap)) : entry);
}

void Draft::set_scale(double factor) {
  const double cap = contract.terms.logits.scale_exp_cap;
  std::fill(scale.begin(), scale.end(), cap > 0 ? logarithm(factor) : factor);
}

double Draft::largest_vector() const {
  const qkcts_rounding& rounding = contract.terms.rounding;
  double top = parameters(format).largest;
  for (const qkcts_vector_rounding& side : {rounding.q, rounding.k})
    for (const std::uint32_t point : {side.projection, side.unit, side.norm, side.rope_product, side.rope})
      if (point != 0) top = std::min(top, parameters(static_cast<Format>(point)).largest);
  return rounding.scaled_q == 0 ? top : std::min(top, parameters(static_cast<Format>(rounding.scaled_q)).largest);
}

bool Draft::fit_score(double size) {
  const qkcts_score& score = contract.terms.score;
  for (const std::uint32_t point : {contract.terms.rounding.scores, contract.terms.rounding.capped})
    if (point != 0 && 2 * size > parameters(static_cast<Format>(point)).largest) return false;
  for (const DraftSide side : {DraftSide::query, DraftSide::key})
    if (range(side).clip_before > 0 || range(side).clip_after > 0) return false;
  const double factor = size / aligned_score();
  bool open[2] = {};
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    const qkcts_norm& n = norm(side);
    if (n.applied != 0) set_gain(side, 1);
    open[static_cast<int>(side)] = n.applied == 0 || n.gain != QKCTS_GAIN_NONE;
  }
  if (score.scale_form == QKCTS_SCALE_LEARNED_SCALAR) {
    set_scale(factor);
    const double cap = contract.terms.logits.scale_exp_cap;
    return factor <= parameters(format).largest && (cap == 0 || logarithm(factor) < cap);
  }
  if (!open[0] && !open[1]) return false;
  const double share = open[0] && open[1] ? std::sqrt(factor) : factor;
  for (const DraftSide side : {DraftSide::query, DraftSide::key}) {
    if (!open[static_cast<int>(side)]) continue;
    if (norm(side).applied != 0) {
      set_gain(side, share);
    } else {
      (side == DraftSide::query ? q_amplitude : k_amplitude) = share;
    }
  }
  return share * 8 <= largest_vector();
}

void Draft::amplify() {
  for (double& x : q) x *= q_amplitude;
  for (double& x : k) x *= k_amplitude;
}

}  // namespace qkcts
