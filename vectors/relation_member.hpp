// SPDX-License-Identifier: Apache-2.0
// What a plan knows of relations before anything is drawn.
#pragma once

#include <memory>
#include <string>

#include "vectors/relation_recipe.hpp"

namespace qkcts {

struct PlannedCase;

// A planned case that is made from a drawn one as a part of a relation.
struct RelationMember {
  RelationKind kind;
  Part part;
  std::shared_ptr<const PlannedCase> drawn;
};

// A relation that is complete with the case that carries it: its only one, or the second of a pair.
struct PlannedRelation {
  Relation relation;                         // without what its inputs decide
  std::shared_ptr<const PlannedCase> first;  // of a pair
};

// Throws RelationInapplicable.
Case member_case(const RelationMember& member, const PlannedCase& planned, Case drawn);
std::string member_description(const RelationMember& member);

}  // namespace qkcts
