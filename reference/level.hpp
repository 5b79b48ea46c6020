// SPDX-License-Identifier: Apache-2.0
// Rows of attention at one precision, from the vectors of q, k and v. These and the columns of v are kept once made, so
// a level that is asked for a single row stays cheap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/case_values.hpp"
#include "reference/integer_dot.hpp"
#include "reference/level_vectors.hpp"
#include "reference/real.hpp"
#include "reference/row_places.hpp"
#include "reference/score.hpp"
#include "reference/softmax.hpp"

namespace qkcts {

enum class KeySet : std::uint8_t { visible, all };
// products: <q^, k^> in the place of the scores; scores: up to what the softmax sees.
enum class RowPart : std::uint8_t { products, scores, all };

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

  Level(const CaseValues& values, RowPlaces& rows, LevelVectors<Digits>& vectors)
      : values_(values), rows_(rows), vectors_(vectors), limbs_(vectors_.limbs()) {
    for (std::int64_t h = 0; h < (values.terms.logits.scale_axes == QKCTS_SCALE_PER_HEAD ? values.shape.q_heads : 1);
         ++h)
      tau_.push_back(score_factor<Digits>(values, h));
  }

  GroupEnclosures<Digits> evaluate_group(Side side, std::int64_t group) { return vectors_.evaluate_group(side, group); }

  // Of a row that is held.
  void evaluate_row(std::size_t row, KeySet keys, RowEnclosures<Digits>& result, RowPart part = RowPart::all);

  // Everything that multiplies the scores of a row.
  Number factor(const RowPlace& place) const;

  typename LevelVectors<Digits>::Waves waves_of(Side which, std::int64_t row) { return vectors_.waves_of(which, row); }

 private:
  bool set_columns(std::int64_t b, std::int64_t kv_head);
  bool set_normed_columns(std::int64_t plane, const std::vector<bool>& seen);
  bool set_score(const RowPlace& place, std::int64_t key, const Number& tau, Number& score);
  bool set_scores(const RowPlace& place, KeySet keys, RowPart part, RowEnclosures<Digits>& result);
  bool set_single_output(const RowPlace& place, RowEnclosures<Digits>& result);
  void set_output_of_given(const RowPlace& place, RowEnclosures<Digits>& result);
  bool set_output(const RowPlace& place, RowEnclosures<Digits>& result);
  bool set_mean_output(const RowPlace& place, RowEnclosures<Digits>& result);

  const CaseValues& values_;
  RowPlaces& rows_;
  LevelVectors<Digits>& vectors_;
  int limbs_;
  std::vector<Number> tau_;       // of every head, or one for all
  std::int64_t columns_of_ = -1;  // b * Hkv + kv_head
  std::vector<ScaledVector> columns_;
  ScaledVector weights_;
  std::vector<ScaledVector::Ends> ends_;
};

template <unsigned Digits>
bool Level<Digits>::set_normed_columns(std::int64_t plane, const std::vector<bool>& seen) {
  const Number zero(0);
  std::vector<const std::vector<Number>*> rows(seen.size(), nullptr);
  for (std::size_t key = 0; key < seen.size(); ++key) {
    if (!seen[key]) continue;
    rows[key] = vectors_.value_row(plane * values_.shape.k_len + static_cast<std::int64_t>(key));
    if (rows[key] == nullptr) return false;
  }
  for (std::size_t d = 0; d < columns_.size(); ++d) {
    ends_.clear();
    for (const std::vector<Number>* row : rows) {
      const Number& entry = row == nullptr ? zero : (*row)[d];
      ends_.push_back({lower(entry), upper(entry)});
    }
    columns_[d].assign(ends_, limbs_);
  }
  return true;
}

