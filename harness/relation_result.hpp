// SPDX-License-Identifier: Apache-2.0
// What became of one relation, and of which elements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/coordinates.hpp"
#include "harness/verdict.hpp"
#include "vectors/relation.hpp"

namespace qkcts {

// The first element that breaks it. `second` is the element of the second case, or the same one where there is none.
struct RelationBreach {
  qkcts_stage stage = QKCTS_STAGE_OUTPUT;
  ElementCoordinates first, second;
  std::uint64_t first_bits = 0, second_bits = 0;
  double first_value = 0, second_value = 0;
  double due = 0;      // of the second: what the first makes of it; of one case: the bound
  double allowed = 0;  // how far off it may be: 0 where bits are compared
  std::string what;    // "row sum" and the like; empty: the element itself
};

struct RelationResult {
  std::string slug;
  RelationKind kind = RelationKind::score_bound;
  RelationRule rule = RelationRule::bitwise;  // by which it was judged
  std::vector<std::string> cases;
  Format format = Format::binary32;
  qkcts_shape first_shape{}, second_shape{};
  std::string profile;
  Verdict verdict = Verdict::not_run;
  std::string detail;          // why, unless the breach says it
  std::uint64_t compared = 0;  // elements, rows or pairs of elements
  std::uint64_t violated = 0;
  std::optional<RelationBreach> breach;
};

}  // namespace qkcts
