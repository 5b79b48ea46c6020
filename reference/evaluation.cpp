// SPDX-License-Identifier: Apache-2.0
#include "reference/evaluation.hpp"

#include <algorithm>
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
  State(const Case& c, const StageRows& stored, const State& other)
      : limits_(other.limits_),
        special_(special_values_of(checked(c))),
        vectors(other.vectors),
        rows(numbers_of(c), stored, limits_, *vectors),
        owns_vectors(false) {}

  ReferenceResult result() const {
    ReferenceResult result;
    result.statistics = rows.result().statistics;
    for (const qkcts_stage stage : all_stages)
      if (holds(stage)) result.stages[stage] = home_of(stage).stages[stage];
    complete(result);
    return result;
  }

  // The same and the exact values, moved out.
  ReferenceResult take() {
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

Evaluation::Evaluation(Evaluation&&) noexcept = default;
Evaluation& Evaluation::operator=(Evaluation&&) noexcept = default;
Evaluation::~Evaluation() = default;

void Evaluation::evaluate_vectors() {
  state_->vectors->settle_all();
}

void Evaluation::evaluate_stored_vectors() {
  state_->vectors->settle_stored();
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

ReferenceResult Evaluation::result() const {
  return state_->result();
}

ReferenceResult Evaluation::take() && {
  return state_->take();
}

namespace {

// Clauses that act on rows of attention only.
bool is_of_rows(const std::string& field) {
  constexpr std::array sections = {"score.", "mask.", "softmax.", "heads."};
  return std::any_of(sections.begin(), sections.end(), [&](const char* section) { return field.starts_with(section); });
}

constexpr std::array inputs_of_rows = {Input::scale,          Input::mask,           Input::bias,
                                       Input::kv_len,         Input::alibi_slopes,   Input::sink,
                                       Input::q_document_ids, Input::k_document_ids, Input::prefix_len};

bool is_of_rows(Input input) {
  return std::find(inputs_of_rows.begin(), inputs_of_rows.end(), input) != inputs_of_rows.end();
}

bool have_same_input(const Case& a, const Case& b, Input input) {
  if (a.inputs.has(input) != b.inputs.has(input)) return false;
  if (!a.inputs.has(input)) return true;
  const Tensor &left = a.inputs.at(input), &right = b.inputs.at(input);
  return left.type == right.type && left.shape == right.shape && left.bytes == right.bytes;
}

}  // namespace

// Under hidden_values other than `finite` the masks say which keys take part; the point of q times the scale reads the
// scale. Both then count like clauses of vectors.
bool have_same_vectors(const Case& a, const Case& b) {
  const qkcts_contract &left = a.contract.terms, &right = b.contract.terms;
  const bool rows_matter = left.softmax.hidden_values != QKCTS_HIDDEN_FINITE ||
                           right.softmax.hidden_values != QKCTS_HIDDEN_FINITE || left.rounding.scaled_q != 0 ||
                           right.rounding.scaled_q != 0;
  if (has_special_values(a) || has_special_values(b)) return false;
  if (a.inputs.format != b.inputs.format) return false;
  for (const qkcts_stage stage : {QKCTS_STAGE_Q_NORM, QKCTS_STAGE_K_NORM, QKCTS_STAGE_V_NORM})
    if (stage_shape(stage, a.shape) != stage_shape(stage, b.shape)) return false;
  for (const ClauseDifference& difference : contract_differences(a.contract, b.contract))
    if (rows_matter || !is_of_rows(difference.field)) return false;
  for (std::size_t i = 0; i < input_count; ++i) {
    const auto input = static_cast<Input>(i);
    if ((rows_matter || !is_of_rows(input)) && !have_same_input(a, b, input)) return false;
  }
  return true;
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
