// SPDX-License-Identifier: Apache-2.0
// Composition: errors flow from stage to stage in the accumulator format; an observed stage adds its storage rounding.
#include "conformance/budget.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "conformance/budget_cap.hpp"
#include "conformance/budget_head.hpp"
#include "conformance/budget_operand.hpp"
#include "conformance/budget_rounded_scale.hpp"
#include "conformance/budget_row.hpp"
#include "conformance/budget_score.hpp"
#include "conformance/budget_writer.hpp"

namespace qkcts {
namespace {

RowCoordinates coordinates(std::uint32_t row, std::int64_t heads, std::int64_t length) {
  const auto r = static_cast<std::int64_t>(row);
  return {r / (heads * length), r / length % heads, r % length};
}

// Where probabilities are rounded at a point, weights are not stored in another format before it.
Profile profile_for(const Profile& profile, const qkcts_rounding& rounding) {
  Profile result = profile;
  if (rounding.probs != 0) {
    result.probability_storage.reset();
  }
  return result;
}

class Composition {
 public:
  Composition(const Case& c, const ExactStages& exact, const StageRows& rows, const Profile& profile, TermSet terms)
      : case_(c),
        terms_(c.contract.terms),
        exact_(exact),
        arithmetic_(profile_for(profile, c.contract.terms.rounding), terms),
        writer_(c, rows, arithmetic_),
        row_(c, exact, arithmetic_, writer_),
        visibility_(c),
        tokens_(c),
        q_(c, exact, OperandSide::q, arithmetic_),
        k_(c, exact, OperandSide::k, arithmetic_),
        v_(c, exact, OperandSide::v, arithmetic_),
        cap_(cap_terms(c, arithmetic_)),
        scaled_q_(point(terms_.rounding.scaled_q)),
        scores_(point(terms_.rounding.scores)),
        capped_(point(terms_.rounding.capped)) {
    for (std::int64_t h = 0; h < c.shape.q_heads; ++h) {
      scales_.push_back(scale_terms(c, h, arithmetic_));
    }
  }

  std::array<StageBudget, QKCTS_STAGE_COUNT> run() {
    operand_stages(q_, {QKCTS_STAGE_Q_PROJ, QKCTS_STAGE_Q_NORM, QKCTS_STAGE_Q_ROPE}, false);
    operand_stages(k_, {QKCTS_STAGE_K_PROJ, QKCTS_STAGE_K_NORM, QKCTS_STAGE_K_ROPE}, true);
    operand_stages(v_, {QKCTS_STAGE_COUNT, QKCTS_STAGE_V_NORM, QKCTS_STAGE_COUNT}, true);
    attention_rows();
    return writer_.take();
  }

 private:
  RoundingPoint point(std::uint32_t format) const {
    return {BudgetTerm::rounding_point, format, terms_.rounding.saturate != 0, arithmetic_};
  }

  // Stages of one side in the order of OperandRow; QKCTS_STAGE_COUNT: it has none. Those of `keys` that no query sees
  // are not judged.
  void operand_stages(OperandBudget& side, const std::array<qkcts_stage, 3>& stages, bool keys) {
    for (const std::uint32_t row : writer_.rows_of(stages)) {
      const RowCoordinates at = coordinates(row, side.heads(), side.length());
      const bool seen = !keys || tokens_.seen(at.b, at.t);
      const OperandRow operand = seen ? side.row(at.b, at.h, at.t) : OperandRow{};
      const std::array parts = {&operand.projection, &operand.norm, &operand.rope};
      for (std::size_t i = 0; i < stages.size(); ++i) {
        if (!writer_.wants(stages[i], row)) {
          continue;
        }
        const std::int64_t length = row_length(stages[i], case_.shape);
        if (seen) {
          writer_.put_vector(stages[i], exact_.values[stages[i]].data() + row * length, **parts[i]);
        } else {
          writer_.put_exact(stages[i], length);
        }
      }
    }
  }

