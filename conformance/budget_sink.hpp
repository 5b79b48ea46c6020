// SPDX-License-Identifier: Apache-2.0
// A sink: one more weight without a value, or a factor of the output. docs/budgets.md, P8 and O4.
#pragma once

#include "conformance/budget_arithmetic.hpp"

namespace qkcts {

// The sink's logit as one more score of a row, in natural units.
struct SinkKey {
  double score = 0;
  double error = 0;
  double probability = 1;
};
// `logit` is the input, off by `read` when it is read, `unit` the logarithm of the base of the weights; `lse` the exact
// log-sum-exp of the row, sink included; `above` how far the sink stands above every score, `shift` how far the shift
// of a row may stand below its exact maximum: a kernel may leave the sink out of that maximum.
SinkKey sink_key(double logit, double read, double unit, double lse, double above, double shift,
                 const BudgetArithmetic& arithmetic);

// sigma = 1 / (1 + e^(sink - lse)), by which an output is multiplied.
struct SinkFactor {
  double size = 1;      // from above
  double relative = 0;  // error, product with the output included; 1 where the factor may come out as 0
  double absolute = 0;  // of the factor itself, where it underflows

  // Error of a product whose other factor is off by `error`.
  double moved(double value, double error, const BudgetArithmetic& arithmetic) const;
};
// `lse_error` is that of the log-sum-exp in the accumulator format.
SinkFactor sink_factor_terms(double logit, double read, double lse, double lse_error,
                             const BudgetArithmetic& arithmetic);

}  // namespace qkcts
