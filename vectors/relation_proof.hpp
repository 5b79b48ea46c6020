// SPDX-License-Identifier: Apache-2.0
// A relation against the proven values of its cases: what a corpus claims of adapters holds of the exact values first.
#pragma once

#include <string>

#include "vectors/golden_case.hpp"
#include "vectors/relation.hpp"

namespace qkcts {

// Empty if the values keep the relation, else where they do not, as one line. `second` is null for one case. The cases
// need inputs and stages; budgets only for rules that ask for a distance.
std::string relation_contradiction(const Relation& relation, const GoldenCase& first, const GoldenCase* second);

// How far apart the exact values stand under the profile that separates them least: the largest |z1 - z2| / (Delta1 +
// Delta2) over the stages. 0 without a profile in common.
double least_separation(const Relation& relation, const GoldenCase& first, const GoldenCase& second);

// What that must exceed so that every adapter that is right on both cases differs as the rule says. Bits differ where
// |got1 - got2| >= |z1 - z2| - Delta1 - Delta2 > 0; they are apart by more than Delta1 + Delta2 from 2 on.
double needed_separation(RelationRule rule);

}  // namespace qkcts
