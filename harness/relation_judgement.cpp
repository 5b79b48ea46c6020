// SPDX-License-Identifier: Apache-2.0
#include "harness/relation_judgement.hpp"

#include "harness/relation_elements.hpp"

namespace qkcts {

RelationRule binding_rule(const Relation& relation, const AdapterDescription& description,
                          std::span<const RelationRun> runs) {
  const RelationRule rule = row(relation.kind).rule;
  if (rule != RelationRule::bitwise && rule != RelationRule::bitwise_in_batch) return rule;
  if (rule == RelationRule::bitwise_in_batch && description.batch_invariant != Claim::made) return RelationRule::delta;
  if (description.data_dependent_order == Claim::made) return RelationRule::delta;
  // Who says to repeat itself is held to that by not_repeatable.
  StageSet restless = 0;
  for (const RelationRun& run : runs) restless |= run.restless;
  if ((restless & relation.stages) != 0 && description.bitwise_repeatable != Claim::made) return RelationRule::delta;
  return RelationRule::bitwise;
}

RelationResult judge_relation(const Relation& relation, const AdapterDescription& description,
                              std::span<const RelationRun> runs) {
  RelationResult result;
  result.slug = relation.slug;
  result.kind = relation.kind;
  result.cases = relation.cases;
  result.rule = binding_rule(relation, description, runs);
  result.format = runs.front().golden.input.inputs.format;
  result.first_shape = runs.front().golden.input.shape;
  result.second_shape = runs.back().golden.input.shape;
  result.profile = runs.front().profile;
  if (result.rule == RelationRule::reference) {
    result.verdict = Verdict::skipped;
    result.detail = "proven indistinguishable: " + std::string(row(relation.kind).statement);
    return result;
  }
  RelationTally tally(result);
  const RelationElements first(runs.front()), second(runs.back());
  switch (result.rule) {
    case RelationRule::bound:
      judge_bounds(relation, first, tally);
      break;
    case RelationRule::order:
      judge_order(first, second, tally);
      break;
    default:
      judge_pair(relation, result.rule, first, second, tally);
  }
  tally.finish();
  return result;
}

}  // namespace qkcts
