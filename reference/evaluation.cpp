// SPDX-License-Identifier: Apache-2.0
#include "reference/evaluation.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "conformance/special_values.hpp"
#include "reference/row_places.hpp"
#include "reference/row_refinement.hpp"
#include "reference/special_stages.hpp"
#include "reference/vector_refinement.hpp"

namespace qkcts {
namespace {

constexpr std::size_t rows_of_a_block = 32;

const Case& checked(const Case& c) {
  if (const std::string fault = case_fault(c); !fault.empty())
    throw InputError(fmt::format("case {}: {}", c.slug, fault));
  prepare_thread();
  return c;
}

}  // namespace

class Evaluation::State {
 public:
  State(const Case& c, const StageRows& stored, const RefinementLimits& limits)
      : limits_(limits),
        special_(special_values_of(checked(c))),
        vectors(std::make_shared<VectorRefinement>(numbers_of(c), stored, limits)),
        rows(numbers_of(c), stored, limits, *vectors),
        owns_vectors(true) {}
  State(const Case& c, const StageRows& stored, const RefinementLimits& limits, const VectorRefinement& beside)
      : limits_(limits),
        special_(special_values_of(checked(c))),
        vectors(std::make_shared<VectorRefinement>(numbers_of(c), stored, limits, &beside)),
        rows(numbers_of(c), stored, limits, *vectors),
        owns_vectors(true) {}
  State(const Case& c, const StageRows& stored, const State& other)
      : limits_(other.limits_),
        special_(special_values_of(checked(c))),
        vectors(other.vectors),
        rows(numbers_of(c), stored, limits_, *vectors),
        owns_vectors(false) {}

  ReferenceResult result() {
    rows.complete();
    ReferenceResult result;
    result.statistics = rows.result().statistics;
    for (const qkcts_stage stage : all_stages)
      if (holds(stage)) result.stages[stage] = home_of(stage).stages[stage];
    complete(result);
    return result;
  }

  // The same and the exact values, moved out.
  ReferenceResult take() {
    if (!owns_vectors) throw std::logic_error("vectors that are shared cannot be moved out");
    ReferenceResult result = rows.take_result();
    ReferenceResult of_vectors = vectors->take_result();
    for (const qkcts_stage stage : all_stages) {
      if ((attention_stages & bit(stage)) != 0) continue;
      result.stages[stage] = std::move(of_vectors.stages[stage]);
      result.exact.values[stage] = std::move(of_vectors.exact.values[stage]);
      result.exact.before[stage] = std::move(of_vectors.exact.before[stage]);
    }
    complete(result);
    return result;
  }

 private:
  bool holds(qkcts_stage stage) const { return owns_vectors || (attention_stages & bit(stage)) != 0; }
  const ReferenceResult& home_of(qkcts_stage stage) const {
    return (attention_stages & bit(stage)) != 0 ? rows.result() : vectors->result();
  }
  void complete(ReferenceResult& result) const {
    const ReferenceResult& of_rows = rows.result();
    const ReferenceResult& of_vectors = vectors->result();
    result.highest_precision = std::max(rows.highest_bits(), owns_vectors ? vectors->highest_bits() : 0);
    result.left_open = of_rows.left_open + (owns_vectors ? of_vectors.left_open : 0);
    result.exact_cases = of_rows.exact_cases + (owns_vectors ? of_vectors.exact_cases : 0);
    if (special_) put_special_values(*special_, result);
  }
  static std::unique_ptr<const SpecialValues> special_values_of(const Case& c) {
    return has_special_values(c) ? std::make_unique<const SpecialValues>(c) : nullptr;
  }
  // The case whose every value is a number; what special values reach is put over its results.
  const Case& numbers_of(const Case& c) const { return special_ ? special_->stand_in() : c; }

  RefinementLimits limits_;
  std::unique_ptr<const SpecialValues> special_;

