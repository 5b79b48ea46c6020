// SPDX-License-Identifier: Apache-2.0
// All stages of a case at one precision. Normalised and rotated vectors and the columns of v are kept once made, so a
// level that is asked for a single row stays cheap.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reference/case_values.hpp"
#include "reference/integer_dot.hpp"
#include "reference/norm.hpp"
#include "reference/real.hpp"
#include "reference/rope.hpp"
#include "reference/score.hpp"
#include "reference/softmax.hpp"

namespace qkcts {

enum class KeySet : std::uint8_t { visible, all };

// The stages of one group of q or k; its heads stand one after another.
template <unsigned Digits>
struct GroupEnclosures {
  std::vector<Enclosure<Digits>> normed, roped;  // empty if the stage does not exist
  bool usable = false;                           // false: the root may be 0 at this precision, nothing is known
};

template <unsigned Digits>
struct RowEnclosures {
  bool usable = false;
  std::vector<Enclosure<Digits>> scores, capped;  // of every key asked for; capped is empty if there is no such stage
  std::vector<Enclosure<Digits>> probs;           // one per visible key
  SoftmaxRow<Digits> softmax;
  std::vector<Enclosure<Digits>> output;

  const Enclosure<Digits>& seen(std::size_t key) const { return capped.empty() ? scores[key] : capped[key]; }
};

template <unsigned Digits>
class Level {
 public:
  using Number = Enclosure<Digits>;

  // `rows` are all rows of the case, in order.
  Level(const CaseValues& values, const std::vector<RowPlace>& rows) : values_(values), rows_(rows) {
    for (std::int64_t h = 0; h < (values.terms.logits.scale_axes == QKCTS_SCALE_PER_HEAD ? values.shape.q_heads : 1);
         ++h)
      tau_.push_back(score_factor<Digits>(values, h));
    limbs_ = static_cast<int>((precision_bits<Digits>() + 63) / 64);
    operands_[0].resize(static_cast<std::size_t>(values.q.batch * values.q.heads * values.q.length));
    operands_[1].resize(static_cast<std::size_t>(values.k.batch * values.k.heads * values.k.length));
  }

  // Makes the stages of a group and keeps its operands of the score.
  GroupEnclosures<Digits> evaluate_group(Side side, std::int64_t group);

  void evaluate_row(std::size_t row, KeySet keys, RowEnclosures<Digits>& result);

 private:
  using Waves = std::vector<std::pair<Number, Number>>;  // cosine and sine of every pair

  const Waves& waves(std::uint32_t position);
  void turn(std::span<Number> head, std::uint32_t position);
  Number factor(const RowPlace& place) const;
  const ScaledVector* operand(Side side, std::int64_t row);
  const std::vector<ScaledVector>& columns(std::int64_t b, std::int64_t kv_head);
  bool set_scores(const RowPlace& place, KeySet keys, RowEnclosures<Digits>& result);
  void set_output(const RowPlace& place, RowEnclosures<Digits>& result);

