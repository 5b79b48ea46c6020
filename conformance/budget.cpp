// SPDX-License-Identifier: Apache-2.0
// Composition: errors flow from stage to stage in the accumulator format; an observed stage adds its storage rounding.
#include "conformance/budget.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "conformance/budget_cap.hpp"
#include "conformance/budget_rounded_product.hpp"
#include "conformance/budget_rounded_scale.hpp"
#include "conformance/budget_row.hpp"
#include "conformance/budget_score.hpp"
#include "conformance/budget_vectors.hpp"
#include "conformance/budget_writer.hpp"
#include "conformance/key_runs.hpp"
#include "conformance/special_values.hpp"
#include "conformance/visible_keys.hpp"

namespace qkcts {
namespace {

RowCoordinates coordinates(std::uint32_t row, std::int64_t heads, std::int64_t length) {
  const auto r = static_cast<std::int64_t>(row);
  return {r / (heads * length), r / length % heads, r % length};
}

}  // namespace

// Of one contract: what does not change from row to row.
class CaseBudgets::Composition {
 public:
  Composition(const Case& c, std::shared_ptr<VectorBudgets> vectors)
      : case_(c),
        terms_(c.contract.terms),
        vectors_(std::move(vectors)),
        arithmetic_(vectors_->arithmetic()),
        visibility_(c),
        cap_(cap_terms(c, arithmetic_)),
        scaled_q_(point(terms_.rounding.scaled_q)),
        product_(point(terms_.rounding.product)),
        scores_(point(terms_.rounding.scores)),
        capped_(point(terms_.rounding.capped)) {
    for (std::int64_t h = 0; h < c.shape.q_heads; ++h) {
      scales_.push_back(scale_terms(c, h, arithmetic_));
    }
  }

  const std::shared_ptr<VectorBudgets>& vectors() const { return vectors_; }
  std::array<StageBudget, QKCTS_STAGE_COUNT> of(const ExactStages& exact, const StageRows& rows) const;

 private:
  class Rows;

  RoundingPoint point(std::uint32_t format) const {
    return {BudgetTerm::rounding_point, format, terms_.rounding.saturate != 0, arithmetic_};
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

  const Case& case_;
  const qkcts_contract& terms_;
  std::shared_ptr<VectorBudgets> vectors_;
  const BudgetArithmetic& arithmetic_;
  Visibility visibility_;
  std::vector<ScoreScale> scales_;  // per query head
  CapTerms cap_;
  RoundingPoint scaled_q_, product_, scores_, capped_;
};

// Some rows of it.
class CaseBudgets::Composition::Rows {
 public:
  Rows(const CaseBudgets::Composition& of, const ExactStages& exact, const StageRows& rows)
      : of_(of),
        case_(of.case_),
        terms_(of.terms_),
        vectors_(*of.vectors_),
        exact_(exact),
        arithmetic_(of.arithmetic_),
        writer_(case_, rows, arithmetic_),
        row_(case_, exact, arithmetic_, writer_),
        visible_keys_(case_) {}

  std::array<StageBudget, QKCTS_STAGE_COUNT> run() {
    Operands q(OperandSide::q, {QKCTS_STAGE_Q_PROJ, QKCTS_STAGE_Q_NORM, QKCTS_STAGE_Q_ROPE}, writer_);
    Operands k(OperandSide::k, {QKCTS_STAGE_K_PROJ, QKCTS_STAGE_K_NORM, QKCTS_STAGE_K_ROPE}, writer_);
    Operands v(OperandSide::v, {QKCTS_STAGE_COUNT, QKCTS_STAGE_V_NORM, QKCTS_STAGE_COUNT}, writer_);
    attention_rows(q, k, v);
    for (Operands* side : {&q, &k, &v}) {
      operand_rows(*side, row_end);
    }
    return writer_.take();
  }

 private:
  static constexpr std::uint32_t row_end = std::numeric_limits<std::uint32_t>::max();

  // Stages of one side in the order of OperandRow; QKCTS_STAGE_COUNT: it has none. `done` of its rows are.
  struct Operands {
    Operands(OperandSide of_side, const std::array<qkcts_stage, 3>& of_stages, const BudgetWriter& writer)
        : side(of_side), stages(of_stages), rows(writer.rows_of(of_stages)) {}
    OperandSide side;
    std::array<qkcts_stage, 3> stages;
    std::vector<std::uint32_t> rows;
    std::size_t done = 0;
  };

  // Of the rows below `end` those that are not done yet. What attention needs of them is kept.
  void operand_rows(Operands& of, std::uint32_t end) {
    for (; of.done < of.rows.size() && of.rows[of.done] < end; ++of.done) {
      operand_row(of, of.rows[of.done]);
    }
  }

