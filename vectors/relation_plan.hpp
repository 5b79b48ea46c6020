// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "vectors/plan.hpp"

namespace qkcts {

// "P2" stands for every kind of that id, "eps_rescaling" for one. Throws InputError listing the names.
std::vector<RelationKind> relation_kinds(const std::string& name);

// Adds the relations of these kinds that the last case of the plan admits, and the cases that are made from it for
// them. What does not apply is listed in plan.unrelated.
void append_relations(Plan& plan, const std::vector<std::string>& names);

}  // namespace qkcts
