// SPDX-License-Identifier: Apache-2.0
// How far a weighted mean can move when every weight is off by its own factor: docs/budgets.md, "Output", O5.
#pragma once

#include <span>
#include <vector>

#include "conformance/budget_output.hpp"

namespace qkcts {

// Whether the exact form is worth its cost: where exponents are off by more than a few per cent because operands, sums
// or declared rounding points lose that much. A function of case and profile alone.
bool extremal_form_pays(const RowWeights& weights);

// Per output element an upper bound of |o' - o| over all weights p_j w_j with |ln w_j| <= t_j; infinity where none was
// found. `blur`: how far the exact outputs may be from those given.
std::vector<double> extremal_moves(const RowWeights& weights, const ValueRows& values, std::span<const double> exact,
                                   std::span<const double> blur);

}  // namespace qkcts
