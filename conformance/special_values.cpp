// SPDX-License-Identifier: Apache-2.0
#include "conformance/special_values.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "conformance/seen_keys.hpp"
#include "conformance/special_rows.hpp"
#include "conformance/special_vectors.hpp"

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// What may hold NaN and infinities at all: what multiplies or is added to the vectors. Tables, scales, slopes and sinks
// are constants of the whole case.
bool may_be_special(Input input) {
  switch (input) {
    case Input::cos:
    case Input::sin:
    case Input::scale:
    case Input::alibi_slopes:
    case Input::sink:
    case Input::q_position_ids:
    case Input::k_position_ids:
    case Input::q_document_ids:
    case Input::k_document_ids:
    case Input::mask:
    case Input::kv_len:
    case Input::prefix_len:
      return false;
    default:
      return true;
  }
}

bool is_of_key(Input input) {
  return input == Input::k || input == Input::k_x || input == Input::v;
}

// Where element i of k, k_x or v stands, as index into [B, Lk].
std::size_t token_of(const Case& c, Input input, std::size_t i) {
  const auto width = static_cast<std::size_t>(c.inputs.at(input).shape.back());
  const auto heads = static_cast<std::size_t>(input == Input::k_x ? 1 : c.shape.kv_heads);
  const auto length = static_cast<std::size_t>(c.shape.k_len);
  return i / (width * length * heads) * length + i / width % length;
}

template <class Visit>
void for_each_special(const Case& c, Visit visit) {
  const bool excludes = c.contract.terms.softmax.hidden_values == QKCTS_HIDDEN_EXCLUDED;
  std::vector<bool> seen;
  for (std::size_t at = 0; at < input_count; ++at) {
    const auto input = static_cast<Input>(at);
    if (!c.inputs.has(input) || !may_be_special(input) || c.inputs.at(input).all_finite()) continue;
    const std::vector<double> values = c.inputs.at(input).values();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = values[i];
      if (std::isfinite(value) || (input == Input::bias && value == -infinity)) continue;
      if (excludes && is_of_key(input)) {
        if (seen.empty()) seen = seen_keys(c);
        if (!seen[token_of(c, input, i)]) continue;
      }
      if (!visit(input, i)) return;
    }
  }
}

// A number that no clause makes special: a clamp before the norm makes of an infinity what it makes of the largest
// number; everything else is 1.
double stand_in_for(const qkcts_contract& terms, Input input, double value, double largest) {
  const bool clips = (input == Input::q && terms.q_range.clip_before > 0) ||
                     (input == Input::k && terms.k_range.clip_before > 0) ||
                     (input == Input::v && terms.v_range.clip_before > 0);
  return clips && std::isinf(value) ? std::copysign(largest, value) : 1;
}

Case without_special_values(const Case& c) {
  Case result = c;
  const double largest = parameters(c.inputs.format).largest;
  for_each_special(c, [&](Input input, std::size_t i) {
    Tensor& tensor = *result.inputs.tensors[static_cast<std::size_t>(input)];
    const double value = stand_in_for(c.contract.terms, input, tensor.value(i), largest);
    tensor.set_pattern(i, encode(c.inputs.format, value));
    return true;
  });
  return result;
}

}  // namespace

bool has_special_values(const Case& c) {
  bool found = false;
  for_each_special(c, [&found](Input, std::size_t) {
    found = true;
    return false;
  });
  return found;
}

std::string special_value_fault(const Case& c) {
  std::string fault;
  const bool says_nothing = c.contract.terms.softmax.hidden_values == QKCTS_HIDDEN_FINITE;
  std::vector<bool> seen;
  std::optional<Visibility> visibility;
  for_each_special(c, [&](Input input, std::size_t i) {
    const double value = c.inputs.at(input).value(i);
    if (says_nothing && is_of_key(input)) {
      if (seen.empty()) seen = seen_keys(c);
      const std::size_t token = token_of(c, input, i);
      const auto length = static_cast<std::size_t>(c.shape.k_len);
      if (!seen[token])
        fault = fmt::format(
            "input {}[{}]: {} stands at key {} of batch entry {}, which no query sees: under softmax.hidden_values "
            "finite that means nothing",
            input_name(input), i, value, token % length, token / length);
    }
    if (input == Input::bias) {
      if (!visibility) visibility.emplace(c);
      if (hides_everywhere(c, *visibility, i))
        fault = fmt::format("input bias[{}]: {} stands at a hidden key, where it means nothing", i, value);
    }
    return fault.empty();
  });
  return fault;
}

