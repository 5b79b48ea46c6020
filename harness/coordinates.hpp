// SPDX-License-Identifier: Apache-2.0
// Where an element of a stage stands: its flattened row and column, its index tuple, and the text of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract.hpp"

namespace qkcts {

struct ElementCoordinates {
  std::uint32_t row = 0;     // flattened leading axes of the stage
  std::uint32_t column = 0;  // within the row
};

// Index per axis of stage_shape(); lse has no column axis.
std::vector<std::int64_t> index_of(qkcts_stage stage, const qkcts_shape& shape, ElementCoordinates place);

// "b0 h5 t17 c92": batch, head, token (query or key), and c: lane of D or Dv, or k: key.
std::string coordinate_text(qkcts_stage stage, const qkcts_shape& shape, ElementCoordinates place);

// "0,5,17,92", as `qkcts explain` takes it.
std::string index_text(qkcts_stage stage, const qkcts_shape& shape, ElementCoordinates place);

// Inverse of index_text(). Throws UsageError if the text is no index of this many axes, or one that lies outside.
ElementCoordinates place_from_text(qkcts_stage stage, const qkcts_shape& shape, std::string_view text);

}  // namespace qkcts
