// SPDX-License-Identifier: Apache-2.0
// Error of what stands around a norm: clamps and the constant factor. docs/budgets.md, N8 and N9.
#pragma once

#include <span>

#include <qkcts/contract.h>

#include "conformance/budget_arithmetic.hpp"
#include "conformance/budget_vector.hpp"

namespace qkcts {

// min(max(x, -bound), bound), with a bound that may be rounded.
struct Clamp {
  double bound = 0;  // 0: none
  double error = 0;  // absolute error of the bound

  bool exists() const { return bound > 0; }
  double value(double x) const;
  // Error of the clamped number: `x` is known to within `blur`, what is clamped is off by at most x_error.
  double moved(double x, double x_error, double blur = 0) const;
  // May the bound be met?
  bool reached(double x, double x_error, double blur) const { return reach(x, x_error, blur) >= bound - error; }

 private:
  static double reach(double x, double x_error, double blur);
};
Clamp clamp_terms(double bound, const BudgetArithmetic& arithmetic);

// The constant factor after the norm; value 1: none.
struct ConstantFactor {
  double value = 1;
  double relative = 0;  // error of the constant

  bool exists() const { return value != 1; }
  // Error of a product of its own: of x, off by at most x_error.
  double moved(double x, double x_error, const BudgetArithmetic& arithmetic) const;
};
ConstantFactor factor_terms(double multiplier, const BudgetArithmetic& arithmetic);

// Clamps a vector: `before` are its exact numbers, known to within `blur` each. Where no number can meet the bound, the
// common factor of the vector is kept; a bound does not carry it.
void clamp_errors(VectorError& vector, std::span<const double> before, std::span<const double> blur,
                  const Clamp& clamp);

}  // namespace qkcts