SpecialValues::SpecialValues(const Case& c) : stand_in_(without_special_values(c)) {
  const StageSet stages = stages_of(c.contract.terms);
  for (const qkcts_stage stage : all_stages) lengths_[stage] = row_length(stage, c.shape);
  const auto put = [&](qkcts_stage stage, std::vector<Outcomes>& values) {
    if ((stages & bit(stage)) != 0) outcomes_[stage] = std::move(values);
  };
  SideOutcomes q = query_outcomes(c), k = key_outcomes(c), v = value_outcomes(c);
  SpecialRows rows(c, q.last, k.last, v.last);
  rows.evaluate();
  put(QKCTS_STAGE_Q_PROJ, q.projected);
  put(QKCTS_STAGE_Q_NORM, q.normed);
  put(QKCTS_STAGE_Q_ROPE, q.roped);
  put(QKCTS_STAGE_K_PROJ, k.projected);
  put(QKCTS_STAGE_K_NORM, k.normed);
  put(QKCTS_STAGE_K_ROPE, k.roped);
  put(QKCTS_STAGE_V_NORM, v.normed);
  put(QKCTS_STAGE_SCORES, rows.scores);
  put(QKCTS_STAGE_CAPPED, rows.capped);
  put(QKCTS_STAGE_MASKED, rows.masked);
  put(QKCTS_STAGE_PROBS, rows.probs);
  put(QKCTS_STAGE_LSE, rows.lse);
  put(QKCTS_STAGE_OUTPUT, rows.output);
  hidden_ = std::move(rows.hidden);
  special_rows_ = std::move(rows.special);
}

bool SpecialValues::is_hidden(qkcts_stage stage, std::int64_t row, std::int64_t column) const {
  const bool is_of_scores = stage == QKCTS_STAGE_SCORES || stage == QKCTS_STAGE_CAPPED;
  return is_of_scores && hidden_[static_cast<std::size_t>(row * lengths_[stage] + column)];
}

SpecialJudgement special_judgement(Outcomes outcomes) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (may_be_number(outcomes)) return {ElementRule::free, nan};
  const bool up = (outcomes & outcome::plus_infinity) != 0, down = (outcomes & outcome::minus_infinity) != 0;
  if (up && down) return {ElementRule::not_finite, nan};
  return {ElementRule::special, up ? infinity : down ? -infinity : nan};
}

void put_special_budgets(const SpecialValues& special, const StageRows& rows,
                         std::array<StageBudget, QKCTS_STAGE_COUNT>& budgets) {
  const Case& c = special.stand_in();
  for (const qkcts_stage stage : all_stages) {
    if ((stages_of(c.contract.terms) & bit(stage)) == 0) continue;
    const std::int64_t length = row_length(stage, c.shape);
    StageBudget& budget = budgets[stage];
    std::size_t i = 0;
    for (const std::uint32_t row : rows[stage])
      for (std::int64_t column = 0; column < length; ++column, ++i) {
        const Outcomes outcomes = special.at(stage, row, column);
        if (is_number(outcomes)) continue;
        const bool free = special_judgement(outcomes).rule == ElementRule::free;
        const bool judged = !free || special.is_hidden(stage, row, column);
        budget.delta[i] = judged ? 0.0f : std::numeric_limits<float>::infinity();
        budget.trust[i] = judged ? Trust::judged : Trust::domain;
      }
  }
}

}  // namespace qkcts
