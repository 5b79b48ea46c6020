// SPDX-License-Identifier: Apache-2.0
// The elements of two cases that belong together under a relation.
#pragma once

#include <cstddef>
#include <functional>

#include "vectors/golden_case.hpp"
#include "vectors/relation_image.hpp"

namespace qkcts {

// An element that both cases store and neither hides: its places in the arrays of stored elements, and in the stage.
struct Couple {
  qkcts_stage stage;
  std::size_t first, second;
  std::uint32_t row, column;  // in the first case
  ElementImage image;         // with row and column in the second
};

// Of the stages of the relation that are in `stages`, in order of evaluation.
void each_couple(const Relation& relation, const GoldenCase& first, const GoldenCase& second, StageSet stages,
                 const std::function<void(const Couple&)>& visit);

// Is the element a number that is judged: no hidden position, no special value?
bool is_compared(ElementRule rule);

}  // namespace qkcts
