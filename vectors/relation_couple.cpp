// SPDX-License-Identifier: Apache-2.0
#include "vectors/relation_couple.hpp"

#include <algorithm>

namespace qkcts {
namespace {

RelationCase relation_case(const GoldenCase& golden) {
  return {golden.input.contract.terms, golden.input.shape, golden.input.inputs.format};
}

}  // namespace

bool is_compared(ElementRule rule) {
  return rule == ElementRule::budget || rule == ElementRule::budget_exact || rule == ElementRule::exact_clause;
}

void each_couple(const Relation& relation, const GoldenCase& first, const GoldenCase& second, StageSet stages,
                 const std::function<void(const Couple&)>& visit) {
  const RelationCase a_case = relation_case(first), b_case = relation_case(second);
  const RelationImage image(relation, a_case, b_case);
  for (const qkcts_stage stage : all_stages) {
    if ((relation.stages & stages & bit(stage)) == 0) continue;
    const ProvenStage &a = first.stages[stage].values, &b = second.stages[stage].values;
    const auto width = static_cast<std::size_t>(row_length(stage, first.input.shape));
    for (std::size_t i = 0; i < a.rows.size() * width; ++i) {
      const auto column = static_cast<std::uint32_t>(i % width);
      const std::optional<ElementImage> to = image.of(stage, a.rows[i / width], column);
      if (!to || !is_compared(a.rule[i])) continue;
      const auto row = std::lower_bound(b.rows.begin(), b.rows.end(), to->row);
      if (row == b.rows.end() || *row != to->row) continue;
      const std::size_t j = static_cast<std::size_t>(row - b.rows.begin()) * width + to->column;
      if (is_compared(b.rule[j])) visit({stage, i, j, a.rows[i / width], column, *to});
    }
  }
}

}  // namespace qkcts
