// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_scale.hpp"

#include <algorithm>
#include <cmath>

namespace qkcts {
namespace {

using enum BudgetTerm;

struct ConstantForms {
  double single = 0;  // the constant itself
  double split = 0;   // its root on q and on k
};

// 1/sqrt(x): by a reciprocal root or a root and a division; split: one such root of a root for either operand.
ConstantForms inverse_root_forms(double x, const BudgetArithmetic& arithmetic) {
  const double stored = arithmetic.constant_error(score_scale, x);
  const double inverse = arithmetic.inverse_root(score_scale);
  const double root = arithmetic.sqrt(score_scale);
  return {joined(inverse, stored), joined(root, stored, inverse, inverse)};
}

// A number that is off by `stored`; its root on either side.
ConstantForms stored_forms(double stored, const BudgetArithmetic& arithmetic) {
  const double root = arithmetic.sqrt(score_scale);
  return {stored, joined(stored, root, root)};
}

ConstantForms constant_forms(double x, const BudgetArithmetic& arithmetic) {
  return stored_forms(arithmetic.constant_error(score_scale, x), arithmetic);
}

// exp(min(t, cap)), by exp or by exp2 of a product with log2 e; split: a root of it or the exponential of half of it.
ConstantForms exponential_forms(double t, double t_error, double cap, ScoreScale& scale,
                                const BudgetArithmetic& arithmetic) {
  const double x = std::min(t, cap);
  const double cap_error = arithmetic.constant_distance(scale_exponential, cap);
  double moved = t_error;
  if (t + t_error >= cap - cap_error) {
    moved = t - t_error >= cap + cap_error ? cap_error : std::max(t_error, cap_error);
  }
  const double u = arithmetic.u(scale_exponential);
  const double argument = moved + joined(u, u) * (std::fabs(x) + moved) + 2 * arithmetic.sum_lambda(scale_exponential);
  const double function = arithmetic.exp_exponent(scale_exponential);
  scale.tau = exp_upper(x);
  const double least = exp_lower(x - argument - 2 * function);
  // Subnormal results: an absolute error, against the least that may be computed.
  const double lost = least > 0 ? arithmetic.exp_quanta(scale_exponential) / least : 1;
  scale.domain = !(exp_upper(x + argument + 2 * function) < arithmetic.largest()) || !(lost < 0.5);
  const ConstantForms forms = stored_forms(joined(expm1_upper(argument + function), lost), arithmetic);
  return {forms.single, std::max(forms.split, joined(expm1_upper(argument + 2 * function), lost))};
}

ConstantForms learned_forms(const Case& c, std::int64_t head, ScoreScale& scale, const BudgetArithmetic& arithmetic) {
  const qkcts_logits& logits = c.contract.terms.logits;
  const std::int64_t index = logits.scale_axes == QKCTS_SCALE_PER_HEAD ? head : 0;
  const double learned = c.inputs.at(Input::scale).value(static_cast<std::size_t>(index));
  const double read = arithmetic.operand_error(learned, c.inputs.format);
  if (logits.scale_exp_cap > 0) {
    return exponential_forms(learned, read, logits.scale_exp_cap, scale, arithmetic);
  }
  scale.tau = std::fabs(learned);
  ConstantForms forms = constant_forms(learned, arithmetic);
  if (read > 0 && std::fabs(learned) < arithmetic.flush_threshold()) {
    forms.single = forms.split = 1;  // it may be read as 0
  }
  return forms;
}

// What the temperature by position takes the logarithm of, at least 1, and how far the logarithm moves because of what
// the argument is off by.
struct LogArgument {
  double value = 1;
  double error = 0;
};

LogArgument log_argument(const qkcts_logits& logits, double position, const BudgetArithmetic& arithmetic) {
  const double u = arithmetic.u(query_temperature);
  const double shifted = position + logits.query_shift;
  if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_LOG) {
    // A whole number, formed exactly or rounded.
    const double steps = std::floor(shifted / logits.query_period);
    return {1 + steps, arithmetic.holds_integer(1 + steps) ? 0 : minus_log1m_upper(joined(u, u))};
  }
  // max(x, 1) with a quotient x of whole numbers. The maximum moves no further than the quotient, and not at all where
  // both the exact and the computed quotient lie below 1; so does the maximum of a logarithm and 0.
  const double ratio = shifted / logits.query_period;
  const double whole = arithmetic.holds_integer(shifted) ? 0 : joined(u, u);
  const double relative = joined(arithmetic.quotient(query_temperature), whole,
                                 arithmetic.constant_error(query_temperature, logits.query_period));
  const double moved = minus_log1m_upper(relative);
  return {std::max(ratio, 1.0), ratio * (1 + moved) * (1 + 0x1p-50) < 1 ? 0 : moved};
}

}  // namespace

