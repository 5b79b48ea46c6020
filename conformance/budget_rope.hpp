// SPDX-License-Identifier: Apache-2.0
// Error of the rotary embedding: docs/budgets.md, R1 and R2.
#pragma once

#include <cstdint>

#include <qkcts/contract.h>

#include "conformance/budget_arithmetic.hpp"
#include "conformance/budget_vector.hpp"

namespace qkcts {

// Lanes of one rotated pair: (a, b) -> (a cos - b sin, b cos + a sin), or the same with the signs of sin exchanged.
struct RopePair {
  std::int64_t a = 0;
  std::int64_t b = 0;
};
RopePair rope_pair(const qkcts_rope& rope, std::int64_t head_dim, std::int64_t pair);
std::int64_t rope_pairs(const qkcts_rope& rope, std::int64_t head_dim);

// Errors of rotated lanes, moved to where the layout leaves them.
void settle_errors(VectorError& vector, const qkcts_rope& rope, const qkcts_rotation& rotation, std::int64_t head_dim);

struct TableEntry {
  double cos = 1, sin = 0;
  double cos_error = 0, sin_error = 0;  // operand_error of either
};

// Rotates one pair in place: own errors of lanes a and b. `domain` is set if a product may overflow.
// The common factor of the vector passes a rotation unchanged and must be below 1/2.
void rotate_errors(VectorError& vector, RopePair pair, const TableEntry& table, const BudgetArithmetic& arithmetic);

}  // namespace qkcts