// Columns of v over the keys that some row sees; other keys are 0 here and are never multiplied in, whatever they hold.
// False if one of them is not known.
template <unsigned Digits>
bool Level<Digits>::set_columns(std::int64_t b, std::int64_t kv_head) {
  const qkcts_shape& shape = values_.shape;
  const std::int64_t wanted = b * shape.kv_heads + kv_head;
  if (wanted == columns_of_) return true;
  columns_of_ = -1;
  const std::vector<bool>& seen = rows_.seen(b, kv_head);
  columns_.resize(static_cast<std::size_t>(shape.v_head_dim));
  if (values_.v.transforms()) {
    if (!set_normed_columns(wanted, seen)) return false;
  } else {
    std::vector<double> column(static_cast<std::size_t>(shape.k_len));
    for (std::size_t d = 0; d < columns_.size(); ++d) {
      for (std::size_t key = 0; key < column.size(); ++key)
        column[key] = seen[key] ? values_.v.row(wanted * shape.k_len + static_cast<std::int64_t>(key))[d] : 0.0;
      columns_[d].assign(column, limbs_);
    }
  }
  columns_of_ = wanted;
  return true;
}

template <unsigned Digits>
typename Level<Digits>::Number Level<Digits>::factor(const RowPlace& place) const {
  if (!values_.q.given.scaled.empty()) return Number(1);
  const Number& tau = tau_[tau_.size() == 1 ? 0 : static_cast<std::size_t>(place.h)];
  if (values_.terms.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE) return tau;
  return tau * position_factor<Digits>(values_, values_.query_ratio(place.b, place.qq));
}

template <unsigned Digits>
bool Level<Digits>::set_score(const RowPlace& place, std::int64_t key, const Number& tau, Number& score) {
  if (const std::vector<double>& given = values_.given.products; !given.empty()) {
    score = Number(given[static_cast<std::size_t>(key)]) * tau;
    return true;
  }
  const qkcts_shape& shape = values_.shape;
  const ScaledVector* q = vectors_.operand(Side::query, (place.b * shape.q_heads + place.h) * shape.q_len + place.qq);
  const ScaledVector* k = vectors_.operand(Side::key, values_.k_row(place.b, place.h, key));
  if (q == nullptr || k == nullptr) return false;
  set_dot(score, *q, *k);
  score *= tau;
  return is_finite(score);
}