ScoreScale scale_terms(const Case& c, std::int64_t head, const BudgetArithmetic& arithmetic) {
  const qkcts_score& score = c.contract.terms.score;
  ScoreScale result;
  ConstantForms forms;
  switch (score.scale_form) {
    case QKCTS_SCALE_INV_SQRT_HEAD_DIM: {
      const auto head_dim = static_cast<double>(c.shape.head_dim);
      result.tau = 1 / std::sqrt(head_dim);
      forms = inverse_root_forms(head_dim, arithmetic);
      break;
    }
    case QKCTS_SCALE_INV_SQRT_SCALAR:
      result.tau = 1 / std::sqrt(score.scale_value);
      forms = inverse_root_forms(score.scale_value, arithmetic);
      break;
    case QKCTS_SCALE_CONSTANT:
      result.tau = std::fabs(score.scale_value);
      forms = constant_forms(score.scale_value, arithmetic);
      break;
    default:
      forms = learned_forms(c, head, result, arithmetic);
      break;
  }
  // Applied to the dot product: one product. Applied to q, to k or to both: one product per element and side.
  const double u = arithmetic.u(score_scale);
  result.relative = joined(std::max(forms.single, forms.split), u, u);
  if (score.temperature > 0 && score.temperature != 1) {
    const double factors = std::max(1.0, result.tau) * std::max(1.0, 1 / score.temperature);
    result.tau /= score.temperature;
    result.relative = joined(result.relative, arithmetic.quotient(score_scale),
                             arithmetic.constant_error(score_scale, score.temperature));
    // What the constants and their products are off by counts here, too.
    result.partial = factors * std::max(arithmetic.range_room(4), 1 + result.relative);
  }
  // Constants, their products and roots may be subnormal; beyond the range of the accumulator there are none.
  if (result.tau > 0) {
    result.relative = joined(result.relative, 3 * arithmetic.lambda(score_underflow) / result.tau);
  }
  result.domain = result.domain || !arithmetic.holds(score.scale_value) || !arithmetic.holds(score.temperature) ||
                  !arithmetic.holds(result.tau * result.partial);
  return result;
}

ScoreScale scale_at_position(const ScoreScale& scale, const qkcts_logits& logits, double position,
                             const BudgetArithmetic& arithmetic) {
  if (logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE) {
    return scale;
  }
  const double u = arithmetic.u(query_temperature);
  const LogArgument argument = log_argument(logits, position, arithmetic);
  // A logarithm in base 2 is converted.
  const double log = log_upper(argument.value);
  const double product = joined(
      arithmetic.log(query_temperature), u, u,
      arithmetic.constant_distance(query_temperature, logits.query_alpha) / std::max(logits.query_alpha, 0x1p-1000), u);
  const double part = logits.query_alpha * log;
  const double moved = part * product + logits.query_alpha * argument.error * (1 + product);
  ScoreScale result = scale;
  result.tau *= 1 + part;
  const double factor = moved / (1 + part) * (1 + u) + u + arithmetic.lambda(query_temperature);
  result.relative = sum_upper(joined(scale.relative, factor, u), 32);
  if (part > 0 || moved > 0) {
    result.partial = std::max({scale.partial, scale.tau, 1.0}) * (1 + part) *
                     std::max(arithmetic.range_room(4), 1 + result.relative);
  }
  // The computed part is off by `moved`; a relative error says nothing where the factor itself vanishes in the format.
  result.domain = scale.domain || !((1 + part + moved) * (1 + u) < arithmetic.largest());
  return result;
}

}  // namespace qkcts
