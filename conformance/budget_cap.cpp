// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_cap.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkcts {
namespace {

using enum BudgetTerm;

double added_bias(double sum, double error, double bias_error, const BudgetArithmetic& arithmetic) {
  const double moved = error + bias_error;
  return moved + arithmetic.u(BudgetTerm::bias_sum) * (std::fabs(sum) + moved) + arithmetic.sum_lambda(cap_underflow);
}

// Two addends, in any order: one of the three partial sums is rounded, and the whole.
double added_biases(double capped, double sum, double error, const Addend& bias, const Addend& linear,
                    const BudgetArithmetic& arithmetic) {
  const double partial = std::max(
      {std::fabs(capped + bias.value), std::fabs(capped + linear.value), std::fabs(bias.value + linear.value)});
  const double first = added_bias(partial, error + bias.error, linear.error, arithmetic);
  return added_bias(sum, first, 0, arithmetic);
}

// Largest slope of tanh on [x - e, x + e], as a function of the distance from 0.
double tanh_slope(double x) {
  const double e = exp_upper(-2 * x);
  return e < 1 ? std::min(1.0, 4 * e / ((1 + e) * (1 + e)) * (1 + 0x1p-48)) : 1.0;
}

}  // namespace

CapTerms cap_terms(const Case& c, const BudgetArithmetic& arithmetic) {
  const qkcts_score& score = c.contract.terms.score;
  CapTerms terms;
  const bool has_bias = score.bias_order != QKCTS_BIAS_NONE;
  terms.bias_before = score.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP && score.softcap > 0;
  terms.bias_after = has_bias && !terms.bias_before;
  terms.linear = c.contract.terms.logits.alibi != QKCTS_ALIBI_NONE;
  if (score.softcap > 0) {
    terms.cap = score.softcap;
    terms.cap_error = arithmetic.constant_error(cap_product, score.softcap);
    terms.quotient = joined(arithmetic.constant_error(cap_quotient, score.softcap), arithmetic.quotient(cap_quotient));
  }
  return terms;
}

Addend linear_bias_errors(double slope, Format format, double distance, const BudgetArithmetic& arithmetic) {
  if (slope == 0 || distance == 0) {
    return {};
  }
  const double read = arithmetic.operand_error(slope, format);
  const double far = std::fabs(distance);
  const double u = arithmetic.u(linear_bias);
  const double rounded = joined(u, arithmetic.holds_integer(distance) ? 0 : u);
  const double size = (std::fabs(slope) + read) * far;
  // Times log2 e, where a kernel in base 2 forms it.
  if (!(size * arithmetic.base_two_room() < arithmetic.largest())) {
    return {slope * distance, std::numeric_limits<double>::infinity()};
  }
  return {slope * distance, sum_upper(read * far + rounded * size + arithmetic.lambda(linear_bias), 16)};
}

CappedError capped_error(const CapTerms& terms, double score, double score_error, const Addend& bias,
                         const Addend& linear, double exact_capped, const BudgetArithmetic& arithmetic) {
  double value = score;
  double error = score_error;
  if (terms.bias_before) {
    value += bias.value;
    error = added_bias(value, error, bias.error, arithmetic);
  }
  if (terms.cap > 0) {
    const double lambda = arithmetic.lambda(cap_underflow);
    const double size = std::fabs(value);
    const double moved = error * (1 + terms.quotient) + terms.quotient * size + terms.cap * lambda;
    const double slope = tanh_slope(std::max(0.0, size - moved) / terms.cap * (1 - 0x1p-50));
    value = terms.bias_after ? exact_capped - bias.value : exact_capped;
    if (terms.linear) {
      value -= linear.value;
    }
    const double reached = slope * moved;
    const double factor = joined(arithmetic.tanh(cap_tanh), arithmetic.u(cap_product), terms.cap_error);
    error = (std::fabs(value) + reached) * factor + reached +
            terms.cap * (arithmetic.tanh_quanta(cap_underflow) + arithmetic.tanh_absolute(cap_tanh)) * (1 + factor) +
            lambda;
  }
  CappedError result{error, error};
  if (terms.bias_after || terms.linear) {
    if (!terms.linear) {
      result.error = added_bias(exact_capped, error, bias.error, arithmetic);
    } else if (!terms.bias_after) {
      result.error = added_bias(exact_capped, error, linear.error, arithmetic);
    } else {
      result.error = added_biases(value, exact_capped, error, bias, linear, arithmetic);
    }
    const double biases =
        terms.linear ? std::fabs(terms.bias_after ? bias.value : 0) + std::fabs(linear.value) : std::fabs(bias.value);
    // Score and biases may each be multiplied by log2 e before they are added.
    result.softmax_error = result.error + joined(arithmetic.u(softmax_exponent), arithmetic.u(softmax_exponent)) *
                                              (std::fabs(exact_capped) + 2 * biases + result.error);
  }
  if (!arithmetic.holds(terms.cap)) {
    result.error = std::numeric_limits<double>::infinity();
  }
  result.error = sum_upper(result.error, 32);
  result.softmax_error = sum_upper(std::max(result.softmax_error, result.error), 32);
  return result;
}

}  // namespace qkcts