  // Keys and values that no query sees are not judged.
  void operand_row(const Operands& of, std::uint32_t row) {
    OperandBudget& side = vectors_.side(of.side);
    const RowCoordinates at = coordinates(row, side.heads(), side.length());
    const bool seen = of.side == OperandSide::q || vectors_.tokens().seen(at.b, at.t);
    OperandRow operand = seen ? side.row(at.b, at.h, at.t) : OperandRow{};
    const std::array parts = {&operand.projection, &operand.norm, &operand.rope};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const qkcts_stage stage = of.stages[i];
      if (!writer_.wants(stage, row)) {
        continue;
      }
      const std::int64_t length = row_length(stage, case_.shape);
      if (seen) {
        writer_.put_vector(stage, vectors_.exact().row(stage, row, static_cast<std::size_t>(length)).data(),
                           **parts[i]);
      } else {
        writer_.put_exact(stage, length);
      }
    }
    if (seen) {
      side.keep(at.b, at.h, at.t, operand.take_product());
    }
  }

  // Vectors are made just before they are needed: a query for its row, the keys and values of a head for its first.
  void attention_rows(Operands& q, Operands& k, Operands& v) {
    constexpr std::array stages = {QKCTS_STAGE_SCORES, QKCTS_STAGE_CAPPED, QKCTS_STAGE_MASKED,
                                   QKCTS_STAGE_PROBS,  QKCTS_STAGE_LSE,    QKCTS_STAGE_OUTPUT};
    for (const std::uint32_t row : writer_.rows_of(stages)) {
      const RowCoordinates at = coordinates(row, case_.shape.q_heads, case_.shape.q_len);
      const std::int64_t kv_head = kv_head_of(terms_, case_.shape, at.h);
      const auto keys_end = static_cast<std::uint32_t>((at.b * case_.shape.kv_heads + kv_head + 1) * case_.shape.k_len);
      operand_rows(q, row + 1);
      operand_rows(k, keys_end);
      operand_rows(v, keys_end);
      attention_row(row, at, vectors_.head(at.b, kv_head));
    }
  }

  void attention_row(std::uint32_t row, const RowCoordinates& at, const HeadData& data) {
    visible_keys_.set(at.b, at.h, at.t, visible_);
    const bool capped_exists = writer_.exists(QKCTS_STAGE_CAPPED);
    const auto keys = static_cast<std::size_t>(case_.shape.k_len);
    score_error_.resize(keys);
    if (!visible_.empty()) {
      set_score_errors(row, at, data);
    }
    put_score_stage(QKCTS_STAGE_SCORES, row, score_error_);
    if (!capped_exists) {
      put_score_stage(QKCTS_STAGE_MASKED, row, score_error_);
      row_.put(row, at, data, visible_, score_error_);
      return;
    }
    set_capped_errors(row, at);
    put_score_stage(QKCTS_STAGE_CAPPED, row, capped_);
    if (!writer_.wants(QKCTS_STAGE_MASKED, row) || !writer_.wants(QKCTS_STAGE_CAPPED, row) ||
        !writer_.put_again(QKCTS_STAGE_CAPPED, QKCTS_STAGE_MASKED, keys)) {
      put_score_stage(QKCTS_STAGE_MASKED, row, capped_);
    }
    row_.put(row, at, data, visible_, of_.capped_.exists() ? capped_ : softmax_error_);
  }

  void set_score_errors(std::uint32_t row, const RowCoordinates& at, const HeadData& data) {
    VectorError q = vectors_.side(OperandSide::q).product(at.b, at.h, at.t);
    ScoreScale factor = of_.scale(at);
    if (of_.scaled_q_.exists()) {
      scale_and_round(q, factor, scale_accuracy(terms_), of_.scaled_q_, arithmetic_);
      factor = {};
    }
    const std::span<const double> exact = exact_.unrounded_row(QKCTS_STAGE_SCORES, row, score_error_.size());
    const std::int64_t first = visible_.front(), end = visible_.back() + 1;
    if (of_.product_.exists()) {
      rounded_product_errors(q, data.keys, factor, exact_.products_row(row, score_error_.size()), of_.product_, first,
                             end, arithmetic_, score_error_);
    } else {
      score_errors(q, data.keys, factor, exact, first, end, arithmetic_, score_error_);
    }
    round_scores(of_.scores_, QKCTS_STAGE_SCORES, row, score_error_);
  }

  // And what the softmax sees of them.
  void set_capped_errors(std::uint32_t row, const RowCoordinates& at) {
    const std::size_t keys = score_error_.size();
    const std::span<const double> scores = exact_.row(QKCTS_STAGE_SCORES, row, keys);
    const std::span<const double> exact = exact_.unrounded_row(QKCTS_STAGE_CAPPED, row, keys);
    capped_.resize(keys);
    softmax_error_.resize(keys);
    if (of_.cap_.is_cap_alone()) {
      for_each_run(visible_, [&](std::size_t, std::int64_t key, std::size_t count) {
        const auto part = [&](auto row_of) { return row_of.subspan(static_cast<std::size_t>(key), count); };
        capped_errors(of_.cap_, part(scores), part(std::span<const double>(score_error_)), part(exact), arithmetic_,
                      exponentials_, part(std::span(capped_)), part(std::span(softmax_error_)));
      });
      round_scores(of_.capped_, QKCTS_STAGE_CAPPED, row, capped_);
      return;
    }
    cap_inputs_.clear();
    for (const std::int64_t key : visible_) {
      const auto i = static_cast<std::size_t>(key);
      cap_inputs_.push_back({scores[i], score_error_[i], of_.bias(at, key), of_.linear_bias(at, key), exact[i]});
    }
    capped_errors(of_.cap_, cap_inputs_, arithmetic_, exponentials_, cap_errors_);
    for (std::size_t j = 0; j < visible_.size(); ++j) {
      const auto i = static_cast<std::size_t>(visible_[j]);
      capped_[i] = cap_errors_[j].error;
      softmax_error_[i] = cap_errors_[j].softmax_error;
    }
    round_scores(of_.capped_, QKCTS_STAGE_CAPPED, row, capped_);
  }

