// SPDX-License-Identifier: Apache-2.0
// Error of a rotation whose products are rounded before they are added (QK-ROUND): docs/budgets.md, Q1.
#pragma once

#include "conformance/budget_rope.hpp"
#include "conformance/budget_rounding.hpp"

namespace qkcts {

// Does a table entry hold cosine and sine themselves, or only how large they may be (computed angles)?
enum class WaveKnowledge : std::uint8_t { value, size };

// Rotates one pair in place; the vector must not have a common factor any more.
void rotate_rounded_errors(VectorError& vector, RopePair pair, const TableEntry& table, WaveKnowledge knowledge,
                           const RoundingPoint& product, const BudgetArithmetic& arithmetic);

}  // namespace qkcts
