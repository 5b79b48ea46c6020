// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "conformance/neighbour.hpp"

namespace qkcts {

// The neighbours whose liveness is worth asking for (P12): at most one for each clause that kernels are known to accept
// and ignore, and only such as the same inputs fit. Whether the inputs tell them apart is decided when they are sealed.
std::vector<Neighbour> ignored_clauses(const qkcts_contract& terms, const qkcts_shape& shape, Format format);

}  // namespace qkcts
