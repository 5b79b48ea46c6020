// SPDX-License-Identifier: Apache-2.0
#include "vectors/generate_relations.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "vectors/generate.hpp"
#include "vectors/relation_proof.hpp"
#include "vectors/row_selection.hpp"

namespace qkcts {
namespace {

// Evidence of the first case, without statistics: budgets of the profiles that the second one kept.
GoldenCase first_case(const PlannedCase& first, const GoldenCase& second, Tier tier) {
  GoldenCase golden;
  golden.input = make_case(first, golden.first_position);
  golden.profiles = second.profiles;
  golden.own_profiles = second.own_profiles;
  const StageRows rows = select_rows(first.contract.terms, first.shape, first.rows, first.seed);
  golden.stages = make_evidence(golden.input, rows, profiles_named(golden.profiles, golden.own_profiles), tier).stages;
  return golden;
}

// Products of a weight and a value stay normal numbers in single precision, so that factors of 2^k meet no underflow.
void require_ordinary_weights(const GoldenCase& golden) {
  const ProvenStage& weights = golden.stages[QKCTS_STAGE_PROBS].values;
  for (std::size_t i = 0; i < weights.hi.size(); ++i)
    if (weights.rule[i] != ElementRule::exact_clause && weights.hi[i] != 0 && !(std::fabs(weights.hi[i]) >= 0x1p-60))
      throw RelationInapplicable("a weight is so small that its product may underflow");
}

Relation completed(const PlannedRelation& planned, const GoldenCase& first) {
  Relation relation = planned.relation;
  const RelationRecipe& recipe = relation_recipe(relation.kind);
  if (recipe.parameters != nullptr) recipe.parameters(relation, first.input);
  if (relation.kind == RelationKind::value_scale) require_ordinary_weights(first);
  return relation;
}

}  // namespace

SealedRelations seal_relations(const PlannedCase& planned, const GoldenCase& golden, Tier tier) {
  SealedRelations sealed;
  std::map<std::string, GoldenCase> firsts;
  for (const PlannedRelation& entry : planned.relations) {
    const RelationRow& row = qkcts::row(entry.relation.kind);
    try {
      const bool pair = entry.first != nullptr;
      if (pair && !firsts.contains(entry.first->slug))
        firsts.emplace(entry.first->slug, first_case(*entry.first, golden, tier));
      const GoldenCase& first = pair ? firsts.at(entry.first->slug) : golden;
      Relation relation = completed(entry, first);
      const std::string contradiction = relation_contradiction(relation, first, pair ? &golden : nullptr);
      const bool depends_on_inputs =
          row.rule == RelationRule::differ || row.rule == RelationRule::apart || row.rule == RelationRule::reference;
      if (contradiction.empty()) {
        sealed.relations.push_back(std::move(relation));
      } else if (depends_on_inputs) {
        sealed.says_nothing.push_back(fmt::format("{}: {}", relation.slug, contradiction));
      } else {
        sealed.refusal =
            fmt::format("relation {} does not hold of the proven values: {}", relation.slug, contradiction);
      }
    } catch (const RelationInapplicable& inapplicable) {
      sealed.says_nothing.push_back(fmt::format("{}: {}", entry.relation.slug, inapplicable.what()));
    }
  }
  return sealed;
}

}  // namespace qkcts
