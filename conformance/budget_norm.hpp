// SPDX-License-Identifier: Apache-2.0
// Error of a norm: docs/budgets.md, N1 to N7.
#pragma once

#include <span>
#include <vector>

#include <qkcts/contract.h>

#include "conformance/budget_arithmetic.hpp"
#include "conformance/budget_range.hpp"

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

// Gain, bias and constant factor that act on one element.
struct ElementParameters {
  double gain = 1;  // the factor: w or 1 + w
  double gain_error = 0;
  double bias = 0;
  double bias_error = 0;
  ConstantFactor factor;
};

// The same of neighbouring elements, one after another; without a factor.
struct ParameterColumns {
  std::vector<double> gain, gain_error, bias, bias_error;
};

// Is the error of the root kept apart as a factor that all elements share? Not with a bias, which does not carry it.
bool norm_keeps_factor(const qkcts_norm& norm, const NormStatistics& statistics);

// One normalised element as far as binary64 knows it, before any clamp.
struct NormElement {
  double unscaled = 0;  // without the constant factor
  double value = 0;
  double blur = 0;  // how far the exact number may be from `value`
};
NormElement norm_element(const NormStatistics& statistics, double x, const ElementParameters& parameters, double n);

// Errors of the elements of one normalised vector. What is the same for all of them is made once.
class NormElements {
 public:
  NormElements(const qkcts_norm& norm, const NormStatistics& statistics, const ConstantFactor& factor,
               const BudgetArithmetic& arithmetic);

  // As norm_element_error() and norm_element_overflows().
  double error(double x, double x_error, const ElementParameters& parameters, double exact_result) const;
  bool overflows(double x, double x_error, const ElementParameters& parameters) const;
  // Of many elements without a constant factor: false if one of them overflows.
  bool set_errors(std::span<const double> x, std::span<const double> x_errors, const ParameterColumns& parameters,
                  std::span<const double> exact_results, std::span<double> errors) const;

 private:
  const NormStatistics& statistics_;
  const BudgetArithmetic& arithmetic_;
  bool centred_, with_bias_, keeps_factor_;
  double kappa_;  // relative error of the product of an element's factors
  double factor_;
  double inverse_;  // 1/d at most
  double lambda_, sum_lambda_, mean_u_, bias_u_;
  double room_;
};

// Error of one normalised element: its own part if the factor is kept apart, else the whole. `exact_result` is the
// number before the constant factor.
double norm_element_error(const qkcts_norm& norm, const NormStatistics& statistics, double x, double x_error,
                          const ElementParameters& parameters, double exact_result, const BudgetArithmetic& arithmetic);

// Upper bounds of the factors that an element without a bias is a product of: the centred number, 1/d, the gain.
struct NormFactors {
  double c = 0, r = 0, g = 0;
};
NormFactors norm_factors(const NormStatistics& statistics, double x, double x_error,
                         const ElementParameters& parameters);

// Some product on the way may leave the range of the accumulator.
bool norm_element_overflows(const NormStatistics& statistics, double x, double x_error,
                            const ElementParameters& parameters, const BudgetArithmetic& arithmetic);

}  // namespace qkcts
