// SPDX-License-Identifier: Apache-2.0
// Errors of the soft cap, of the additive bias and of the linear one: docs/budgets.md, C1 to C6.
#pragma once

#include <span>
#include <vector>

#include "conformance/budget_arithmetic.hpp"
#include "conformance/case.hpp"

namespace qkcts {

// Cap and biases of one score.
struct CapTerms {
  double cap = 0;        // 0: none
  double cap_error = 0;  // relative error of the constant
  double quotient = 0;   // relative error of s / c
  bool bias_before = false, bias_after = false;
  bool linear = false;
  double underflow = 0;  // of one operation
  double function = 0;   // relative error of c tanh(s / c) beside that of the argument
  double absolute = 0;   // its absolute one

  bool is_cap_alone() const { return cap > 0 && !bias_before && !bias_after && !linear; }
};
CapTerms cap_terms(const Case& c, const BudgetArithmetic& arithmetic);

// A number that is added to a score.
struct Addend {
  double value = 0;
  double error = 0;
};

// Linear bias of a slope in `format` and a distance, a whole number; infinite error where it may overflow.
Addend linear_bias_errors(double slope, Format format, double distance, const BudgetArithmetic& arithmetic);

struct CappedError {
  double error = 0;          // as the stage is observed
  double softmax_error = 0;  // as the softmax sees it: a base-2 kernel may scale score and biases separately
};
CappedError capped_error(const CapTerms& terms, double score, double score_error, const Addend& bias,
                         const Addend& linear, double exact_capped, const BudgetArithmetic& arithmetic);

// One score of several.
struct CapInput {
  double score = 0, error = 0;
  Addend bias, linear;
  double exact = 0;  // as the stage has it
};
// The same as of each alone. `exponentials` is working memory.
void capped_errors(const CapTerms& terms, std::span<const CapInput> scores, const BudgetArithmetic& arithmetic,
                   std::vector<double>& exponentials, std::vector<CappedError>& errors);

// And where the cap is alone: an array for each number, those of CappedError last.
void capped_errors(const CapTerms& terms, std::span<const double> scores, std::span<const double> errors,
                   std::span<const double> exact, const BudgetArithmetic& arithmetic, std::vector<double>& exponentials,
                   std::span<double> capped, std::span<double> softmax_errors);

}  // namespace qkcts
