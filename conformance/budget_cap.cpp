// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_cap.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/lanes.hpp"

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

// A score on its way into the cap.
struct Entering {
  double value = 0, error = 0;
  double moved = 0;  // error of c times the quotient
};

Entering entering(const CapTerms& terms, const CapInput& input, const BudgetArithmetic& arithmetic) {
  Entering on_way{input.score, input.error, 0};
  if (terms.bias_before) {
    on_way.value += input.bias.value;
    on_way.error = added_bias(on_way.value, on_way.error, input.bias.error, arithmetic);
  }
  on_way.moved =
      on_way.error * (1 + terms.quotient) + terms.quotient * std::fabs(on_way.value) + terms.cap * terms.underflow;
  return on_way;
}

// -2x for the least |x| on [s - moved, s + moved] / c: the slope of tanh is largest there.
double slope_exponent(const CapTerms& terms, const Entering& score) {
  return -2 * (std::max(0.0, std::fabs(score.value) - score.moved) / terms.cap * (1 - 0x1p-50));
}

// 4 e / (1 + e)^2 = sech^2 x with e = e^(-2x).
double tanh_slope(double e) {
  return e < 1 ? std::min(1.0, 4 * e / ((1 + e) * (1 + e)) * (1 + 0x1p-48)) : 1.0;
}

// From the exponential of slope_exponent() on; without a cap it does not matter.
CappedError leaving(const CapTerms& terms, const CapInput& input, const Entering& entered, double exponential,
                    const BudgetArithmetic& arithmetic) {
  const Addend &bias = input.bias, &linear = input.linear;
  double value = entered.value;
  double error = entered.error;
  if (terms.cap > 0) {
    const double slope = tanh_slope(exponential);
    value = terms.bias_after ? input.exact - bias.value : input.exact;
    if (terms.linear) {
      value -= linear.value;
    }
    const double reached = slope * entered.moved;
    error = (std::fabs(value) + reached) * terms.function + reached + terms.absolute + terms.underflow;
  }
  CappedError result{error, error};
  if (terms.bias_after || terms.linear) {
    if (!terms.linear) {
      result.error = added_bias(input.exact, error, bias.error, arithmetic);
    } else if (!terms.bias_after) {
      result.error = added_bias(input.exact, error, linear.error, arithmetic);
    } else {
      result.error = added_biases(value, input.exact, error, bias, linear, arithmetic);
    }
    const double biases =
        terms.linear ? std::fabs(terms.bias_after ? bias.value : 0) + std::fabs(linear.value) : std::fabs(bias.value);
    // Score and biases may each be multiplied by log2 e before they are added.
    result.softmax_error = result.error + joined(arithmetic.u(softmax_exponent), arithmetic.u(softmax_exponent)) *
                                              (std::fabs(input.exact) + 2 * biases + result.error);
  }
  if (!arithmetic.holds(terms.cap)) {
    result.error = std::numeric_limits<double>::infinity();
  }
  result.error = sum_upper(result.error, 32);
  result.softmax_error = sum_upper(std::max(result.softmax_error, result.error), 32);
  return result;
}

// How far c times the quotient is off.
[[gnu::always_inline]] inline double quotient_moved(const CapTerms& terms, double score, double error) {
  return error * (1 + terms.quotient) + terms.quotient * std::fabs(score) + terms.cap * terms.underflow;
}

// entering() and slope_exponent() of scores beside which nothing is added.
[[gnu::always_inline]] inline void slope_exponents_of(const CapTerms& terms, std::size_t count,
                                                      const double* __restrict scores, const double* __restrict errors,
                                                      double* __restrict exponents) {
  for (std::size_t i = 0; i < count; ++i) {
    const double least = std::fabs(scores[i]) - quotient_moved(terms, scores[i], errors[i]);
    exponents[i] = -2 * (std::max(0.0, least) / terms.cap * (1 - 0x1p-50));
  }
}

// leaving() likewise; `unheld` is infinite where the accumulator does not hold the cap, else 0.
[[gnu::always_inline]] inline void capped_errors_of(const CapTerms& terms, double unheld, std::size_t count,
                                                    const double* __restrict scores, const double* __restrict errors,
                                                    const double* __restrict exact,
                                                    const double* __restrict exponentials, double* __restrict capped,
                                                    double* __restrict softmax_errors) {
  for (std::size_t i = 0; i < count; ++i) {
    const double e = exponentials[i];
    const double curved = std::min(1.0, 4 * e / ((1 + e) * (1 + e)) * (1 + 0x1p-48));
    const double reached = (e < 1 ? curved : 1) * quotient_moved(terms, scores[i], errors[i]);
    const double error = (std::fabs(exact[i]) + reached) * terms.function + reached + terms.absolute + terms.underflow;
    const double observed = sum_upper(unheld > 0 ? unheld : error, 32);
    capped[i] = observed;
    softmax_errors[i] = sum_upper(std::max(error, observed), 32);
  }
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
    terms.underflow = arithmetic.lambda(cap_underflow);
    terms.function = joined(arithmetic.tanh(cap_tanh), arithmetic.u(cap_product), terms.cap_error);
    terms.absolute =
        terms.cap * (arithmetic.tanh_quanta(cap_underflow) + arithmetic.tanh_absolute(cap_tanh)) * (1 + terms.function);
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
  const CapInput input{score, score_error, bias, linear, exact_capped};
  const Entering entered = entering(terms, input, arithmetic);
  return leaving(terms, input, entered, terms.cap > 0 ? exp_upper(slope_exponent(terms, entered)) : 0, arithmetic);
}

void capped_errors(const CapTerms& terms, std::span<const CapInput> scores, const BudgetArithmetic& arithmetic,
                   std::vector<double>& exponentials, std::vector<CappedError>& errors) {
  exponentials.assign(scores.size(), 0.0);
  if (terms.cap > 0) {
    std::transform(scores.begin(), scores.end(), exponentials.begin(),
                   [&](const CapInput& score) { return slope_exponent(terms, entering(terms, score, arithmetic)); });
    exp_upper(exponentials);
  }
  errors.clear();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    errors.push_back(leaving(terms, scores[i], entering(terms, scores[i], arithmetic), exponentials[i], arithmetic));
  }
}

void capped_errors(const CapTerms& terms, std::span<const double> scores, std::span<const double> errors,
                   std::span<const double> exact, const BudgetArithmetic& arithmetic, std::vector<double>& exponentials,
                   std::span<double> capped, std::span<double> softmax_errors) {
  const std::size_t count = scores.size();
  exponentials.resize(count);
  in_widest_lanes([=, from = scores.data(), moved = errors.data(), to = exponentials.data()]()
                      QKCTS_STRAIGHT { slope_exponents_of(terms, count, from, moved, to); });
  exp_upper(exponentials);
  const double unheld = arithmetic.holds(terms.cap) ? 0 : std::numeric_limits<double>::infinity();
  in_widest_lanes([=, from = scores.data(), moved = errors.data(), z = exact.data(), e = exponentials.data(),
                   to = capped.data(), softmax_to = softmax_errors.data()]()
                      QKCTS_STRAIGHT { capped_errors_of(terms, unheld, count, from, moved, z, e, to, softmax_to); });
}

}  // namespace qkcts
