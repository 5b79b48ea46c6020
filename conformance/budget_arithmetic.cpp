// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_arithmetic.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkcts {
namespace {

double rounding(const Profile& profile, Format format) {
  return unit_roundoff(format) * (profile.truncating ? 2 : 1);
}

// Half a subnormal quantum (a whole one if truncating), or everything below the normal range if results are flushed.
// A result that is kept but read as zero by its consumer is off by as much. binary64 cannot hold half of its own
// quantum: the whole one stands for it.
double underflow(const Profile& profile, Format format) {
  if (profile.flush_to_zero || profile.denormals_are_zero) {
    return smallest_normal(format);
  }
  const double quantum = smallest_subnormal(format);
  return profile.truncating || format == Format::binary64 ? quantum : quantum / 2;
}

}  // namespace

BudgetArithmetic::BudgetArithmetic(const Profile& profile, TermSet terms)
    : profile_(profile),
      terms_(terms),
      roundoff_(rounding(profile, profile.accumulator)),
      underflow_(underflow(profile, profile.accumulator)),
      sum_underflow_(profile.flush_to_zero || profile.denormals_are_zero ? underflow_ : 0),
      largest_(parameters(profile.accumulator).largest),
      largest_weight_(largest_) {
  if (profile.probability_storage) {
    weight_roundoff_ = rounding(profile, *profile.probability_storage);
    weight_lambda_ = underflow(profile, *profile.probability_storage);
    largest_weight_ = std::min(largest_, parameters(*profile.probability_storage).largest);
  }
}

double BudgetArithmetic::growth(BudgetTerm term, double n) const {
  const double factors = profile_.chain > 0 ? std::min(n, profile_.chain + 1.0) : n;
  return on(term) * growth_upper(factors, roundoff_);
}

double BudgetArithmetic::product_growth(BudgetTerm term, double n, double slots) const {
  const double plain = growth(term, n);
  if (profile_.product_growth <= 1) {
    return plain;
  }
  return std::max(plain, on(term) * growth_upper(slots, profile_.product_growth * roundoff_));
}

double BudgetArithmetic::exp_exponent(BudgetTerm term) const {
  return on(term) * minus_log1m_upper(function_error(profile_.k_exp));
}

double BudgetArithmetic::inverse_root(BudgetTerm term) const {
  const double root = function_error(profile_.k_sqrt);
  const double two_steps = joined(root / (1 - root), function_error(profile_.k_div));
  return on(term) * std::max(function_error(profile_.k_rsqrt), two_steps);
}

double BudgetArithmetic::storage(Format format, double magnitude, double error) const {
  return on(BudgetTerm::stage_storage) *
         (rounding(profile_, format) * (magnitude + error) + underflow(profile_, format));
}

double BudgetArithmetic::operand_error(double value, Format source) const {
  const double magnitude = std::fabs(value);
  double error = 0;
  if (parameters(source).precision > parameters(profile_.accumulator).precision &&
      decode(profile_.accumulator, encode(profile_.accumulator, value)) != value) {
    error = roundoff_ * magnitude + underflow_;
  }
  if (profile_.denormals_are_zero) {
    const double threshold = std::max(smallest_normal(profile_.accumulator), smallest_normal(source));
    if (magnitude < threshold) {
      error = magnitude;
    }
  }
  return on(BudgetTerm::input_operands) * error;
}

double BudgetArithmetic::constant_distance(BudgetTerm term, double value) const {
  const double magnitude = std::fabs(value);
  if (magnitude < flush_threshold()) {
    return on(term) * magnitude;
  }
  const double relative = constant_error(term, value);
  return relative > 0 ? relative * magnitude + lambda(term) : 0;
}

bool BudgetArithmetic::holds_integer(double value) const {
  return std::fabs(value) <= std::ldexp(1.0, parameters(profile_.accumulator).precision);
}

double BudgetArithmetic::constant_error(BudgetTerm term, double value) const {
  const bool exact = decode(profile_.accumulator, encode(profile_.accumulator, value)) == value;
  return exact ? 0 : on(term) * roundoff_;
}

}  // namespace qkcts
