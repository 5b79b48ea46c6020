// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "conformance/neighbour.hpp"

namespace qkcts {

// Contracts with numbers that kernels have by mistake, beyond those of neighbours(): usual defaults that were compiled
// in, widths taken for other widths, factors applied twice or the wrong way round, a diagonal that is one off.
std::vector<Neighbour> usual_numbers(const qkcts_contract& own, const qkcts_shape& shape);

}  // namespace qkcts
