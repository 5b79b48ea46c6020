// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose_explanation.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>

#include "harness/diagnose_fault.hpp"

namespace qkcts {
namespace {

constexpr double telling_part = 0.125;   // of a budget: a wrong kernel that comes nearer computes the right thing here
constexpr double of_another_class = 64;  // what an element of another class adds to the distance

// A stage that a contract has not is the one before it: a kernel that skips it hands on what it got. QKCTS_STAGE_COUNT:
// the input.
qkcts_stage stage_before(qkcts_stage stage) {
  switch (stage) {
    case QKCTS_STAGE_Q_ROPE:
      return QKCTS_STAGE_Q_NORM;
    case QKCTS_STAGE_K_ROPE:
      return QKCTS_STAGE_K_NORM;
    case QKCTS_STAGE_Q_NORM:
      return QKCTS_STAGE_Q_PROJ;
    case QKCTS_STAGE_K_NORM:
      return QKCTS_STAGE_K_PROJ;
    case QKCTS_STAGE_CAPPED:
      return QKCTS_STAGE_SCORES;
    case QKCTS_STAGE_MASKED:
      return QKCTS_STAGE_CAPPED;
    default:
      return QKCTS_STAGE_COUNT;
  }
}

qkcts_stage stage_that_holds(const qkcts_contract& terms, qkcts_stage stage) {
  while (stage != QKCTS_STAGE_COUNT && (stages_of(terms) & bit(stage)) == 0) stage = stage_before(stage);
  return stage;
}

// The rows of the stages that hold those of these stages.
StageRows rows_that_hold(const qkcts_contract& terms, const StageRows& rows) {
  StageRows asked;
  for (const qkcts_stage stage : all_stages) {
    const qkcts_stage holder = rows[stage].empty() ? QKCTS_STAGE_COUNT : stage_that_holds(terms, stage);
    if (holder == QKCTS_STAGE_COUNT) continue;
    std::vector<std::uint32_t> joined;
    std::set_union(asked[holder].begin(), asked[holder].end(), rows[stage].begin(), rows[stage].end(),
                   std::back_inserter(joined));
    asked[holder] = std::move(joined);
  }
  return asked;
}

const Tensor& input_of(const Case& c, qkcts_stage stage) {
  const bool of_queries = stage == QKCTS_STAGE_Q_ROPE || stage == QKCTS_STAGE_Q_NORM || stage == QKCTS_STAGE_Q_PROJ;
  return c.inputs.at(of_queries ? Input::q : stage == QKCTS_STAGE_V_NORM ? Input::v : Input::k);
}

GoldenStage input_as_stage(const Case& c, qkcts_stage stage, const std::vector<std::uint32_t>& rows) {
  GoldenStage result;
  result.present = true;
  result.values.rows = rows;
  StageBudget& budget = result.budgets.emplace_back();
  const Tensor& x = input_of(c, stage);
  const auto length = static_cast<std::size_t>(row_length(stage, c.shape));
  for (const std::uint32_t row : rows)
    for (std::size_t i = row * length; i < (row + 1) * length; ++i) {
      result.values.expected.push_back(x.pattern(i));
      result.values.hi.push_back(x.value(i));
      result.values.lo.push_back(0);
      result.values.rule.push_back(ElementRule::budget);
      budget.delta.push_back(0);
      budget.trust.push_back(Trust::judged);
    }
  return result;
}

// FNV-1a, a word at a time: equal values give equal digests; nobody means to forge one.
std::uint64_t mixed(std::uint64_t digest, std::uint64_t word) {
  return (digest ^ word) * 0x100000001b3U;
}

// Bits of the value in the format of the stage; NaN is NaN, and zero has no sign.
std::uint64_t value_bits(const JudgedElement& element) {
  if (std::isnan(element.exact.hi)) return 1;
  return element.exact.hi == 0 ? 0 : element.expected;
}

bool is_judged(qkcts_stage stage, const JudgedElement& element) {
  switch (element.rule) {
    case ElementRule::budget:
    case ElementRule::budget_exact:
      return element.trust == Trust::judged;
    case ElementRule::hidden:
      return stage == QKCTS_STAGE_MASKED;
    case ElementRule::free:
      return false;
    default:
      return true;
  }
}

}  // namespace

void Explanation::add(const Explanation& further) {
  for (std::size_t stage = 0; stage < judged.size(); ++stage) {
    judged[stage] += further.judged[stage];
    explained[stage] += further.explained[stage];
  }
  uncovered += further.uncovered;
  worst = std::max(worst, further.worst);
  valueless += further.valueless;
  failing += further.failing;
  nearer += further.nearer;
  distance += further.distance;
  off += further.off;
  values = mixed(values, further.values);
}

std::uint64_t Explanation::all_judged() const {
  return std::accumulate(judged.begin(), judged.end(), std::uint64_t{0});
}

std::uint64_t Explanation::all_explained() const {
  return std::accumulate(explained.begin(), explained.end(), std::uint64_t{0});
}

Explainer::Explainer(const Observation& observation)
    : observation_(observation),
      profile_(profile_named(observation.golden().profiles[observation.profile()], observation.golden().own_profiles)),
      vectors_(std::make_unique<Evaluation>(observation.golden().input, StageRows{})),
      budgets_(std::make_unique<CaseBudgets>(observation.golden().input, vectors_->vectors(), profile_)) {}

Explainer::~Explainer() = default;

// The stages that the rows ask for under the other contract. Where q, k and v mean the same under both, their stages
// are those of the case itself.
std::array<GoldenStage, QKCTS_STAGE_COUNT> Explainer::evaluated(const Case& other, const StageRows& rows) const {
  std::array<GoldenStage, QKCTS_STAGE_COUNT> made;
  const GoldenCase& golden = observation_.golden();
  const bool shares = have_same_vectors(golden.input, other);
  StageRows asked = rows;
  if (shares) {
    for (const qkcts_stage stage : all_stages) {
      if ((attention_stages & bit(stage)) != 0 || asked[stage].empty()) continue;
      made[stage].present = true;
      made[stage].values = golden.stages[stage].values;
      made[stage].budgets = {golden.stages[stage].budgets[observation_.profile()]};
      asked[stage].clear();
    }
  }
  Evaluation evaluation = shares ? Evaluation(other, asked, *vectors_) : Evaluation(other, asked);
  if (!shares) evaluation.evaluate_stored_vectors();
  const std::vector<std::uint32_t> attention = attention_rows_of(other, asked);
  if (!attention.empty()) evaluation.evaluate_rows(attention);
  CaseBudgets budgets = shares ? CaseBudgets(other, *budgets_) : CaseBudgets(other, evaluation.vectors(), profile_);
  std::array<StageBudget, QKCTS_STAGE_COUNT> deltas = budgets.of(evaluation.rows(), asked);
  ReferenceResult result = evaluation.result();
  for (const qkcts_stage stage : all_stages) {
    if (asked[stage].empty()) continue;
    made[stage].present = true;
    made[stage].values = std::move(result.stages[stage]);
    made[stage].budgets = {std::move(deltas[stage])};
  }
  return made;
}

std::optional<Explanation> Explainer::on(const Case& other, const StageRows& rows, const CatalogueMutant* fault) const {
  if (fault != nullptr) return by_fault(other, rows, *fault);
  try {
    try {
      Explanation explanation;
      explain(explanation, other, rows);
      return explanation;
    } catch (const InputError&) {  // some row has no value: the others have
      Explanation explanation;
      explain_row_by_row(explanation, other, rows);
      return explanation;
    }
  } catch (const UndecidedError&) {
    return std::nullopt;
  }
}

void Explainer::explain(Explanation& explanation, const Case& other, const StageRows& rows) const {
  judge_all(explanation, other, rows, evaluated(other, rows_that_hold(other.contract.terms, rows)));
}

std::optional<Explanation> Explainer::by_fault(const Case& other, const StageRows& rows,
                                               const CatalogueMutant& fault) const {
  const auto made = fault_stages(fault, other, observation_, rows_that_hold(other.contract.terms, rows));
  if (!made) return std::nullopt;
  const Contrast seen = contrast(*made);
  const qkcts_contract& own = observation_.golden().input.contract.terms;
  const bool is_alone = std::memcmp(&other.contract.terms, &own, sizeof own) == 0;
  if (is_alone && !seen.differs) return std::nullopt;
  Explanation explanation;
  judge_all(explanation, other, rows, *made);
  // Beside another contract a fault that leaves no number proves as little as that contract would.
  if (!is_alone) explanation.valueless = seen.numbers_gone;
  return explanation;
}

Explainer::Contrast Explainer::contrast(const std::array<GoldenStage, QKCTS_STAGE_COUNT>& made) const {
  Contrast seen;
  const Case& c = observation_.golden().input;
  for (const qkcts_stage stage : all_stages) {
    const GoldenStage& own_stage = observation_.golden().stages[stage];
    const ProvenStage &own = own_stage.values, &values = made[stage].values;
    const auto length = static_cast<std::size_t>(row_length(stage, c.shape));
    for (std::size_t r = 0; r < values.rows.size(); ++r) {
      const auto found = std::lower_bound(own.rows.begin(), own.rows.end(), values.rows[r]);
      const std::size_t first = static_cast<std::size_t>(found - own.rows.begin()) * length;
      for (std::size_t column = 0; column < length; ++column) {
        const double right = own.hi[first + column], wrong = values.hi[r * length + column];
        const auto delta = static_cast<double>(own_stage.budgets[observation_.profile()].delta[first + column]);
        seen.differs = seen.differs || std::isfinite(right) != std::isfinite(wrong) ||
                       std::isnan(right) != std::isnan(wrong) || std::fabs(right - wrong) > delta * telling_part;
        if (!std::isfinite(right) || std::isfinite(wrong)) continue;
        const std::uint64_t got = observation_.got(stage, values.rows[r], column);
        seen.numbers_gone += std::isfinite(decode(stage_format(stage, c.inputs.format), got)) ? 0 : 1;
      }
    }
  }
  return seen;
}

void Explainer::judge_all(Explanation& explanation, const Case& other, const StageRows& rows,
                          const std::array<GoldenStage, QKCTS_STAGE_COUNT>& made) const {
  for (const qkcts_stage stage : all_stages) {
    if (rows[stage].empty()) continue;
    const qkcts_stage holder = stage_that_holds(other.contract.terms, stage);
    judge(explanation, other, stage,
          holder == QKCTS_STAGE_COUNT ? input_as_stage(other, stage, rows[stage]) : made[holder]);
  }
}

void Explainer::explain_row_by_row(Explanation& explanation, const Case& other, const StageRows& rows) const {
  const auto one = [&](const StageRows& single) {
    try {
      explain(explanation, other, single);
    } catch (const InputError&) {
      judge_valueless(explanation, other, single);
    }
  };
  std::set<std::uint32_t> attention;
  for (const qkcts_stage stage : all_stages) {
    if ((attention_stages & bit(stage)) != 0) {
      attention.insert(rows[stage].begin(), rows[stage].end());
      continue;
    }
    for (const std::uint32_t row : rows[stage]) {
      StageRows single;
      single[stage] = {row};
      one(single);
    }
  }
  for (const std::uint32_t row : attention) {
    StageRows single;
    for (const qkcts_stage stage : all_stages)
      if ((attention_stages & bit(stage)) != 0 && std::binary_search(rows[stage].begin(), rows[stage].end(), row))
        single[stage] = {row};
    one(single);
  }
}

// What divides 0 by 0 writes no number, in any arithmetic.
void Explainer::judge_valueless(Explanation& explanation, const Case& other, const StageRows& rows) const {
  for (const qkcts_stage stage : all_stages) {
    const ProvenStage& own = observation_.golden().stages[stage].values;
    const auto length = static_cast<std::size_t>(row_length(stage, other.shape));
    for (const std::uint32_t row : rows[stage]) {
      const std::size_t first =
          static_cast<std::size_t>(std::lower_bound(own.rows.begin(), own.rows.end(), row) - own.rows.begin()) * length;
      for (std::size_t column = 0; column < length; ++column) {
        if (own.rule[first + column] == ElementRule::hidden || own.rule[first + column] == ElementRule::free) continue;
        const double got = decode(stage_format(stage, other.inputs.format), observation_.got(stage, row, column));
        // Of scores it may be one key that has no value.
        const bool by_key = stage == QKCTS_STAGE_SCORES || stage == QKCTS_STAGE_CAPPED || stage == QKCTS_STAGE_MASKED;
        if (by_key && std::isfinite(got)) continue;
        ++explanation.judged[stage];
        if (!std::isfinite(got)) {
          ++explanation.explained[stage];
          ++explanation.valueless;
        } else {
          explanation.worst = std::numeric_limits<double>::infinity();
          explanation.distance += of_another_class;
        }
      }
    }
  }
}

// Over the rows of `values` that the case stores of this stage.
void Explainer::judge(Explanation& explanation, const Case& other, qkcts_stage stage, const GoldenStage& values) const {
  const GoldenStage& own = observation_.golden().stages[stage];
  const StageBudget& own_budget = own.budgets[observation_.profile()];
  const auto length = static_cast<std::size_t>(row_length(stage, other.shape));
  for (std::size_t r = 0; r < values.values.rows.size(); ++r) {
    const std::uint32_t row = values.values.rows[r];
    const auto found = std::lower_bound(own.values.rows.begin(), own.values.rows.end(), row);
    if (found == own.values.rows.end() || *found != row) continue;
    const std::size_t first = static_cast<std::size_t>(found - own.values.rows.begin()) * length;
    const RowContext context = row_context(values.values, r * length, length, other.contract.terms.softmax);
    for (std::size_t column = 0; column < length; ++column) {
      const JudgedElement element = judge_element(stage, other.inputs.format, observation_.got(stage, row, column),
                                                  values, r * length + column, values.budgets.front(), context);
      const bool breach = element.breach != Breach::none;
      if (element.rule != ElementRule::free && element.rule != ElementRule::hidden)
        explanation.values = mixed(explanation.values, value_bits(element));
      if (is_judged(stage, element) || breach) {
        ++explanation.judged[stage];
        if (!breach) ++explanation.explained[stage];
        explanation.worst = std::max(explanation.worst, element.ratio);
      } else if (observation_.fails(stage, first + column) && element.trust != Trust::mistrusted) {
        ++explanation.uncovered;
      }
      const double off = std::fabs(element.got_value - element.exact.hi);
      if (observation_.fails(stage, first + column) && (breach || is_judged(stage, element))) {
        ++explanation.failing;
        const double own_off = std::fabs(element.got_value - own.values.hi[first + column]);
        if (!breach && (!std::isfinite(own_off) || off <= own_off / 2)) ++explanation.nearer;
      }
      const double unit = static_cast<double>(own_budget.delta[first + column]);
      if (observation_.fails(stage, first + column) && std::isfinite(off) && unit > 0 && std::isfinite(unit))
        explanation.off += off / unit;
      if (!std::isfinite(off)) {
        explanation.distance += breach ? of_another_class : 0;
      } else if (element.rule != ElementRule::hidden && unit > 0 && std::isfinite(unit)) {
        explanation.distance += std::min(of_another_class, std::log2(std::max(1.0, off / unit)));
      }
    }
  }
}

}  // namespace qkcts
