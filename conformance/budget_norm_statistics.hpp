// SPDX-License-Identifier: Apache-2.0
// Mean, statistic and root of a norm, and how far off they may be: docs/budgets.md, N1 to N4.
#pragma once

#include <span>

#include <qkcts/contract.h>

#include "conformance/budget_arithmetic.hpp"

namespace qkcts {

// What is common to all elements of one normalised vector.
struct NormStatistics {
  double mean_high = 0;  // exact mean as an unevaluated sum; 0 if the norm does not centre
  double mean_low = 0;
  double mean_error = 0;  // E: how far the computed mean may be from that of the inputs as read
  double mean_input = 0;  // mean of the input errors
  double root = 1;        // d
  double root_lower = 1;  // least d that may be computed
  double root_upper = 1;  // largest
  // How far `root` and an exact difference from the mean may be from what is given here, and the share of x itself.
  double root_blur = 0;
  double mean_blur = 0;
  double inexact = 0;
  double common = 0;    // rho: d/d' lies within 1 -+ rho
  bool domain = false;  // the statistic may overflow, or d' may reach 0
};

// `x` are the values to be normalised (all heads of the token for a full-width norm), `error` how far each may be off.
// `inexact` is the relative accuracy to which x itself is known (0 for inputs of the case).
NormStatistics norm_statistics(const qkcts_norm& norm, std::span<const double> x, std::span<const double> error,
                               double inexact, const BudgetArithmetic& arithmetic);

}  // namespace qkcts
