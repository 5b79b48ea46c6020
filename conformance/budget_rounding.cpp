// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Accuracy of ExactStages.
constexpr double exact_stage_accuracy = 0x1p-50;

// x - r and x + r, moved outward by more than what the sum itself is off by.
Interval around(double x, double r) {
  const double outward = r + (std::fabs(x) + r) * 0x1p-52;
  return {x - outward, x + outward};
}

}  // namespace

double farthest(const Interval& a, const Interval& b) {
  return std::max({a.high - b.low, b.high - a.low, 0.0}) * (1 + 0x1p-52);
}

bool holds(Format outer, Format inner) {
  const FormatParameters& o = parameters(outer);
  const FormatParameters& i = parameters(inner);
  return o.precision >= i.precision && o.largest >= i.largest && o.emin - o.precision <= i.emin - i.precision;
}

RoundingPoint::RoundingPoint(BudgetTerm term, std::uint32_t format, bool saturates, const BudgetArithmetic& arithmetic)
    : format_(format), saturates_(saturates), counts_(arithmetic.u(term) > 0) {
  if (format == 0) {
    return;
  }
  const auto point = static_cast<Format>(format);
  if (arithmetic.sum_lambda(BudgetTerm::rounding_read) > 0) {
    flushed_below_ = std::max(arithmetic.sum_lambda(BudgetTerm::rounding_read), smallest_normal(point));
  }
  accumulator_reach_ = std::ldexp(1.0, parameters(arithmetic.accumulator()).precision);
  reads_ = !holds(arithmetic.accumulator(), point);
  if (reads_) {
    read_roundoff_ = arithmetic.u(BudgetTerm::rounding_read);
    read_lambda_ = arithmetic.lambda(BudgetTerm::rounding_read);
  }
}

double RoundingPoint::nearest(double x) const {
  const auto format = static_cast<Format>(format_);
  const double rounded = decode(format, encode(format, x));
  if (std::isfinite(rounded)) {
    return rounded;
  }
  return std::copysign(saturates_ ? parameters(format).largest : infinity, x);
}

Interval RoundingPoint::exact(const Interval& before) const {
  return exists() ? Interval{nearest(before.low), nearest(before.high)} : before;
}

// Rounding is monotone: docs/budgets.md, Q1. What may be flushed lies between an end and 0.
Interval RoundingPoint::computed(const Interval& before, const Interval& exactly) const {
  if (!exists()) {
    return before;
  }
  if (!counts_) {
    return exactly;
  }
  Interval after = exact(before);
  if (after.low > 0 && after.low < flushed_below_) {
    after.low = 0;
  }
  if (after.high < 0 && after.high > -flushed_below_) {
    after.high = 0;
  }
  if (!reads_) {
    return after;
  }
  const double read = read_roundoff_ * after.size() + read_lambda_;
  return {after.low - read, after.high + read};
}

double RoundingPoint::moved(double x, double blur, double error, double rounded, double least) const {
  if (!exists()) {
    return error;
  }
  if (!std::isfinite(error)) {
    return infinity;
  }
  const Interval exactly{rounded, rounded};
  if (error == 0) {
    // Whatever x is, it is what is computed: even a tie is decided.
    return farthest(computed(exactly, exactly), exactly);
  }
  // A binary64 number behind the point is itself the nearest to x.
  const bool known = static_cast<Format>(format_) == Format::binary64;
  const double centre = known ? rounded : x;
  const double about =
      known ? std::min(blur, std::fabs(rounded) * 0x1p-53 + smallest_subnormal(Format::binary64)) : blur;
  Interval before = around(centre, error + about);
  before.low = std::max(before.low, least);
  return farthest(computed(before, exactly), exactly);
}

double RoundingPoint::moved(double x, double blur, double error) const {
  if (!exists() || !std::isfinite(error)) {
    return error;
  }
  const Interval exactly = exact(around(x, blur));
  if (error == 0) {
    return std::max(moved(x, 0, 0, exactly.low), moved(x, 0, 0, exactly.high));
  }
  return farthest(computed(around(x, error + blur), exactly), exactly);
}

bool RoundingPoint::adds_exactly(const Interval& a, const Interval& b) const {
  if (reads_ || !exists()) {
    return false;
  }
  const auto format = static_cast<Format>(format_);
  double quantum = std::numeric_limits<double>::infinity();
  for (const Interval& x : {a, b}) {
    if (x.high > 0) {
      quantum = std::min(quantum, ulp(format, std::max(0.0, x.low)));
    }
  }
  return a.high + b.high <= quantum * accumulator_reach_;
}

// |RN(x') - RN(x)| <= |x' - x| + |RN(x') - x'| + |RN(x) - x|, with at most half a unit in the last place each.
double RoundingPoint::moved_anywhere(double size, double error) const {
  if (!exists() || !std::isfinite(error)) {
    return error;
  }
  const auto format = static_cast<Format>(format_);
  const double reach = size + error;
  const bool overflows = !saturates_ && !(reach * (1 + unit_roundoff(format)) < parameters(format).largest);
  if (overflows || !counts_) {
    return overflows ? infinity : 0;
  }
  const double rounded = 2 * (unit_roundoff(format) * reach + smallest_subnormal(format));
  return sum_upper(error + rounded + flushed_below_ + read_roundoff_ * (reach + rounded) + read_lambda_, 16);
}

double RoundingPoint::largest_behind(double size) const {
  if (!exists()) {
    return size;
  }
  const auto format = static_cast<Format>(format_);
  return size * (1 + unit_roundoff(format)) * (1 + 0x1p-52) + smallest_subnormal(format);
}

void round_errors(VectorError& vector, const double* before, const double* after, std::int64_t first,
                  std::int64_t count, const RoundingPoint& point) {
  if (!point.exists() || vector.domain) {
    return;
  }
  vector.held.resize(vector.magnitude.size());
  for (std::size_t i = 0; i < vector.magnitude.size(); ++i) {
    const auto lane = static_cast<std::int64_t>(i);
    if (lane < first || lane >= first + count) {
      vector.error[i] = sum_upper(vector.total(i), 16);
      continue;
    }
    vector.magnitude[i] = std::fabs(before[i]);
    const double total = sum_upper(vector.total(i), 16);
    vector.error[i] = point.moved(before[i], std::fabs(before[i]) * exact_stage_accuracy, total, after[i]);
    vector.magnitude[i] = std::fabs(after[i]);
    vector.held[i] = point.format();
    vector.domain = vector.domain || !std::isfinite(vector.error[i]);
  }
  vector.common = 0;
}

}  // namespace qkcts
