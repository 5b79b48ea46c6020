// SPDX-License-Identifier: Apache-2.0
// The outputs of one or two cases against a relation. No golden value is used: budgets are, where bits need not agree,
// and of the evidence which elements are hidden. docs/relations.md
#pragma once

#include <span>

#include "harness/adapter_description.hpp"
#include "harness/execution.hpp"
#include "harness/relation_result.hpp"
#include "vectors/golden_case.hpp"

namespace qkcts {

struct RelationRun {
  const GoldenCase& golden;
  const StageBytes& outputs;  // of the first call; empty where a stage was not asked for
  StageSet restless = 0;      // stages whose bits differed between the calls
  std::string profile;        // by which the case is judged
};

// By which rule this adapter is judged: bits need not agree where it declares that its order depends on the data, or
// where it claims neither to repeat itself nor did.
RelationRule binding_rule(const Relation& relation, const AdapterDescription& description,
                          std::span<const RelationRun> runs);

RelationResult judge_relation(const Relation& relation, const AdapterDescription& description,
                              std::span<const RelationRun> runs);

}  // namespace qkcts
