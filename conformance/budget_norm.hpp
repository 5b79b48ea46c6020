// SPDX-License-Identifier: Apache-2.0
// Error of the elements of a norm: docs/budgets.md, N5 to N8.
#pragma once

#include <span>
#include <vector>

#include <qkcts/contract.h>

#include "conformance/budget_arithmetic.hpp"
#include "conformance/budget_norm_statistics.hpp"
#include "conformance/budget_range.hpp"

namespace qkcts {

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