  const CaseValues& values_;
  const std::vector<RowPlace>& rows_;
  std::vector<Number> tau_;               // of every head, or one for all
  std::vector<Number> frequencies_;       // under computed angles
  std::map<std::uint32_t, Waves> waves_;  // of every position that was asked for
  int limbs_ = 0;
  std::vector<std::optional<ScaledVector>> operands_[2];
  std::int64_t columns_of_ = -1;  // b * Hkv + kv_head
  std::vector<ScaledVector> columns_;
  ScaledVector weights_;
  std::vector<ScaledVector::Ends> ends_;
};

template <unsigned Digits>
const typename Level<Digits>::Waves& Level<Digits>::waves(std::uint32_t position) {
  const auto [place, is_new] = waves_.try_emplace(position);
  if (!is_new) return place->second;
  const RopeFrequencies& frequencies = *values_.frequencies;
  const Number attention_factor(frequencies.attention_factor());
  for (std::int64_t i = 0; i < frequencies.pairs(); ++i) {
    if (frequencies_.size() == static_cast<std::size_t>(i))
      frequencies_.push_back(frequencies.template frequency<Digits>(i));
    const Number angle = frequencies_[static_cast<std::size_t>(i)] * Number(static_cast<double>(position));
    place->second.emplace_back(attention_factor * wave_of(angle, Wave::cosine),
                               attention_factor * wave_of(angle, Wave::sine));
  }
  return place->second;
}

template <unsigned Digits>
void Level<Digits>::turn(std::span<Number> head, std::uint32_t position) {
  if (!values_.frequencies) return rotate(head, values_, TableWaves<Number>{values_, position});
  const Waves& known = waves(position);
  rotate(head, values_, [&known](std::int64_t i) { return known[static_cast<std::size_t>(i)]; });
}

template <unsigned Digits>
GroupEnclosures<Digits> Level<Digits>::evaluate_group(Side which, std::int64_t group) {
  const SideValues& side = values_.side(which);
  const qkcts_rope& rope = values_.terms.rope;
  const auto width = static_cast<std::size_t>(side.head_dim);
  std::vector<Number> x;
  for (std::int64_t member = 0; member < side.heads_in_group(); ++member)
    for (const double entry : side.row(side.row_of(group, member))) x.emplace_back(entry);

  GroupEnclosures<Digits> result;
  const auto turn_all = [&] {
    for (std::int64_t member = 0; member < side.heads_in_group(); ++member)
      turn(std::span(x).subspan(static_cast<std::size_t>(member) * width, width),
           side.position_of(side.row_of(group, member)));
    result.roped = x;
  };
  if (rope.order == QKCTS_ROPE_THEN_NORM) turn_all();
  if (side.transforms()) {
    if (!transform(x, side, group)) return result;
    result.normed = x;
  }
  if (rope.order == QKCTS_NORM_THEN_ROPE) turn_all();
  result.usable = true;

  for (std::int64_t member = 0; member < side.heads_in_group(); ++member) {
    ends_.clear();
    for (std::size_t lane = 0; lane < width; ++lane) {
      const Number& entry = x[static_cast<std::size_t>(member) * width + lane];
      ends_.push_back({lower(entry), upper(entry)});
    }
    ScaledVector& operand =
        operands_[static_cast<int>(which)][static_cast<std::size_t>(side.row_of(group, member))].emplace();
    operand.assign(ends_, limbs_);
  }
  return result;
}

template <unsigned Digits>
const ScaledVector* Level<Digits>::operand(Side side, std::int64_t row) {
  std::optional<ScaledVector>& slot = operands_[static_cast<int>(side)][static_cast<std::size_t>(row)];
  if (!slot) evaluate_group(side, values_.side(side).group_of(row));
  return slot ? &*slot : nullptr;
}

// Columns of v over the keys that some row sees; other keys are 0 here and are never multiplied in, whatever they hold.
template <unsigned Digits>
const std::vector<ScaledVector>& Level<Digits>::columns(std::int64_t b, std::int64_t kv_head) {
  const qkcts_shape& shape = values_.shape;
  const std::int64_t wanted = b * shape.kv_heads + kv_head;
  if (wanted == columns_of_) return columns_;
  std::vector<bool> seen(static_cast<std::size_t>(shape.k_len), false);
  for (const RowPlace& place : rows_)
    if (place.b == b && values_.kv_head(place.h) == kv_head)
      for (const std::uint32_t key : place.visible) seen[key] = true;
  columns_.resize(static_cast<std::size_t>(shape.v_head_dim));
  std::vector<double> column(static_cast<std::size_t>(shape.k_len));
  for (std::int64_t d = 0; d < shape.v_head_dim; ++d) {
    for (std::size_t key = 0; key < column.size(); ++key) {
      const std::int64_t entry = (wanted * shape.k_len + static_cast<std::int64_t>(key)) * shape.v_head_dim + d;
      column[key] = seen[key] ? values_.v[static_cast<std::size_t>(entry)] : 0.0;
    }
    columns_[static_cast<std::size_t>(d)].assign(column, limbs_);
  }
  columns_of_ = wanted;
  return columns_;
}

template <unsigned Digits>
typename Level<Digits>::Number Level<Digits>::factor(const RowPlace& place) const {
  const Number& tau = tau_[tau_.size() == 1 ? 0 : static_cast<std::size_t>(place.h)];
  if (values_.terms.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE) return tau;
  return tau * position_factor<Digits>(values_, values_.query_periods(place.b, place.qq));
}

template <unsigned Digits>
bool Level<Digits>::set_scores(const RowPlace& place, KeySet keys, RowEnclosures<Digits>& result) {
  const qkcts_shape& shape = values_.shape;
  const bool has_capped = values_.exists(QKCTS_STAGE_CAPPED);
  result.scores.resize(static_cast<std::size_t>(shape.k_len));
  result.capped.resize(has_capped ? result.scores.size() : 0);
  const ScaledVector* q = operand(Side::query, (place.b * shape.q_heads + place.h) * shape.q_len + place.qq);
  if (q == nullptr) return false;
  const Number tau = factor(place);
  const std::size_t count = keys == KeySet::all ? result.scores.size() : place.visible.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t key = keys == KeySet::all ? i : place.visible[i];
    if (values_.is_excluded(place.b, static_cast<std::int64_t>(key))) continue;
    const ScaledVector* k = operand(Side::key, values_.k_row(place.b, place.h, static_cast<std::int64_t>(key)));
    if (k == nullptr) return false;
    set_dot(result.scores[key], *q, *k);
    result.scores[key] *= tau;
    if (!is_finite(result.scores[key])) return false;
    if (!has_capped) continue;
    const double bias =
        values_.has_bias() ? values_.bias(place.b, place.h, place.qq, static_cast<std::int64_t>(key)) : 0.0;
    if (!std::isfinite(bias)) continue;
    const LinearBias linear = values_.has_linear_bias()
                                  ? values_.linear_bias(place.b, place.h, place.qq, static_cast<std::int64_t>(key))
                                  : LinearBias{};
    result.capped[key] = capped_score(result.scores[key], bias, linear, values_.terms.score);
  }
  return true;
}