  void attention_rows() {
    constexpr std::array stages = {QKCTS_STAGE_SCORES, QKCTS_STAGE_CAPPED, QKCTS_STAGE_MASKED,
                                   QKCTS_STAGE_PROBS,  QKCTS_STAGE_LSE,    QKCTS_STAGE_OUTPUT};
    // Ascending rows visit the query heads of one batch entry one after another; those that share keys and values are
    // neighbours where heads share them in blocks, else all heads of the entry are kept.
    const bool blocks = terms_.heads.mapping == QKCTS_HEADS_BLOCK;
    std::vector<std::optional<HeadData>> held(static_cast<std::size_t>(case_.shape.kv_heads));
    std::int64_t last_b = -1, last_head = -1;
    for (const std::uint32_t row : writer_.rows_of(stages)) {
      const RowCoordinates at = coordinates(row, case_.shape.q_heads, case_.shape.q_len);
      const std::int64_t kv_head = kv_head_of(terms_, case_.shape, at.h);
      if (at.b != last_b || (blocks && kv_head != last_head)) {
        std::fill(held.begin(), held.end(), std::nullopt);
      }
      last_b = at.b;
      last_head = kv_head;
      std::optional<HeadData>& data = held[static_cast<std::size_t>(kv_head)];
      if (!data) {
        data = head_data(case_, at.b, kv_head, k_, value_norm(), tokens_, arithmetic_);
      }
      attention_row(row, at, *data);
    }
  }

  ValueNorm value_norm() {
    return writer_.exists(QKCTS_STAGE_V_NORM) ? ValueNorm{&v_, &exact_.values[QKCTS_STAGE_V_NORM]} : ValueNorm{};
  }

  Addend bias(const RowCoordinates& at, std::int64_t key) const {
    if (terms_.score.bias_order == QKCTS_BIAS_NONE) {
      return {};
    }
    const Tensor& bias = case_.inputs.at(Input::bias);
    const std::int64_t b = bias.shape[0] == 1 ? 0 : at.b;
    const std::int64_t h = bias.shape[1] == 1 ? 0 : at.h;
    const double value =
        bias.value(static_cast<std::size_t>(((b * bias.shape[1] + h) * bias.shape[2] + at.t) * bias.shape[3] + key));
    return {value, arithmetic_.operand_error(value, case_.inputs.format)};
  }

  Addend linear_bias(const RowCoordinates& at, std::int64_t key) const {
    if (terms_.logits.alibi == QKCTS_ALIBI_NONE) {
      return {};
    }
    const double slope = case_.inputs.at(Input::alibi_slopes).value(static_cast<std::size_t>(at.h));
    const std::int64_t from =
        terms_.logits.alibi == QKCTS_ALIBI_LAST_KEY ? case_.shape.k_len - 1 : at.t + visibility_.offset(at.b);
    auto distance = static_cast<double>(key - from);
    if (terms_.logits.alibi == QKCTS_ALIBI_SYMMETRIC) {
      distance = -std::fabs(distance);
    }
    return linear_bias_errors(slope, accumulator_format(case_.inputs.format), distance, arithmetic_);
  }

  ScoreScale scale(const RowCoordinates& at) const {
    const ScoreScale& scale = scales_[static_cast<std::size_t>(at.h)];
    if (terms_.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE) {
      return scale;
    }
    const auto token = static_cast<std::size_t>(at.b * case_.shape.q_len + at.t);
    return scale_at_position(scale, terms_.logits, case_.inputs.at(Input::q_position_ids).value(token), arithmetic_);
  }

