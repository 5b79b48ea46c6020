// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_rounded_norm.hpp"

#include <algorithm>
#include <cmath>

namespace qkcts {
namespace {

using enum BudgetTerm;

constexpr double outward = 1 + 0x1p-50;
constexpr double inward = 1 - 0x1p-50;

Interval inverse(const Interval& x) {
  return {1 / x.high * inward, 1 / x.low * outward};
}

// x f of a factor f >= 0 that is known to lie in an interval.
Interval product(const Interval& x, const Interval& f) {
  const Interval p{x.low * (x.low < 0 ? f.high : f.low), x.high * (x.high < 0 ? f.low : f.high)};
  const double blur = p.size() * 0x1p-51;
  return {p.low - blur, p.high + blur};
}

}  // namespace

NormPoints norm_points(const qkcts_vector_rounding& points, bool saturates, const BudgetArithmetic& arithmetic) {
  return {{rounding_root, points.root, saturates, arithmetic},
          {rounding_root, points.reciprocal, saturates, arithmetic},
          {rounding_point, points.unit, saturates, arithmetic}};
}

NormPoints unit_point(std::uint32_t format, bool saturates, const BudgetArithmetic& arithmetic) {
  qkcts_vector_rounding points{};
  points.unit = format;
  return norm_points(points, saturates, arithmetic);
}

RoundedNorm::RoundedNorm(const qkcts_norm& norm, const NormStatistics& statistics, const NormPoints& points,
                         const BudgetArithmetic& arithmetic)
    : norm_(norm),
      statistics_(statistics),
      points_(points),
      arithmetic_(arithmetic),
      inside_(norm.root == QKCTS_INSIDE_ROOT || norm.root == QKCTS_MAX_INSIDE),
      domain_(statistics.domain) {
  if (!domain_) {
    set_divisor();
  }
  if (!domain_) {
    set_factor();
  }
}

void RoundedNorm::set_divisor() {
  const Interval known{(statistics_.root - statistics_.root_blur) * inward,
                       (statistics_.root + statistics_.root_blur) * outward};
  Interval computed{std::min(known.low, statistics_.root_lower), std::max(known.high, statistics_.root_upper)};
  // A rounded root is formed as such; else the root of what stands inside may be a reciprocal root.
  if (points_.root.exists() && inside_) {
    const double root = arithmetic_.sqrt(norm_root);
    computed = {computed.low * (1 - root) * inward, computed.high * (1 + root) * outward};
  }
  divisor_ = points_.root.exact(known);
  divisor_computed_ = points_.root.computed(computed, divisor_);
  domain_ = !(divisor_.low > 0) || !(divisor_computed_.low > 0) || !std::isfinite(divisor_computed_.high);
}

void RoundedNorm::set_factor() {
  const bool has_root = points_.root.exists() || !inside_;
  factor_ = inverse(divisor_);
  factor_computed_ = inverse(divisor_computed_);
  if (points_.reciprocal.exists()) {
    const double a = has_root ? arithmetic_.division(norm_root) : arithmetic_.inverse_root(norm_root);
    const double lambda = arithmetic_.lambda(norm_underflow);
    factor_computed_ = {factor_computed_.low * (1 - a) * inward - lambda,
                        factor_computed_.high * (1 + a) * outward + lambda};
    factor_computed_.low = std::max(0.0, factor_computed_.low);
    factor_ = points_.reciprocal.exact(factor_);
    factor_computed_ = points_.reciprocal.computed(factor_computed_, factor_);
    kappa_ = arithmetic_.u(norm_root);
  } else {
    kappa_ = has_root ? arithmetic_.quotient(norm_root)
                      : joined(arithmetic_.inverse_root(norm_root), arithmetic_.u(norm_root));
  }
  // Both may be formed, whether they are rounded or not.
  const double largest = std::max({factor_.high, factor_computed_.high, divisor_.high, divisor_computed_.high});
  domain_ = !(largest * (1 + 64 * arithmetic_.range_roundoff()) < arithmetic_.largest());
}

RoundedNorm::Part RoundedNorm::centred(double x, double x_error) const {
  const double c = (x - statistics_.mean_high) - statistics_.mean_low;
  const double blur = statistics_.inexact * std::fabs(x) + statistics_.mean_blur + std::fabs(c) * 0x1p-51;
  Part part{{c - blur, c + blur}, x_error};
  if (norm_.center != 0) {
    const double u = arithmetic_.u(norm_mean);
    part.error = (x_error + statistics_.mean_input + statistics_.mean_error) * (1 + u) + u * part.exact.size() +
                 arithmetic_.sum_lambda(norm_underflow);
  }
  return part;
}

RoundedNorm::Part RoundedNorm::unit(const Part& c, Element& element) const {
  if (!points_.unit.exists()) {
    return c;
  }
  const double most = std::max(factor_.high, factor_computed_.high);
  const double reach = c.exact.size() + c.error;
  const double flush = arithmetic_.lambda(norm_underflow) * (1 + std::max(most, reach)) * (1 + kappa_);
  const double moved = most * c.error * (1 + kappa_) +
                       c.exact.size() * (farthest(factor_, factor_computed_) * (1 + kappa_) + kappa_ * factor_.high);
  const double error = sum_upper(moved + flush, 32);
  const Interval before = product(c.exact, factor_);
  Part part{points_.unit.exact(before), 0};
  const Interval computed = points_.unit.computed({before.low - error, before.high + error}, part.exact);
  part.error = farthest(part.exact, computed);
  element.domain = element.domain ||
                   !(reach * most * (1 + 64 * arithmetic_.range_roundoff()) < arithmetic_.largest()) ||
                   !std::isfinite(part.error);
  return part;
}

RoundedNorm::Element RoundedNorm::element(double x, double x_error, const ElementParameters& parameters) const {
  Element element;
  element.domain = domain_;
  if (element.domain) {
    return element;
  }
  // x' m' (1 + kappa) g f against x m g f, with m = 1 behind a rounded unit.
  const bool rounded = points_.unit.exists();
  const Part base = unit(centred(x, x_error), element);
  const Interval m = rounded ? Interval{1, 1} : factor_;
  const double most = rounded ? 1 : std::max(factor_.high, factor_computed_.high);
  const double m_moved = rounded ? 0 : farthest(factor_, factor_computed_);
  const ConstantFactor& factor = parameters.factor;
  const bool with_bias = norm_.bias_axes != QKCTS_AXES_NONE;
  double kappa = rounded ? 0 : kappa_;
  if (norm_.gain != QKCTS_GAIN_NONE) {
    kappa = joined(kappa, arithmetic_.u(norm_gain));
  }
  if (norm_.gain == QKCTS_GAIN_ONE_PLUS_W) {
    kappa = joined(kappa, arithmetic_.u(norm_gain));
  }
  if (factor.exists() && !with_bias) {
    kappa = joined(kappa, arithmetic_.u(norm_factor), factor.relative);
  }
  const double f = with_bias ? 1 : factor.value;
  const double g = std::fabs(parameters.gain);
  const double size = base.exact.size();
  const double reach = size + base.error;
  double own = g * (most * base.error * (1 + kappa) + size * (m_moved * (1 + kappa) + kappa * m.high));
  own = (own + parameters.gain_error * reach * most * (1 + kappa)) * f;
  // One product of two exact numbers that the accumulator holds: no rounding, so that a tie at the next point is one.
  const bool exact = rounded && base.error == 0 && base.exact.low == base.exact.high && parameters.gain_error == 0 &&
                     norm_.gain != QKCTS_GAIN_ONE_PLUS_W && !factor.exists() &&
                     arithmetic_.multiplies_exactly(base.exact.low, parameters.gain);
  if (exact) {
    own = 0;
  } else {
    // Factors that underflow before the others come to them (N7).
    double left = std::max({g, most, reach});
    if (f != 1) {
      const double pairs = std::max({g * most, g * reach, most * reach, g * f, most * f, reach * f});
      left = pairs + std::max({left, f, pairs});
    }
    own += arithmetic_.lambda(norm_underflow) * (1 + left) * (1 + kappa);
  }
  const Interval plain = product(product(base.exact, m), {g, g});
  Interval value = parameters.gain < 0 ? Interval{-plain.high, -plain.low} : plain;
  if (with_bias) {
    const double blur = (value.size() + std::fabs(parameters.bias)) * 0x1p-51;
    value = {value.low + parameters.bias - blur, value.high + parameters.bias + blur};
    own += parameters.bias_error;
    own += arithmetic_.u(norm_bias) * (value.size() + own) + arithmetic_.sum_lambda(norm_underflow);
    own = factor.moved(value.size(), own, arithmetic_);
  }
  value = product(value, {factor.value, factor.value});
  element.value = value.low + (value.high - value.low) / 2;
  element.blur = (value.high - value.low) / 2 * outward + value.size() * 0x1p-51;
  element.error = sum_upper(own, 64);
  const double whole = std::max(1.0, reach) * std::max(1.0, most) * std::max(1.0, g + parameters.gain_error) *
                       std::max(1.0, factor.value);
  const double sum = (whole + std::fabs(parameters.bias)) * std::max(1.0, factor.value);
  element.domain = element.domain || !(sum * (1 + 64 * arithmetic_.range_roundoff()) < arithmetic_.largest());
  return element;
}

}  // namespace qkcts
