// SPDX-License-Identifier: Apache-2.0
#include "reference/fast_tier.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/fast_tier_attention.hpp"
#include "reference/fast_tier_operand.hpp"
#include "reference/fast_tier_record.hpp"
#include "reference/fixed_values.hpp"
#include "reference/refusal.hpp"

namespace qkcts {
namespace {

using Open = std::vector<ElementPlace>;

bool covers(const CaseValues& values) {
  const qkcts_contract& terms = values.terms;
  const bool clauses = terms.logits.scale_exp_cap == 0 && terms.logits.alibi == QKCTS_ALIBI_NONE &&
                       terms.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE &&
                       terms.softmax.sink == QKCTS_SINK_NONE && terms.softmax.base == QKCTS_BASE_E &&
                       terms.softmax.lse_base == QKCTS_BASE_E && !has_rounding_points(terms.rounding);
  if (!clauses) return false;
  std::vector<double> scalars = {terms.score.scale_value, terms.score.temperature, terms.score.softcap};
  if (terms.score.scale_form == QKCTS_SCALE_LEARNED_SCALAR)
    for (std::int64_t h = 0; h < values.shape.q_heads; ++h) scalars.push_back(values.learned_scale(h));
  return is_moderate(scalars);
}

class DoubleWordTier : public FastTier {
 public:
  DoubleWordTier(const CaseValues& values, RowPlaces& rows, const FastVectors& vectors, ReferenceResult& result)
      : values_(values),
        rows_(rows),
        result_(result),
        recorder_(values, result, vectors.kernels()),
        v_(vectors.v()),
        attention_(values, rows, vectors.q(), vectors.k(), v_, vectors.kernels()) {}

  void begin_block() override { attention_.begin_block(); }

  bool fixes_hidden_keys(std::size_t row) const override { return !rows_[row].visible.empty() && !values_.has_bias(); }

  std::optional<Open> settle_row(std::size_t row) override {
    const RowPlace& place = rows_[row];
    const auto r = static_cast<std::int64_t>(row);
    const auto keys = static_cast<std::size_t>(values_.shape.k_len);
    attention_.set_scores(row, scores_);
    Open open;
    recorder_.record(QKCTS_STAGE_SCORES, r, 0, scores_.words(), scores_.error.data(), keys, open);
    recorder_.hide_all_but(QKCTS_STAGE_SCORES, r, place.visible);
    const WordArray* seen = &scores_;
    if (values_.exists(QKCTS_STAGE_CAPPED)) {
      set_biases(place);
      attention_.set_capped(scores_, biases_, capped_);
      seen = &capped_;
      record_capped(place, r, open);
    }
    if (place.visible.empty()) {
      for (std::int64_t d = 0; d < values_.shape.v_head_dim && values_.means_normed_values(); ++d)
        open.push_back({QKCTS_STAGE_OUTPUT, r, d});
      return open;
    }
    if (fixes_hidden_keys(row) && place.visible.size() < keys) {
      recorder_.fix_all_but(QKCTS_STAGE_MASKED, r, place.visible, -HUGE_VAL, ElementRule::hidden);
      recorder_.fix_all_but(QKCTS_STAGE_PROBS, r, place.visible, 0, ElementRule::exact_clause);
    }
    const bool is_run = place.visible.back() - place.visible.front() + 1 == place.visible.size();
    if (!is_run) pick(*seen, place.visible, seen_);
    const WordView visible = is_run ? WordView(*seen, place.visible.front()) : WordView(seen_);
    if (values_.exists(QKCTS_STAGE_MASKED))
      recorder_.record(QKCTS_STAGE_MASKED, r, place.visible, visible.words(), visible.error, open);
    if (place.visible.size() == 1) {
      record_single(place, r, visible, open);
    } else {
      record_softmax(place, r, visible, open);
    }
    return open;
  }

 private:
  // -inf hides a key; the rest of the row is computed as if 0 stood there.
  void set_biases(const RowPlace& place) {
    if (!values_.has_bias() && !finite_.empty()) return;  // zeros, as in every row
    biases_.assign(padded(static_cast<std::size_t>(values_.shape.k_len)) + padding, 0.0);
    finite_.clear();
    for (std::int64_t key = 0; key < values_.shape.k_len; ++key) {
      const double bias = values_.has_bias() ? values_.bias(place.b, place.h, place.qq, key) : 0.0;
      if (std::isinf(bias)) continue;
      biases_[static_cast<std::size_t>(key)] = bias;
      finite_.push_back(static_cast<std::uint32_t>(key));
    }
  }

  void record_capped(const RowPlace& place, std::int64_t row, Open& open) {
    if (finite_.size() == static_cast<std::size_t>(values_.shape.k_len)) {
      recorder_.record(QKCTS_STAGE_CAPPED, row, 0, capped_.words(), capped_.error.data(), finite_.size(), open);
    } else {
      pick(capped_, finite_, seen_);
      recorder_.record(QKCTS_STAGE_CAPPED, row, finite_, seen_.words(), seen_.error.data(), open);
    }
    recorder_.hide_all_but(QKCTS_STAGE_CAPPED, row, place.visible);
  }

