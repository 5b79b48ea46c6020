// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_score.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace qkcts {
namespace {

using enum BudgetTerm;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t block = 64;  // keys that are accumulated together

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

ConstantForms constant_forms(double x, const BudgetArithmetic& arithmetic) {
  const double stored = arithmetic.constant_error(score_scale, x);
  const double root = arithmetic.sqrt(score_scale);
  return {stored, joined(stored, root, root)};
}

}  // namespace

ScoreScale scale_terms(const Case& c, const BudgetArithmetic& arithmetic) {
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
    default: {
      const double learned = c.inputs.at(Input::scale).value(0);
      result.tau = std::fabs(learned);
      forms = constant_forms(learned, arithmetic);
      break;
    }
  }
  // Applied to the dot product: one product. Applied to q, to k or to both: one product per element and side.
  const double u = arithmetic.u(score_scale);
  result.relative = joined(std::max(forms.single, forms.split), u, u);
  if (score.temperature > 0 && score.temperature != 1) {
    result.tau /= score.temperature;
    result.relative = joined(result.relative, arithmetic.quotient(score_scale),
                             arithmetic.constant_error(score_scale, score.temperature));
  }
  return result;
}

KeyPanel::KeyPanel(std::int64_t head_dim, std::int64_t k_len) : head_dim_(head_dim), k_len_(k_len) {
  const auto elements = static_cast<std::size_t>(head_dim * k_len);
  const auto keys = static_cast<std::size_t>(k_len);
  size_.resize(elements);
  error_.resize(elements);
  magnitude_.resize(elements);
  common_.resize(keys);
  size_sum_.resize(keys);
  size_max_.resize(keys);
  domain_.resize(keys);
}

void KeyPanel::set(std::int64_t key, const VectorError& vector) {
  const auto k = static_cast<std::size_t>(key);
  domain_[k] = vector.domain ? 1 : 0;
  common_[k] = vector.domain ? 0 : vector.common;
  size_sum_[k] = 0;
  size_max_[k] = 0;
  for (std::int64_t d = 0; d < head_dim_; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const auto at = static_cast<std::size_t>(d * k_len_ + key);
    magnitude_[at] = vector.domain ? 0 : vector.magnitude[i];
    error_[at] = vector.domain ? 0 : vector.error[i];
    size_[at] = magnitude_[at] + error_[at];
    size_sum_[k] += size_[at];
    size_max_[k] = std::max(size_max_[k], size_[at]);
  }
}

void score_errors(const VectorError& q, const KeyPanel& keys, const ScoreScale& scale, std::span<const double> exact,
                  std::int64_t first, std::int64_t last, const BudgetArithmetic& arithmetic, std::span<double> errors) {
  if (q.domain) {
    std::fill(errors.begin() + first, errors.begin() + last, infinity);
    return;
  }
  const std::int64_t head_dim = keys.head_dim();
  const auto n = static_cast<double>(head_dim);
  const double slots = std::ceil(n / matrix_block) * matrix_block;
  const double growth = joined(arithmetic.product_growth(score_dot, n, slots), scale.relative);
  const double lambda = arithmetic.lambda(score_underflow);
  const double range = (1 + growth_upper(4 * n + 32, arithmetic.range_roundoff())) * 1.0001;
  const double root_tau = std::max(1.0, std::sqrt(scale.tau));
  double q_sum = 0;
  double q_max = 0;
  for (std::size_t d = 0; d < q.magnitude.size(); ++d) {
    q_sum += q.magnitude[d] + q.error[d];
    q_max = std::max(q_max, q.magnitude[d] + q.error[d]);
  }

  for (std::int64_t start = first; start < last; start += block) {
    const std::int64_t count = std::min(block, last - start);
    std::array<double, block> size{};   // A = sum (|q| + Dq)(|k| + Dk)
    std::array<double, block> moved{};  // B = sum (|q| + Dq) Dk + Dq |k|
    for (std::int64_t d = 0; d < head_dim; ++d) {
      const double q_error = q.error[static_cast<std::size_t>(d)];
      const double q_size = q.magnitude[static_cast<std::size_t>(d)] + q_error;
      const double* k_size = keys.size(d) + start;
      const double* k_error = keys.error(d) + start;
      const double* k_magnitude = keys.magnitude(d) + start;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto j = static_cast<std::size_t>(i);
        size[j] += q_size * k_size[i];
        moved[j] += q_size * k_error[i] + q_error * k_magnitude[i];
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t key = start + i;
      const double common = joined(q.common, keys.common(key));
      const double a = size[static_cast<std::size_t>(i)];
      const double b = moved[static_cast<std::size_t>(i)];
      const double score = std::fabs(exact[static_cast<std::size_t>(key)]);
      // Products, sums, the scaled score; elements of q and k where the scale is folded into them.
      const double flush = lambda *
                           (2 * n * (1 + scale.tau) + 1 + root_tau * (q_sum + keys.size_sum(key)) * (1 + common)) *
                           (1 + growth);
      const double own = scale.tau * (b + growth * a);
      const double error = sum_upper(common * score + (1 + common) * own + flush, 3 * n);
      const double reach = std::max({a, a * scale.tau * 1.5, q_max * scale.tau * 1.5,
                                     keys.size_max(key) * scale.tau * 1.5, q_max, keys.size_max(key)}) *
                           (1 + common) * range;
      const bool overflows = keys.domain(key) || !(reach < arithmetic.largest());
      errors[static_cast<std::size_t>(key)] = overflows ? infinity : error;
    }
  }
}

