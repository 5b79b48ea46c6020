// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "conformance/budget.hpp"

namespace qkcts {

// Which rows of each stage of the contract are stored: all of output and lse; of the others at most `limit` (0: all):
// first, last, tokens at the edges of tiles of 16, 32, 64, 128 and 256 in drawn heads, the rest drawn. Ascending.
StageRows select_rows(const qkcts_contract& terms, const qkcts_shape& shape, std::uint32_t limit, std::uint64_t seed);

}  // namespace qkcts
