// SPDX-License-Identifier: Apache-2.0
// A case with its sealed evidence, as it stands in a corpus. docs/vector_format.md
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "conformance/budget.hpp"
#include "conformance/case.hpp"
#include "conformance/evidence.hpp"
#include "vectors/own_profile.hpp"

namespace qkcts {

struct GoldenStage {
  bool present = false;
  ProvenStage values;
  std::vector<StageBudget> budgets;  // one per profile of the case, elements as in values
};

struct Range {  // minimum, median and maximum over the rows with a visible key
  double min = 0, median = 0, max = 0;
};

// How surely the case tells its contract from neighbouring ones (reference/separation.hpp), as lower bounds. The axes
// are [neighbour][stage][profile]: the stages and profiles of the case in their order.
struct SeparationRecord {
  std::vector<std::string> neighbours;  // different names, as neighbours() gives them
  std::vector<float> values;  // >= 0; infinity: the classes of a value differ; no_separation: no such stage there
  std::vector<std::uint32_t> places;  // row and column of the element, two for each value; 0 and 0 where it is not > 0
};
constexpr float no_separation = std::numeric_limits<float>::quiet_NaN();

struct GoldenCase {
  Case input;  // slug, contract, shape, input tensors
  std::string family;
  std::string description;  // one line: why the case exists
  std::uint64_t seed = 0;
  std::int64_t first_position = 0;  // row r of cos and sin belongs to position first_position + r; 0 without tables
  std::vector<std::string> profiles;
  OwnProfiles own_profiles;  // of those that are not shipped
  std::array<GoldenStage, QKCTS_STAGE_COUNT> stages;
  Range entropy, p_max, score_max;
  // From format version 4 on: the largest p (1 - p) of a row, which is the largest diagonal entry of the Jacobian of
  // its softmax; and the separations, of which there are none without it.
  std::optional<Range> jacobian;
  SeparationRecord separation;
  std::string digest;  // SHA-256 of names, shapes, formats and raw bits
};

}  // namespace qkcts
