// SPDX-License-Identifier: Apache-2.0
#include "vectors/relation_member.hpp"

#include <fmt/format.h>

#include "conformance/neighbour.hpp"
#include "vectors/plan.hpp"

namespace qkcts {

Case member_case(const RelationMember& member, const PlannedCase& planned, Case drawn) {
  Case made;
  if (member.kind == RelationKind::liveness) {
    std::optional<Case> other = case_under(drawn, planned.contract.terms);
    if (!other) throw RelationInapplicable("the inputs do not fit the neighbouring contract");
    made = std::move(*other);
    made.contract = planned.contract;
  } else {
    made = relation_part(relation_recipe(member.kind), member.part, planned.contract, std::move(drawn));
  }
  made.slug = planned.slug;
  return made;
}

std::string member_description(const RelationMember& member) {
  const RelationRow& relation = row(member.kind);
  return fmt::format("{} {}: {}; made from {}", relation.id, relation.name, relation.statement, member.drawn->slug);
}

}  // namespace qkcts
