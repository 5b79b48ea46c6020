// SPDX-License-Identifier: Apache-2.0
// Error of the product with v: docs/budgets.md, O1 to O3.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "conformance/budget_extent.hpp"
#include "conformance/budget_row_weights.hpp"

namespace qkcts {

// Rows of v that belong to the keys of RowWeights, in the same order.
struct ValueRows {
  std::vector<const double*> v;   // one pointer per key, to Dv numbers
  const double* error = nullptr;  // how far a value of v may be off when it is read, by its offset in the same tensor
  const double* base = nullptr;
  double inexact = 0;  // relative accuracy of values that a norm has made; 0: they are inputs, and read as 0 at worst
  std::size_t length = 0;               // Dv
  std::span<const double> blur;         // how far the exact outputs may be from those given; empty: 2^-49 of them
  const ValueExtent* extent = nullptr;  // of all keys, if it is known already

  const double* error_of(const double* row) const { return error == nullptr ? nullptr : error + (row - base); }
};

struct OutputError {
  std::vector<double> error;  // infinite: domain
  std::vector<double> hull;   // largest |v_j - o|; 0 if all values are equal
};

// Sums over the visible keys, one per output element, that depend on their weights: those of ValueSums, and
// sum p e^t Dv; what else output_errors() makes of an element on its way. Working memory.
struct OutputSums {
  std::vector<double> moved, spread, weighted, blur;
  std::vector<double> read, extremal, aligned;  // empty where there is nothing to say
  std::vector<double> nothing, infinite;        // then 0 or infinity stand in their places
};

void output_errors(const RowWeights& weights, const ValueRows& values, std::span<const double> exact, double slots,
                   const BudgetArithmetic& arithmetic, OutputSums& sums, OutputError& result);

inline OutputError output_errors(const RowWeights& weights, const ValueRows& values, std::span<const double> exact,
                                 double slots, const BudgetArithmetic& arithmetic) {
  OutputSums sums;
  OutputError result;
  output_errors(weights, values, exact, slots, arithmetic, sums, result);
  return result;
}

}  // namespace qkcts
