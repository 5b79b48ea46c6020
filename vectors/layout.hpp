// SPDX-License-Identifier: Apache-2.0
// How tensors and stages of a case are laid out as datasets; the writer and the reader both ask here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/case.hpp"
#include "vectors/hdf5_file.hpp"

namespace qkcts {

StoredType stored_type(ElementType type);
std::vector<std::string> input_dimensions(Input input, std::size_t rank);

// Is a row of the stage one of a key, and not of a query?
bool is_of_keys(qkcts_stage stage);

// Axes of `expected`, value_hi, value_lo and rule: the stage's own where every row is stored, else [rows, row length].
struct StageLayout {
  std::vector<std::uint64_t> extents;
  std::vector<std::string> dimensions;
};
StageLayout stage_layout(qkcts_stage stage, const qkcts_shape& shape, std::uint64_t stored_rows);
// The same behind a leading axis of profiles: budget and trust.
StageLayout per_profile(const StageLayout& layout, std::size_t profiles);
// Of the separations: [neighbour, stage of the case, profile]; and of the elements, row and column behind them.
StageLayout separation_layout(std::size_t neighbours, StageSet stages, std::size_t profiles);
StageLayout with_coordinates(const StageLayout& layout);

}  // namespace qkcts