  // The visible numbers of a row pass the point of their stage.
  void round_scores(const RoundingPoint& point, qkcts_stage stage, std::uint32_t row,
                    std::vector<double>& errors) const {
    if (!point.exists()) {
      return;
    }
    const std::span<const double> exact = exact_.unrounded_row(stage, row, errors.size());
    const std::span<const double> after = exact_.row(stage, row, errors.size());
    for (const std::int64_t key : visible_) {
      const auto i = static_cast<std::size_t>(key);
      errors[i] = point.moved(exact[i], std::fabs(exact[i]) * 0x1p-50, errors[i], after[i]);
    }
  }

  void put_score_stage(qkcts_stage stage, std::uint32_t row, const std::vector<double>& errors) {
    if (!writer_.wants(stage, row)) {
      return;
    }
    const std::span<const double> z = exact_.row(stage, row, errors.size());
    size_.resize(z.size());
    std::int64_t done = 0;
    for_each_run(visible_, [&](std::size_t, std::int64_t key, std::size_t count) {
      const auto first = static_cast<std::size_t>(key);
      for (std::size_t i = first; i < first + count; ++i) {
        size_[i] = std::fabs(z[i]);
      }
      writer_.put_exact(stage, key - done);
      writer_.put(stage, z.subspan(first, count), std::span(errors).subspan(first, count),
                  std::span(size_).subspan(first, count));
      done = key + static_cast<std::int64_t>(count);
    });
    writer_.put_exact(stage, static_cast<std::int64_t>(errors.size()) - done);
  }

  const CaseBudgets::Composition& of_;
  const Case& case_;
  const qkcts_contract& terms_;
  VectorBudgets& vectors_;
  const ExactStages& exact_;
  const BudgetArithmetic& arithmetic_;
  BudgetWriter writer_;
  RowBudget row_;
  VisibleKeys visible_keys_;
  // Of the row at hand, kept for their memory.
  std::vector<std::int64_t> visible_;
  std::vector<double> score_error_, capped_, softmax_error_, exponentials_, size_;
  std::vector<CapInput> cap_inputs_;
  std::vector<CappedError> cap_errors_;
};

std::array<StageBudget, QKCTS_STAGE_COUNT> CaseBudgets::Composition::of(const ExactStages& exact,
                                                                        const StageRows& rows) const {
  return Rows(*this, exact, rows).run();
}

CaseBudgets::CaseBudgets(const Case& c, const ExactStages& vectors, const Profile& profile, TermSet terms)
    : special_(has_special_values(c) ? std::make_unique<const SpecialValues>(c) : nullptr) {
  const Case& numbers = special_ ? special_->stand_in() : c;
  composition_ =
      std::make_unique<Composition>(numbers, std::make_shared<VectorBudgets>(numbers, vectors, profile, terms));
}

CaseBudgets::CaseBudgets(const Case& c, const CaseBudgets& other)
    : composition_(std::make_unique<Composition>(c, other.composition_->vectors())) {}

CaseBudgets::CaseBudgets(CaseBudgets&&) noexcept = default;
CaseBudgets& CaseBudgets::operator=(CaseBudgets&&) noexcept = default;
CaseBudgets::~CaseBudgets() = default;

std::array<StageBudget, QKCTS_STAGE_COUNT> CaseBudgets::of(const ExactStages& exact, const StageRows& rows) {
  std::array<StageBudget, QKCTS_STAGE_COUNT> budgets = composition_->of(exact, rows);
  if (special_) {
    put_special_budgets(*special_, rows, budgets);
  }
  return budgets;
}

std::array<StageBudget, QKCTS_STAGE_COUNT> stage_budgets(const Case& c, const ExactStages& exact, const StageRows& rows,
                                                         const Profile& profile, TermSet terms) {
  return CaseBudgets(c, exact, profile, terms).of(exact, rows);
}

std::size_t ExactStages::place(qkcts_stage stage, std::size_t row) const {
  if (!attention_rows || (attention_stages & bit(stage)) == 0) {
    return row;
  }
  const std::vector<std::uint32_t>& held = *attention_rows;
  // Mostly they are neighbours.
  if (const std::size_t guess = held.empty() ? 0 : row - held.front(); guess < held.size() && held[guess] == row) {
    return guess;
  }
  const auto at = std::lower_bound(held.begin(), held.end(), row);
  if (at == held.end() || *at != row) {
    throw std::out_of_range("a row of attention that is not held");
  }
  return static_cast<std::size_t>(at - held.begin());
}

}  // namespace qkcts
