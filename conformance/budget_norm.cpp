// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_norm.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

using enum BudgetTerm;

double relative_error(const qkcts_norm& norm, const ConstantFactor& factor, const BudgetArithmetic& arithmetic) {
  double kappa = arithmetic.inverse_root(norm_root);
  if (norm.root == QKCTS_OUTSIDE_ROOT || norm.root == QKCTS_MAX_ROOT) {
    kappa = arithmetic.quotient(norm_root);
  } else {
    kappa = joined(kappa, arithmetic.u(norm_root));
  }
  if (norm.gain != QKCTS_GAIN_NONE) {
    kappa = joined(kappa, arithmetic.u(norm_gain));
  }
  if (norm.gain == QKCTS_GAIN_ONE_PLUS_W) {
    kappa = joined(kappa, arithmetic.u(norm_gain));
  }
  if (factor.exists() && norm.bias_axes == QKCTS_AXES_NONE) {
    kappa = joined(kappa, arithmetic.u(norm_factor), factor.relative);
  }
  return kappa;
}

}  // namespace

bool norm_keeps_factor(const qkcts_norm& norm, const NormStatistics& statistics) {
  return norm.bias_axes == QKCTS_AXES_NONE && statistics.common < 0.5;
}

NormElements::NormElements(const qkcts_norm& norm, const NormStatistics& statistics, const ConstantFactor& factor,
                           const BudgetArithmetic& arithmetic)
    : statistics_(statistics),
      arithmetic_(arithmetic),
      centred_(norm.center != 0),
      with_bias_(norm.bias_axes != QKCTS_AXES_NONE),
      keeps_factor_(norm_keeps_factor(norm, statistics)),
      kappa_(relative_error(norm, factor, arithmetic)),
      // Beside a bias the constant factor multiplies the sum; else it is one of the factors, in any order.
      factor_(with_bias_ ? 1 : factor.value),
      inverse_(1 / statistics.root_lower),
      lambda_(arithmetic.lambda(norm_underflow)),
      sum_lambda_(arithmetic.sum_lambda(norm_underflow)),
      mean_u_(arithmetic.u(norm_mean)),
      bias_u_(arithmetic.u(norm_bias)),
      room_(1 + 64 * arithmetic.range_roundoff()) {}

double NormElements::error(double x, double x_error, const ElementParameters& parameters, double exact_result) const {
  const double g = std::fabs(parameters.gain);
  const double c = std::fabs((x - statistics_.mean_high) - statistics_.mean_low);
  double moved = x_error;
  if (centred_) {
    moved = (x_error + statistics_.mean_input + statistics_.mean_error) * (1 + mean_u_) + mean_u_ * c + sum_lambda_;
  }
  const double f = factor_;
  const double unit = (moved * (1 + kappa_) + kappa_ * c) / statistics_.root;
  double own = (g * unit + parameters.gain_error * (c + moved) * (1 + kappa_) / statistics_.root) * f;
  // A product of some of the factors c, r, g, f may be flushed before the others come to it, whichever come first.
  const double reach = c + moved;
  const double r = inverse_;
  double left = std::max({g, r, reach});
  if (f != 1) {
    const double pairs = std::max({g * r, g * reach, r * reach, g * f, r * f, reach * f});
    left = pairs + std::max({left, f, pairs});
  }
  const double flush = lambda_ * (1 + left) * (1 + kappa_);
  // The factor (1 + r) does not apply to flushed parts: where it is small they count twice.
  own += 2 * flush;
  if (!keeps_factor_) {
    const double y = g * c / statistics_.root * f;
    own = statistics_.common * y + (1 + statistics_.common) * own;
    if (with_bias_) {
      own += parameters.bias_error;
      own += bias_u_ * (std::fabs(exact_result) + own) + sum_lambda_;
      own = parameters.factor.moved(exact_result, own, arithmetic_);
    }
  }
  return sum_upper(own, 64);
}

bool NormElements::overflows(double x, double x_error, const ElementParameters& parameters) const {
  const double c = std::fabs((x - statistics_.mean_high) - statistics_.mean_low) + x_error + statistics_.mean_input +
                   statistics_.mean_error;
  const double r = inverse_;
  const double g = std::fabs(parameters.gain) + parameters.gain_error;
  double reach = std::max({c, c * g, r, r * g, c * r, c * r * g, c * r * g + std::fabs(parameters.bias)}) * room_;
  if (const double f = parameters.factor.value; f != 1) {
    // The largest product of any of the factors; and the factor times the sum with the bias.
    reach = std::max(std::max(1.0, c) * std::max(1.0, g) * std::max(1.0, r) * std::max(1.0, f),
                     f * (c * r * g + std::fabs(parameters.bias))) *
            room_;
  }
  return !(reach < arithmetic_.largest());
}

