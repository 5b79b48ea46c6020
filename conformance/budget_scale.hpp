// SPDX-License-Identifier: Apache-2.0
// The constant by which <q, k> is multiplied, and how far it may be off: docs/budgets.md, S2, S4 and S5.
#pragma once

#include <cstdint>

#include "conformance/budget_arithmetic.hpp"
#include "conformance/case.hpp"

namespace qkcts {

struct ScoreScale {
  double tau = 1;       // |scale / T|
  double relative = 0;  // its relative error in the worst form that it may take, and that of its product
  bool domain = false;  // it may overflow or vanish: not judged, nor anything that depends on it
  double partial = 1;   // of several constants, at least the product of any: some may be folded into q, others not
};

// Scale and temperature of a query head.
ScoreScale scale_terms(const Case& c, std::int64_t head, const BudgetArithmetic& arithmetic);

// The same for a query at this position id: with the temperature by position, where the contract has one.
ScoreScale scale_at_position(const ScoreScale& scale, const qkcts_logits& logits, double position,
                             const BudgetArithmetic& arithmetic);

}  // namespace qkcts
