// SPDX-License-Identifier: Apache-2.0
// What two contracts make of the same inputs in the same way.
#pragma once

#include "conformance/case.hpp"
#include "reference/case_values.hpp"

namespace qkcts {

// Do q, k and v mean the same under both, up to what the scores are made of? Clauses of projection, norm, rotation and
// their rounding points, and all inputs that these read, are equal.
bool have_same_vectors(const Case& a, const Case& b);

// The same of one side alone, its points included (of q: that of q times the scale), where the clauses of another side,
// and the inputs that only that side reads, may differ.
bool have_same_side(const Case& a, const Case& b, Side side);

}  // namespace qkcts
