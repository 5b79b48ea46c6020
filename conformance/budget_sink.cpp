// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_sink.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkcts {

using enum BudgetTerm;

SinkKey sink_key(double logit, double read, double unit, double lse, double above, double shift,
                 const BudgetArithmetic& arithmetic) {
  SinkKey key;
  key.score = logit * unit;
  const double u = arithmetic.u(sink_logit);
  // What is folded into the scale of the other scores is multiplied into the sink apart: a constant and a product.
  const double scaled = joined(u, u) * (std::fabs(key.score) + read * unit) + arithmetic.sum_lambda(sink_logit);
  key.error = sum_upper(read * unit + scaled + joined(u, u, u) * above, 16);
  // Numbers known to 2^-50. The enlargement of every budget by 2^-30 covers 2^-33; more is put into the exponent.
  const double blur = (std::fabs(key.score) + std::fabs(lse)) * 0x1p-49;
  key.probability = std::min(1.0, exp_upper(key.score - lse));
  if (blur > 0x1p-33) {
    key.error += 2 * blur;
  }
  const bool weight_fits = above + shift + 1 + 2 * key.error < log_upper(arithmetic.largest());
  // A kernel in base 2 multiplies it by log2 e.
  const bool logit_fits = (std::fabs(key.score) + read * unit) * arithmetic.base_two_room() < arithmetic.largest();
  if (!weight_fits || !logit_fits) {
    key.error = std::numeric_limits<double>::infinity();
  }
  return key;
}

SinkFactor sink_factor_terms(double logit, double read, double lse, double lse_error,
                             const BudgetArithmetic& arithmetic) {
  const double u = arithmetic.u(sink_factor);
  const double below = logit - lse;
  const double blur = (std::fabs(logit) + std::fabs(lse)) * 0x1p-49;
  const double inputs = read + lse_error + u * (std::fabs(lse) + lse_error);
  // The exponent: a difference, a product with log2 e and its constant; or two numbers that are scaled apart.
  const double size = std::fabs(logit) + std::fabs(lse) + inputs;
  const double moved = inputs + joined(u, u, u) * (std::fabs(below) + inputs) + joined(u, u) * size +
                       3 * arithmetic.sum_lambda(sink_factor);
  const double exponent = moved + arithmetic.exp_exponent(sink_factor);
  const double top = below + blur;
  const double grown = exp_upper(top);
  SinkFactor factor;
  factor.size = std::min(1 / (1 + exp_lower(below - blur)), exp_upper(-(below - blur)));
  // Share of the sink; sigma moves by that much of what the exponent moves.
  const double share = std::isfinite(grown) ? grown / (1 + grown) * (1 + 0x1p-48) : 1.0;
  const double e = expm1_upper(exponent);
  const double least = 1 - share * e / (1 + e);
  const double quotient = arithmetic.quotient(sink_factor);
  const double rounded = joined(u, quotient, u);
  const double quanta = arithmetic.exp_quanta(sink_factor) + arithmetic.lambda(sink_factor);
  factor.relative = joined(std::max(share * e, share * (e / (1 + e)) / std::max(least, 0x1p-60)), rounded, quanta);
  factor.absolute = quanta;
  // Where e^(sink - lse) may overflow the factor is 0.
  const double edge = log_upper(arithmetic.largest()) * (1 - 0x1p-40);
  // e^(lse - sink) / (1 + e^(lse - sink)) by a reciprocal: that may be subnormal, and is multiplied back up.
  if (blur - top - exponent < edge) {
    factor.relative += arithmetic.lambda(sink_factor) * (1 + exp_upper(std::min(exponent + 2 * blur - top, edge)));
  }
  if (!(top + exponent < edge)) {
    factor.relative = std::max(1.0, factor.relative);
  }
  if (!(size * arithmetic.base_two_room() < arithmetic.largest())) {
    factor.relative = std::numeric_limits<double>::infinity();
  }
  factor.relative = sum_upper(factor.relative, 32);
  return factor;
}

double SinkFactor::moved(double value, double error, const BudgetArithmetic& arithmetic) const {
  const double other = std::fabs(value) + error;
  return sum_upper(size * error + size * relative * other + absolute * other + arithmetic.lambda(sink_factor), 32);
}

}  // namespace qkcts