 public:
  std::shared_ptr<VectorRefinement> vectors;
  RowRefinement rows;
  bool owns_vectors;  // false: they are proven where they were first
};

Evaluation::Evaluation(const Case& c, const StageRows& stored, Tier tier) {
  RefinementLimits limits;
  limits.tier = tier;
  state_ = std::make_unique<State>(c, stored, limits);
}

Evaluation::Evaluation(const Case& c, const StageRows& stored, const RefinementLimits& limits)
    : state_(std::make_unique<State>(c, stored, limits)) {}

Evaluation::Evaluation(const Case& c, const StageRows& stored, const Evaluation& other)
    : state_(std::make_unique<State>(c, stored, *other.state_)) {}

Evaluation Evaluation::beside(const Case& c, const StageRows& stored, const Evaluation& other) {
  Evaluation evaluation;
  evaluation.state_ = std::make_unique<State>(c, stored, RefinementLimits{}, *other.state_->vectors);
  return evaluation;
}

Evaluation::Evaluation() = default;
Evaluation::Evaluation(Evaluation&&) noexcept = default;
Evaluation& Evaluation::operator=(Evaluation&&) noexcept = default;
Evaluation::~Evaluation() = default;

void Evaluation::evaluate_vectors() {
  state_->vectors->settle_all();
}

void Evaluation::evaluate_stored_vectors() {
  state_->vectors->settle_stored();
}

void Evaluation::evaluate_vectors_of(const StageRows& rows) {
  state_->vectors->settle_rows(rows);
}

void Evaluation::evaluate_rows(std::span<const std::uint32_t> rows) {
  state_->rows.evaluate(rows);
}

const ExactStages& Evaluation::vectors() const {
  return state_->vectors->result().exact;
}

const ExactStages& Evaluation::rows() const {
  return state_->rows.result().exact;
}

ProvenStage Evaluation::proven(qkcts_stage stage, std::span<const std::uint32_t> rows) const {
  const ProvenStage& all = state_->vectors->result().stages[stage];
  const std::size_t length = all.rows.empty() ? 0 : all.hi.size() / all.rows.size();
  ProvenStage some;
  for (const std::uint32_t row : rows) {
    const auto found = std::lower_bound(all.rows.begin(), all.rows.end(), row);
    const std::size_t from = static_cast<std::size_t>(found - all.rows.begin()) * length;
    const auto take = [&](const auto& values, auto& to) {
      to.insert(to.end(), values.begin() + static_cast<std::ptrdiff_t>(from),
                values.begin() + static_cast<std::ptrdiff_t>(from + length));
    };
    some.rows.push_back(row);
    take(all.expected, some.expected);
    take(all.hi, some.hi);
    take(all.lo, some.lo);
    take(all.rule, some.rule);
  }
  return some;
}

ReferenceResult Evaluation::result() const {
  return state_->result();
}

ReferenceResult Evaluation::take() && {
  return state_->take();
}

std::vector<std::uint32_t> attention_rows_of(const Case& c, const StageRows& rows) {
  std::vector<std::uint32_t> result;
  for (const qkcts_stage stage : all_stages)
    if ((stages_of(c.contract.terms) & attention_stages & bit(stage)) != 0)
      result.insert(result.end(), rows[stage].begin(), rows[stage].end());
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

// ---- whole cases

ReferenceResult refine(const Case& c, const StageRows& rows, const RefinementLimits& limits) {
  Evaluation evaluation(c, rows, limits);
  evaluation.evaluate_vectors();
  evaluation.evaluate_rows(all_attention_rows(c.shape));
  return std::move(evaluation).take();
}

namespace {

void append(const std::array<StageBudget, QKCTS_STAGE_COUNT>& part, StageSet stages,
            std::array<StageBudget, QKCTS_STAGE_COUNT>& whole) {
  for (const qkcts_stage stage : all_stages) {
    if ((stages & bit(stage)) == 0) continue;
    whole[stage].delta.insert(whole[stage].delta.end(), part[stage].delta.begin(), part[stage].delta.end());
    whole[stage].trust.insert(whole[stage].trust.end(), part[stage].trust.begin(), part[stage].trust.end());
  }
}

// Those of the stages of attention that lie within [first, last].
StageRows rows_within(const StageRows& rows, std::uint32_t first, std::uint32_t last) {
  StageRows result;
  for (const qkcts_stage stage : all_stages) {
    if ((attention_stages & bit(stage)) == 0) continue;
    const auto from = std::lower_bound(rows[stage].begin(), rows[stage].end(), first);
    result[stage].assign(from, std::upper_bound(from, rows[stage].end(), last));
  }
  return result;
}

StageRows rows_of_vectors(const StageRows& rows) {
  StageRows result;
  for (const qkcts_stage stage : all_stages)
    if ((attention_stages & bit(stage)) == 0) result[stage] = rows[stage];
  return result;
}

}  // namespace

BudgetedResult evaluate_with_budgets(const Case& c, const StageRows& rows, const std::vector<Profile>& profiles,
                                     Tier tier) {
  Evaluation evaluation(c, rows, tier);
  evaluation.evaluate_vectors();
  BudgetedResult result;
  std::vector<CaseBudgets> budgets;
  for (const Profile& profile : profiles) {
    budgets.emplace_back(c, evaluation.vectors(), profile);
    result.budgets.push_back(budgets.back().of(evaluation.rows(), rows_of_vectors(rows)));
  }
  const std::vector<std::uint32_t> all = all_attention_rows(c.shape);
  for (std::size_t begin = 0; begin < all.size(); begin += rows_of_a_block) {
    const std::span block = std::span(all).subspan(begin, std::min(rows_of_a_block, all.size() - begin));
    evaluation.evaluate_rows(block);
    const StageRows within = rows_within(rows, block.front(), block.back());
    for (std::size_t profile = 0; profile < profiles.size(); ++profile)
      append(budgets[profile].of(evaluation.rows(), within), attention_stages, result.budgets[profile]);
  }
  result.values = std::move(evaluation).take();
  result.values.exact = {};  // that of one block
  return result;
}

}  // namespace qkcts
