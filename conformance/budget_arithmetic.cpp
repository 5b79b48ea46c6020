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
      exp_exponent_(minus_log1m_upper(function_error(profile.k_exp))),
      largest_weight_(largest_) {
  if (profile.probability_storage) {
    weight_roundoff_ = rounding(profile, *profile.probability_storage);
    weight_lambda_ = underflow(profile, *profile.probability_storage);
    largest_weight_ = std::min(largest_, parameters(*profile.probability_storage).largest);
  }
  // Operands are stored as the case is, weights perhaps otherwise; binary32 and tf32 end at the same exponent.
  if (profile.product_growth != 1) {
    const Format weights = profile.probability_storage.value_or(profile.storage);
    smallest_aligned_ = std::max(smallest_normal(profile.storage), smallest_normal(weights));
    least_operand_ = std::min(smallest_subnormal(profile.storage), smallest_subnormal(weights)) / 4;
  }
  // Weights that a matrix unit reads with fewer bits: one more rounding on the way to the product with v.
  if (profile.u_p > 0) {
    weight_roundoff_ = joined(weight_roundoff_, profile.u_p);
    weight_lambda_ += profile.operand_underflow;
  }
}

double BudgetArithmetic::growth(BudgetTerm term, double n) const {
  return growth(term, n, profile_.lanes > 0 ? std::ceil(n / profile_.lanes) : n);
}

// A term is rounded as a product, at every further addition in its lane, and once on every level of the tree that joins
// the lanes.
double BudgetArithmetic::growth(BudgetTerm term, double n, double in_lane) const {
  double factors = profile_.chain > 0 ? std::min(n, profile_.chain + 1.0) : n;
  if (profile_.lanes > 0) {
    double levels = 0;
    for (int joined_lanes = 1; joined_lanes < profile_.lanes; joined_lanes *= 2) {
      ++levels;
    }
    factors = std::min(factors, in_lane + levels);
  }
  return on(term) * growth_upper(factors, roundoff_);
}

double BudgetArithmetic::product_growth(BudgetTerm term, double n, double slots) const {
  return product_growth(term, n, slots, profile_.lanes > 0 ? std::ceil(n / profile_.lanes) : n);
}

double BudgetArithmetic::product_growth(BudgetTerm term, double n, double slots, double in_lane) const {
  const double plain = growth(term, n, in_lane);
  const double by_unit = on(term) * growth_upper(slots, profile_.product_growth * roundoff_);
  if (units_only()) {
    // Row sums are no product: they are formed in any order.
    return term == BudgetTerm::softmax_sum ? plain : by_unit;
  }
  return profile_.product_growth > 1 ? std::max(plain, by_unit) : plain;
}

double BudgetArithmetic::inverse_root(BudgetTerm term) const {
  const double root = function_error(profile_.k_sqrt);
  const double two_steps = joined(root / (1 - root), function_error(profile_.k_div));
  return on(term) * std::max(function_error(profile_.k_rsqrt), two_steps);
}

StorageRounding BudgetArithmetic::storage(Format format) const {
  return {on(BudgetTerm::stage_storage), rounding(profile_, format), underflow(profile_, format)};
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

double BudgetArithmetic::read_off(MatrixOperand operand) const {
  switch (operand) {
    case MatrixOperand::q:
      return profile_.u_q;
    case MatrixOperand::k:
      return profile_.u_k;
    case MatrixOperand::p:
      return profile_.u_p;
    case MatrixOperand::v:
      return profile_.u_v;
  }
  return 0;
}

double BudgetArithmetic::value_error(double value, double error) const {
  const double u = operand_roundoff(MatrixOperand::v);
  const double size = std::fabs(value) + error;
  return u > 0 && size != 0 ? error + u * size + operand_lambda() : error;
}

double BudgetArithmetic::constant_distance(BudgetTerm term, double value) const {
  const double magnitude = std::fabs(value);
  if (magnitude < flush_threshold()) {
    return on(term) * magnitude;
  }
  const double relative = constant_error(term, value);
  return relative > 0 ? relative * magnitude + lambda(term) : 0;
}

bool BudgetArithmetic::multiplies_exactly(double x, double y) const {
  const double product = x * y;
  const double magnitude = std::fabs(product);
  if (product == 0 || !(magnitude < largest_) || magnitude < flush_threshold() || magnitude < 0x1p-900 ||
      (profile_.flush_to_zero && magnitude < smallest_normal(profile_.accumulator))) {
    return x == 0 || y == 0;
  }
  return std::fma(x, y, -product) == 0 &&
         decode(profile_.accumulator, encode(profile_.accumulator, product)) == product;
}

bool BudgetArithmetic::holds_integer(double value) const {
  return std::fabs(value) <= std::ldexp(1.0, parameters(profile_.accumulator).precision);
}

// Relative error of a constant in the accumulator format. A subnormal one is rounded against its quantum; one beyond
// the range is for those to notice who multiply by it (holds()).
double BudgetArithmetic::constant_off(double value) const {
  if (decode(profile_.accumulator, encode(profile_.accumulator, value)) == value) {
    return 0;
  }
  const double magnitude = std::fabs(value);
  return magnitude < smallest_normal(profile_.accumulator) ? joined(roundoff_, underflow_ / magnitude) : roundoff_;
}

double BudgetArithmetic::constant_error(BudgetTerm term, double value) const {
  return on(term) * constant_off(value);
}

}  // namespace qkcts