template <unsigned Digits>
void Level<Digits>::set_output(const RowPlace& place, RowEnclosures<Digits>& result) {
  const qkcts_shape& shape = values_.shape;
  const std::int64_t kv_head = values_.kv_head(place.h);
  result.output.resize(static_cast<std::size_t>(shape.v_head_dim));
  result.probs.resize(place.visible.size());
  const std::uint32_t sink = values_.terms.softmax.sink;
  if (place.visible.size() == 1 && sink == QKCTS_SINK_NONE) {  // p = 1, o = v: exactly
    result.probs[0] = Number(1);
    const std::int64_t key = (place.b * shape.kv_heads + kv_head) * shape.k_len + place.visible[0];
    for (std::size_t d = 0; d < result.output.size(); ++d)
      result.output[d] = Number(values_.v[static_cast<std::size_t>(key * shape.v_head_dim) + d]);
    return;
  }
  const SoftmaxRow<Digits>& softmax = result.softmax;
  const Number inverse = Number(1) / softmax.sum;
  ends_.clear();
  for (std::size_t j = 0; j < place.visible.size(); ++j) {
    const Number& e = softmax.exponentials[j];
    mpfi_mul(raw(result.probs[j]), raw(e), raw(inverse));
    ends_.push_back({lower(e), upper(e)});
  }
  weights_.assign(ends_, limbs_);
  const std::vector<ScaledVector>& v = columns(place.b, kv_head);
  for (std::size_t d = 0; d < result.output.size(); ++d) {
    set_dot(result.output[d], weights_, v[d], place.visible);
    result.output[d] /= softmax.output_sum;
  }
}

template <unsigned Digits>
void Level<Digits>::evaluate_row(std::size_t row, KeySet keys, RowEnclosures<Digits>& result) {
  const RowPlace& place = rows_[row];
  result.usable = set_scores(place, keys, result);
  if (!result.usable || place.visible.empty()) return;
  std::vector<const Number*> seen;
  for (const std::uint32_t key : place.visible) seen.push_back(&result.seen(key));
  set_softmax(result.softmax, std::span<const Number* const>(seen),
              softmax_terms(values_.terms.softmax, values_.sink(place.h)));
  set_output(place, result);
}

}  // namespace qkcts
