// SPDX-License-Identifier: Apache-2.0
// From a planned relation and its drawn cases to what a corpus holds.
#pragma once

#include <string>
#include <vector>

#include "vectors/generate.hpp"
#include "vectors/golden_case.hpp"
#include "vectors/plan.hpp"

namespace qkcts {

struct SealedRelations {
  std::vector<Relation> relations;
  std::vector<std::string> says_nothing;  // "SLUG: reason": the inputs do not bring the relation out
  std::string refusal;                    // proven values contradict a relation: a fault of this program
};

// The relations that are complete with the planned case, whose evidence is `golden`. The first case of a pair is
// evaluated once more. Throws UndecidedError.
SealedRelations seal_relations(const PlannedCase& planned, const GoldenCase& golden, Tier tier);

}  // namespace qkcts
