// SPDX-License-Identifier: Apache-2.0
#include "harness/relation_elements.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "harness/judgement.hpp"

namespace qkcts {

RelationElements::RelationElements(const RelationRun& run)
    : run_(run),
      profile_(static_cast<std::size_t>(std::find(run.golden.profiles.begin(), run.golden.profiles.end(), run.profile) -
                                        run.golden.profiles.begin())) {}

std::size_t RelationElements::width(qkcts_stage stage) const {
  return static_cast<std::size_t>(row_length(stage, run_.golden.input.shape));
}

OutputElement RelationElements::at(qkcts_stage stage, std::uint32_t row, std::uint32_t column) const {
  const Format form = format(stage);
  const std::size_t size = element_size(element_type(form));
  OutputElement element;
  std::memcpy(&element.bits, run_.outputs[stage].data() + (row * width(stage) + column) * size, size);
  element.value = decode(form, element.bits);
  element.unwritten = element.bits == poison_pattern(form);
  return element;
}

ElementRule RelationElements::rule(qkcts_stage stage, std::size_t stored) const {
  return run_.golden.stages[stage].values.rule[stored];
}

std::optional<double> RelationElements::delta(qkcts_stage stage, std::size_t stored) const {
  if (!has_budgets()) return std::nullopt;
  const StageBudget& budget = run_.golden.stages[stage].budgets[profile_];
  if (budget.trust[stored] != Trust::judged) return std::nullopt;
  return static_cast<double>(budget.delta[stored]);
}

StageSet RelationElements::stages() const {
  StageSet written = 0;
  for (const qkcts_stage stage : all_stages)
    if (!run_.outputs[stage].empty()) written |= bit(stage);
  return written;
}

void RelationTally::violated(const RelationBreach& breach) {
  ++result_.violated;
  if (!result_.breach) result_.breach = breach;
}

void RelationTally::unwritten(qkcts_stage stage, ElementCoordinates place) {
  if (result_.verdict == Verdict::error_unwritten) return;
  result_.verdict = Verdict::error_unwritten;
  result_.detail =
      fmt::format("{}[{}] was never written", stage_name(stage), coordinate_text(stage, result_.first_shape, place));
}

void RelationTally::finish() {
  if (result_.verdict == Verdict::error_unwritten) return;
  if (result_.violated > 0) {
    result_.verdict = Verdict::fail;
  } else if (result_.compared > 0) {
    result_.verdict = Verdict::pass;
  } else {
    result_.verdict = mistrusted_ > 0 ? Verdict::mistrusted : Verdict::skipped;
    result_.detail =
        mistrusted_ > 0 ? "no element has a budget that it could be judged by" : "none of its elements is observable";
  }
}

bool surely_exceeds(double difference, double allowed) {
  // At most eight roundings of 2^-53 on either side.
  return std::fabs(difference) * (1 - 0x1p-49) > allowed * (1 + 0x1p-49);
}

}  // namespace qkcts