  static void pick(const WordArray& from, std::span<const std::uint32_t> columns, WordArray& to) {
    to.reserve(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      to.h[i] = from.h[columns[i]];
      to.l[i] = from.l[columns[i]];
      to.error[i] = from.error[columns[i]];
    }
  }

  // p = 1, o = v^, lse = s: exactly. The sign of a zero is left to the refinement loop.
  void record_single(const RowPlace& place, std::int64_t row, WordView seen, Open& open) {
    WordArray one;
    one.clear(1);
    one.h[0] = 1;
    recorder_.record(QKCTS_STAGE_PROBS, row, place.visible, one.words(), one.error.data(), open);
    recorder_.record(QKCTS_STAGE_LSE, row, 0, seen.words(), seen.error, 1, open);
    const auto width = static_cast<std::size_t>(values_.shape.v_head_dim);
    WordArray v;
    v.clear(width);
    const std::int64_t key = values_.k_row(place.b, place.h, place.visible[0]);
    std::copy_n(v_ ? v_->high(key) : values_.v.row(key).data(), width, v.h.begin());
    if (v_) {
      std::copy_n(v_->low(key), width, v.l.begin());
      std::fill_n(v.error.begin(), width, v_->row(key).delta);
    }
    recorder_.record(QKCTS_STAGE_OUTPUT, row, 0, v.words(), v.error.data(), width, open);
    RowStatistics& s = result_.statistics;
    const auto r = static_cast<std::size_t>(row);
    s.entropy[r] = 0;
    s.p_max[r] = 1;
    const RowRecorder::Statistic largest[] = {{magnitude(seen, 0), seen.error[0], &s.score_max[r]}};
    if (!recorder_.round(largest)) open.push_back({statistics_stage, row, 0});
  }

  static Word magnitude(const WordView& seen, std::size_t j) {
    const double sign = seen.h[j] < 0 ? -1 : 1;
    return {sign * seen.h[j], sign * seen.l[j]};
  }

  void record_softmax(const RowPlace& place, std::int64_t row, WordView seen, Open& open) {
    attention_.set_softmax(place, seen, softmax_);
    const std::size_t before = open.size();
    recorder_.record(QKCTS_STAGE_PROBS, row, place.visible, softmax_.probs.words(), softmax_.probs.error.data(), open);
    settle_vanishing(place, row, seen, before, open);
    lse_.reserve(1);
    lse_.h[0] = softmax_.lse.h;
    lse_.l[0] = softmax_.lse.l;
    lse_.error[0] = softmax_.lse_error;
    recorder_.record(QKCTS_STAGE_LSE, row, 0, lse_.words(), lse_.error.data(), 1, open);
    recorder_.record(QKCTS_STAGE_OUTPUT, row, 0, softmax_.output.words(), softmax_.output.error.data(),
                     static_cast<std::size_t>(values_.shape.v_head_dim), open);

    RowStatistics& s = result_.statistics;
    const auto r = static_cast<std::size_t>(row);
    const RowRecorder::Statistic statistics[] = {
        {softmax_.entropy, softmax_.entropy_error, &s.entropy[r]},
        {softmax_.p_max, softmax_.p_max_error, &s.p_max[r]},
        {magnitude(seen, softmax_.scores.farthest), softmax_.scores.error, &s.score_max[r]},
    };
    // The loop knows an entropy within about 2^-120, not relative to itself: a smaller one is its to say.
    if (!(softmax_.entropy.h >= 0x1p-30) || !recorder_.round(statistics)) open.push_back({statistics_stage, row, 0});
  }

  // p < e^x with x = s - s_largest below -760: less than 2^-1096, which rounds to 0 in every format and in lo too.
  void settle_vanishing(const RowPlace& place, std::int64_t row, const WordView& seen, std::size_t before, Open& open) {
    const auto vanishes = [&](const ElementPlace& element) {
      const std::int64_t at = visible_index(place, element.column);
      const auto j = static_cast<std::size_t>(at);
      const double error = seen.error[j] + seen.error[softmax_.scores.largest];
      return softmax_.exponent[j] < -760 && error < 1;
    };
    const auto from = open.begin() + static_cast<std::ptrdiff_t>(before);
    for (auto element = from; element != open.end(); ++element)
      if (vanishes(*element)) recorder_.record_zero(QKCTS_STAGE_PROBS, row, element->column);
    open.erase(std::remove_if(from, open.end(), vanishes), open.end());
  }

  const CaseValues& values_;
  RowPlaces& rows_;
  ReferenceResult& result_;
  RowRecorder recorder_;
  const FastOperands* v_;  // null: v is an input
  FastAttention attention_;
  WordArray scores_, capped_, seen_, lse_;
  std::vector<double> biases_;
  std::vector<std::uint32_t> finite_;
  RowSoftmax softmax_;
};

}  // namespace

std::unique_ptr<FastTier> FastTier::create(const CaseValues& values, RowPlaces& rows, const FastVectors& vectors,
                                           ReferenceResult& result) {
  if (!covers(values)) return nullptr;
  return std::make_unique<DoubleWordTier>(values, rows, vectors, result);
}

}  // namespace qkcts