template <unsigned Digits>
bool Level<Digits>::set_scores(const RowPlace& place, KeySet keys, RowPart part, RowEnclosures<Digits>& result) {
  const qkcts_shape& shape = values_.shape;
  const bool has_capped = part != RowPart::products && values_.exists(QKCTS_STAGE_CAPPED);
  result.scores.resize(static_cast<std::size_t>(shape.k_len));
  result.capped.resize(has_capped ? result.scores.size() : 0);
  const GivenRow& given = values_.given;
  const Number tau = part == RowPart::products ? Number(1) : factor(place);
  const std::size_t count = keys == KeySet::all ? result.scores.size() : place.visible.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t key = keys == KeySet::all ? i : place.visible[i];
    if (values_.is_excluded(place.b, static_cast<std::int64_t>(key))) continue;
    if (!given.scores.empty()) {
      result.scores[key] = Number(given.scores[key]);
    } else if (!set_score(place, static_cast<std::int64_t>(key), tau, result.scores[key])) {
      return false;
    }
    if (!has_capped) continue;
    if (!given.capped.empty()) {
      result.capped[key] = Number(given.capped[key]);
      continue;
    }
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

// One visible key, no sink: p = 1, o = v^, exactly.
template <unsigned Digits>
bool Level<Digits>::set_single_output(const RowPlace& place, RowEnclosures<Digits>& result) {
  result.probs[0] = Number(1);
  const std::int64_t row = values_.k_row(place.b, place.h, place.visible[0]);
  if (values_.v.transforms()) {
    const std::vector<Number>* v = vectors_.value_row(row);
    if (v != nullptr) result.output = *v;
    return v != nullptr;
  }
  for (std::size_t d = 0; d < result.output.size(); ++d) result.output[d] = Number(values_.v.row(row)[d]);
  return true;
}

// From probabilities at a point of their own: numbers, which a post-scale sink still multiplies.
template <unsigned Digits>
void Level<Digits>::set_output_of_given(const RowPlace& place, RowEnclosures<Digits>& result) {
  const std::vector<double>& probs = values_.given.probs;
  weights_.assign(probs, limbs_);
  const bool scales = values_.terms.softmax.sink == QKCTS_SINK_POST_SCALE;
  const Number kept = scales ? result.softmax.sum / result.softmax.output_sum : Number(1);
  for (std::size_t j = 0; j < probs.size(); ++j) result.probs[j] = Number(probs[j]);
  for (std::size_t d = 0; d < result.output.size(); ++d) {
    set_dot(result.output[d], weights_, columns_[d], place.visible);
    if (scales) result.output[d] *= kept;
  }
}

template <unsigned Digits>
bool Level<Digits>::set_output(const RowPlace& place, RowEnclosures<Digits>& result) {
  result.output.resize(static_cast<std::size_t>(values_.shape.v_head_dim));
  result.probs.resize(place.visible.size());
  if (place.visible.size() == 1 && values_.terms.softmax.sink == QKCTS_SINK_NONE)
    return set_single_output(place, result);
  if (!set_columns(place.b, values_.kv_head(place.h))) return false;
  if (!values_.given.probs.empty()) {
    set_output_of_given(place, result);
    return true;
  }
  const SoftmaxRow<Digits>& softmax = result.softmax;
  const Number inverse = Number(1) / softmax.sum;
  for (std::size_t j = 0; j < place.visible.size(); ++j) result.probs[j] = softmax.exponentials[j] * inverse;
  set_ends(ends_, std::span(softmax.exponentials).first(place.visible.size()));
  weights_.assign(ends_, limbs_);
  for (std::size_t d = 0; d < result.output.size(); ++d) {
    set_dot(result.output[d], weights_, columns_[d], place.visible);
    result.output[d] /= softmax.output_sum;
  }
  return true;
}

// A row without visible keys under `uniform`.
template <unsigned Digits>
bool Level<Digits>::set_mean_output(const RowPlace& place, RowEnclosures<Digits>& result) {
  result.output.assign(static_cast<std::size_t>(values_.shape.v_head_dim), Number(0));
  for (std::int64_t key = 0; key < values_.shape.k_len; ++key) {
    const std::vector<Number>* v = vectors_.value_row(values_.k_row(place.b, place.h, key));
    if (v == nullptr) return false;
    for (std::size_t d = 0; d < result.output.size(); ++d) result.output[d] += (*v)[d];
  }
  for (Number& entry : result.output) {
    if (values_.given_uniform) {
      entry *= Number(*values_.given_uniform);
    } else {
      entry /= static_cast<unsigned long>(values_.shape.k_len);
    }
  }
  return true;
}

template <unsigned Digits>
void Level<Digits>::evaluate_row(std::size_t row, KeySet keys, RowEnclosures<Digits>& result, RowPart part) {
  const RowPlace& place = rows_[row];
  result.usable = set_scores(place, keys, part, result);
  if (!result.usable || part != RowPart::all) return;
  const std::vector<double>& given = values_.given.output;
  if (place.visible.empty()) {
    if (!given.empty()) result.output.assign(given.begin(), given.end());
    if (given.empty() && values_.means_normed_values()) result.usable = set_mean_output(place, result);
    return;
  }
  std::vector<const Number*> seen;
  for (const std::uint32_t key : place.visible) seen.push_back(&result.seen(key));
  set_softmax(result.softmax, std::span<const Number* const>(seen),
              softmax_terms(values_.terms.softmax, values_.sink(place.h)));
  result.usable = set_output(place, result);
  if (!given.empty()) result.output.assign(given.begin(), given.end());
}

}  // namespace qkcts
