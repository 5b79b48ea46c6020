// SPDX-License-Identifier: Apache-2.0
// Error of a query that is multiplied by everything that multiplies its scores, and rounded (QK-ROUND, `scaled_q`).
#pragma once

#include "conformance/budget_rounding.hpp"
#include "conformance/budget_scale.hpp"

namespace qkcts {

// q becomes the rounded q tau. Docs/budgets.md, Q1; the scale is known to within `inexact` of its size.
void scale_and_round(VectorError& q, const ScoreScale& scale, double inexact, const RoundingPoint& point,
                     const BudgetArithmetic& arithmetic);

// How well binary64 knows the scale: exponentials and logarithms are moved outward (sound_math).
double scale_accuracy(const qkcts_contract& terms);

}  // namespace qkcts