namespace {

// What the elements of a vector share.
struct VectorTerms {
  double mean_high, mean_low, mean_input, mean_error, mean_u, sum_lambda;
  double kappa, root, inverse, lambda, common, bias_u, room, largest;
  double centred, keeps_factor, with_bias;  // 1 or 0
};

// As error() and overflows(), with f = 1; how many overflow, modulo 2^64.
[[gnu::always_inline]] inline std::uint64_t vector_errors(
    const VectorTerms& w, std::size_t n, const double* __restrict x, const double* __restrict x_errors,
    const double* __restrict gains, const double* __restrict gain_errors, const double* __restrict biases,
    const double* __restrict bias_errors, const double* __restrict exact, double* __restrict errors) {
  std::uint64_t outside = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double g = std::fabs(gains[i]);
    const double c = std::fabs((x[i] - w.mean_high) - w.mean_low);
    const double by_mean = (x_errors[i] + w.mean_input + w.mean_error) * (1 + w.mean_u) + w.mean_u * c + w.sum_lambda;
    const double moved = w.centred > 0 ? by_mean : x_errors[i];
    const double unit = (moved * (1 + w.kappa) + w.kappa * c) / w.root;
    const double product = g * unit + gain_errors[i] * (c + moved) * (1 + w.kappa) / w.root;
    const double r = w.inverse;
    const double left = std::max(std::max(g, r), c + moved);
    const double own = product + 2 * (w.lambda * (1 + left) * (1 + w.kappa));
    const double whole = w.common * (g * c / w.root) + (1 + w.common) * own;
    const double read = whole + bias_errors[i];
    const double biased = read + (w.bias_u * (std::fabs(exact[i]) + read) + w.sum_lambda);
    const double without_factor = w.with_bias > 0 ? biased : whole;
    errors[i] = sum_upper(w.keeps_factor > 0 ? own : without_factor, 64);

    const double far = c + x_errors[i] + w.mean_input + w.mean_error;
    const double grown = g + gain_errors[i];
    const double all = far * r * grown;
    const double pairs = std::max(std::max(std::max(far, far * grown), std::max(r, r * grown)), far * r);
    const double reach = std::max(std::max(pairs, all), all + std::fabs(biases[i])) * w.room;
    outside += reach < w.largest ? 0 : 1;
  }
  return outside;
}

}  // namespace

bool NormElements::set_errors(std::span<const double> x, std::span<const double> x_errors,
                              const ParameterColumns& parameters, std::span<const double> exact_results,
                              std::span<double> errors) const {
  const auto flag = [](bool value) { return value ? 1.0 : 0.0; };
  const VectorTerms terms{statistics_.mean_high,
                          statistics_.mean_low,
                          statistics_.mean_input,
                          statistics_.mean_error,
                          mean_u_,
                          sum_lambda_,
                          kappa_,
                          statistics_.root,
                          inverse_,
                          lambda_,
                          statistics_.common,
                          bias_u_,
                          room_,
                          arithmetic_.largest(),
                          flag(centred_),
                          flag(keeps_factor_),
                          flag(with_bias_)};
  std::uint64_t outside = 0;
  in_widest_lanes([=, n = x.size(), from = x.data(), moved = x_errors.data(), gain = parameters.gain.data(),
                   gain_error = parameters.gain_error.data(), bias = parameters.bias.data(),
                   bias_error = parameters.bias_error.data(), exact = exact_results.data(), to = errors.data(),
                   overflowing = &outside]() QKCTS_STRAIGHT {
    *overflowing = vector_errors(terms, n, from, moved, gain, gain_error, bias, bias_error, exact, to);
  });
  return outside == 0;
}

double norm_element_error(const qkcts_norm& norm, const NormStatistics& statistics, double x, double x_error,
                          const ElementParameters& parameters, double exact_result,
                          const BudgetArithmetic& arithmetic) {
  return NormElements(norm, statistics, parameters.factor, arithmetic).error(x, x_error, parameters, exact_result);
}

NormFactors norm_factors(const NormStatistics& statistics, double x, double x_error,
                         const ElementParameters& parameters) {
  const double c = std::fabs((x - statistics.mean_high) - statistics.mean_low) + x_error + statistics.mean_input +
                   statistics.mean_error;
  return {c, 1 / statistics.root_lower, std::fabs(parameters.gain) + parameters.gain_error};
}

bool norm_element_overflows(const NormStatistics& statistics, double x, double x_error,
                            const ElementParameters& parameters, const BudgetArithmetic& arithmetic) {
  return NormElements({}, statistics, parameters.factor, arithmetic).overflows(x, x_error, parameters);
}

NormElement norm_element(const NormStatistics& statistics, double x, const ElementParameters& parameters, double n) {
  NormElement element;
  const double c = (x - statistics.mean_high) - statistics.mean_low;
  element.unscaled = c / statistics.root * parameters.gain + parameters.bias;
  element.value = element.unscaled * parameters.factor.value;
  // The root is a sum of n squares; x may itself be a stage known to 2^-50.
  const double parts = (std::fabs(x) + std::fabs(statistics.mean_high)) / statistics.root * std::fabs(parameters.gain) +
                       std::fabs(parameters.bias);
  element.blur = parts * parameters.factor.value * (n + 64) * 0x1p-49;
  return element;
}

}  // namespace qkcts