  void attention_row(std::uint32_t row, const RowCoordinates& at, const HeadData& data) {
    const std::int64_t k_len = case_.shape.k_len;
    std::vector<std::int64_t> visible;
    for (std::int64_t key = 0; key < k_len; ++key) {
      if (visibility_.visible(at.b, at.h, at.t, key)) {
        visible.push_back(key);
      }
    }
    const bool empty = visible.empty();
    const bool capped_exists = writer_.exists(QKCTS_STAGE_CAPPED);
    const auto keys = static_cast<std::size_t>(k_len);
    const auto offset = static_cast<std::size_t>(row) * keys;
    const std::span<const double> scores{exact_.values[QKCTS_STAGE_SCORES].data() + offset, keys};
    std::vector<double> score_error(keys), capped(keys), softmax_error(keys);
    if (!empty) {
      VectorError q = q_.row(at.b, at.h, at.t).product;
      ScoreScale factor = scale(at);
      if (scaled_q_.exists()) {
        scale_and_round(q, factor, scale_accuracy(terms_), scaled_q_, arithmetic_);
        factor = {};
      }
      const std::span<const double> exact{exact_.unrounded(QKCTS_STAGE_SCORES).data() + offset, keys};
      score_errors(q, data.keys, factor, exact, visible.front(), visible.back() + 1, arithmetic_, score_error);
      round_scores(scores_, QKCTS_STAGE_SCORES, offset, visible, score_error);
    }
    softmax_error = score_error;
    if (capped_exists) {
      const double* exact_capped = exact_.unrounded(QKCTS_STAGE_CAPPED).data() + offset;
      for (const std::int64_t key : visible) {
        const auto i = static_cast<std::size_t>(key);
        const CappedError error = capped_error(cap_, scores[i], score_error[i], bias(at, key), linear_bias(at, key),
                                               exact_capped[i], arithmetic_);
        capped[i] = error.error;
        softmax_error[i] = error.softmax_error;
      }
      if (capped_.exists()) {
        round_scores(capped_, QKCTS_STAGE_CAPPED, offset, visible, capped);
        softmax_error = capped;
      }
    }
    put_score_stage(QKCTS_STAGE_SCORES, row, visible, score_error);
    put_score_stage(QKCTS_STAGE_CAPPED, row, visible, capped);
    put_score_stage(QKCTS_STAGE_MASKED, row, visible, capped_exists ? capped : score_error);

    row_.put(row, at, data, std::move(visible), softmax_error);
  }

  // The visible numbers of a row pass the point of their stage; the row begins at `offset`.
  void round_scores(const RoundingPoint& point, qkcts_stage stage, std::size_t offset,
                    const std::vector<std::int64_t>& visible, std::vector<double>& errors) const {
    for (const std::int64_t key : visible) {
      const auto i = static_cast<std::size_t>(key);
      const double before = exact_.unrounded(stage)[offset + i];
      errors[i] = point.moved(before, std::fabs(before) * 0x1p-50, errors[i], exact_.values[stage][offset + i]);
    }
  }

  void put_score_stage(qkcts_stage stage, std::uint32_t row, const std::vector<std::int64_t>& visible,
                       const std::vector<double>& errors) {
    if (!writer_.wants(stage, row)) {
      return;
    }
    const double* z = exact_.values[stage].data() + static_cast<std::size_t>(row) * errors.size();
    std::size_t next = 0;
    for (std::size_t key = 0; key < errors.size(); ++key) {
      if (next < visible.size() && visible[next] == static_cast<std::int64_t>(key)) {
        writer_.put(stage, z[key], errors[key], std::fabs(z[key]));
        ++next;
      } else {
        writer_.put_exact(stage);
      }
    }
  }

  const Case& case_;
  const qkcts_contract& terms_;
  const ExactStages& exact_;
  BudgetArithmetic arithmetic_;
  BudgetWriter writer_;
  RowBudget row_;
  Visibility visibility_;
  SeenTokens tokens_;
  OperandBudget q_, k_, v_;
  std::vector<ScoreScale> scales_;  // per query head
  CapTerms cap_;
  RoundingPoint scaled_q_, scores_, capped_;
};

}  // namespace

std::array<StageBudget, QKCTS_STAGE_COUNT> stage_budgets(const Case& c, const ExactStages& exact, const StageRows& rows,
                                                         const Profile& profile, TermSet terms) {
  return Composition(c, exact, rows, profile, terms).run();
}

}  // namespace qkcts