CapTerms cap_terms(const Case& c, const BudgetArithmetic& arithmetic) {
  const qkcts_score& score = c.contract.terms.score;
  CapTerms terms;
  const bool has_bias = score.bias_order != QKCTS_BIAS_NONE;
  terms.bias_before = score.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP && score.softcap > 0;
  terms.bias_after = has_bias && !terms.bias_before;
  if (score.softcap > 0) {
    terms.cap = score.softcap;
    terms.cap_error = arithmetic.constant_error(cap_product, score.softcap);
    terms.quotient = joined(arithmetic.constant_error(cap_quotient, score.softcap), arithmetic.quotient(cap_quotient));
  }
  return terms;
}

namespace {

double added_bias(double sum, double error, double bias_error, const BudgetArithmetic& arithmetic) {
  const double moved = error + bias_error;
  return moved + arithmetic.u(BudgetTerm::bias_sum) * (std::fabs(sum) + moved) + arithmetic.sum_lambda(cap_underflow);
}

// Largest slope of tanh on [x - e, x + e], as a function of the distance from 0.
double tanh_slope(double x) {
  const double e = exp_upper(-2 * x);
  return e < 1 ? std::min(1.0, 4 * e / ((1 + e) * (1 + e)) * (1 + 0x1p-48)) : 1.0;
}

}  // namespace

CappedError capped_error(const CapTerms& terms, double score, double score_error, double bias, double bias_error,
                         double exact_capped, const BudgetArithmetic& arithmetic) {
  double value = score;
  double error = score_error;
  if (terms.bias_before) {
    value += bias;
    error = added_bias(value, error, bias_error, arithmetic);
  }
  if (terms.cap > 0) {
    const double lambda = arithmetic.lambda(cap_underflow);
    const double size = std::fabs(value);
    const double moved = error * (1 + terms.quotient) + terms.quotient * size + terms.cap * lambda;
    const double slope = tanh_slope(std::max(0.0, size - moved) / terms.cap * (1 - 0x1p-50));
    value = terms.bias_after ? exact_capped - bias : exact_capped;
    const double reached = slope * moved;
    const double factor = joined(arithmetic.tanh(cap_tanh), arithmetic.u(cap_product), terms.cap_error);
    error = (std::fabs(value) + reached) * factor + reached +
            terms.cap * arithmetic.tanh_quanta(cap_underflow) * (1 + factor) + lambda;
  }
  CappedError result{error, error};
  if (terms.bias_after) {
    result.error = added_bias(exact_capped, error, bias_error, arithmetic);
    // Score and bias may each be multiplied by log2 e before they are added.
    result.softmax_error = result.error + joined(arithmetic.u(softmax_exponent), arithmetic.u(softmax_exponent)) *
                                              (std::fabs(exact_capped) + 2 * std::fabs(bias) + result.error);
  }
  result.error = sum_upper(result.error, 32);
  result.softmax_error = sum_upper(std::max(result.softmax_error, result.error), 32);
  return result;
}

}  // namespace qkcts
