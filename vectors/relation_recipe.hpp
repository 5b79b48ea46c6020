// SPDX-License-Identifier: Apache-2.0
// How the cases of a relation are made from one that was drawn: what changes in contract, shape and inputs, and for
// which contracts that leaves a relation at all.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "conformance/case.hpp"
#include "vectors/relation.hpp"

namespace qkcts {

enum class Part : std::uint8_t { first, second };

// These inputs do not admit the transformation (a number would not be exact), or the relation says nothing on them.
class RelationInapplicable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct RelationRecipe {
  RelationKind kind;
  // Why the relation does not hold, or cannot be made, under this contract; empty if it can.
  std::string (*fault)(const qkcts_contract& terms, const qkcts_shape& shape, Format format);
  // The parts, from the drawn case; null: unchanged. Inputs may throw RelationInapplicable.
  void (*terms)(qkcts_contract& terms, Part part) = nullptr;
  void (*shape)(qkcts_shape& shape, Part part) = nullptr;
  void (*inputs)(Case& c, Part part) = nullptr;  // under the drawn contract and shape
  // Fills what the relation has to say of its transformation, from the first case as it is made.
  void (*parameters)(Relation& relation, const Case& first) = nullptr;
  bool changes_first = false;  // the first case is not the drawn one either
};

// Of liveness none: its contracts are the neighbours of relation_plan.cpp.
const RelationRecipe& relation_recipe(RelationKind kind);
std::span<const RelationRecipe> norm_recipes();    // P2, P3, P7
std::span<const RelationRecipe> bound_recipes();   // P1, P4, P6
std::span<const RelationRecipe> score_recipes();   // P5
std::span<const RelationRecipe> value_recipes();   // P9
std::span<const RelationRecipe> layout_recipes();  // P8, P10, P11
std::span<const RelationRecipe> clause_recipes();  // P12

// The part of a relation that a drawn case becomes. `terms` are those of the part.
Case relation_part(const RelationRecipe& recipe, Part part, const Contract& contract, Case drawn);

// Every element of an input replaced by what `change` makes of it. Throws RelationInapplicable unless all of them are
// numbers of the format.
void change_input(Case& c, Input input, const std::function<double(double)>& change);
// Larger exponents overflow nothing that a norm forms, and none of the numbers is so small that its square vanishes.
void require_moderate(const Case& c, Input input);

// Faults that several relations share; empty if there is none.
std::string point_fault(const qkcts_contract& terms);       // declared rounding
std::string projection_fault(const qkcts_contract& terms);  // q and k are no inputs

}  // namespace qkcts
