// SPDX-License-Identifier: Apache-2.0
// Declared rounding points (QK-ROUND): how far a number behind one may be from the exact one. docs/budgets.md, Q1, Q4.
#pragma once

#include <cstdint>
#include <limits>

#include "conformance/budget_arithmetic.hpp"
#include "conformance/budget_vector.hpp"

namespace qkcts {

struct Interval {
  double low = 0;
  double high = 0;

  double size() const { return high > -low ? high : -low; }  // largest magnitude
};

// Largest distance between a number of one interval and one of the other.
double farthest(const Interval& a, const Interval& b);

// Are all numbers of `inner` numbers of `outer`?
bool holds(Format outer, Format inner);

class RoundingPoint {
 public:
  RoundingPoint() = default;  // none
  // `format` is a qkcts_format, 0: none. While `term` is switched off, computed numbers are exact behind the point.
  RoundingPoint(BudgetTerm term, std::uint32_t format, bool saturates, const BudgetArithmetic& arithmetic);

  bool exists() const { return format_ != 0; }
  std::uint32_t format() const { return format_; }

  // What the exact number becomes that lies in `before`; and what the computed one may become, which may be flushed, or
  // read by an accumulator that does not hold the format. `exactly` is what the exact one becomes: all that is left
  // while the term is off. An end that overflows is infinite.
  Interval exact(const Interval& before) const;
  Interval computed(const Interval& before, const Interval& exactly) const;

  // Error behind the point: x, known to within `blur`, becomes `rounded`; what is computed is off x by at most `error`,
  // and never below `least`. Infinite where it may overflow.
  double moved(double x, double blur, double error, double rounded,
               double least = -std::numeric_limits<double>::infinity()) const;
  // The same where the rounded number is not given, but must follow from x; and of any number that is at most `size`.
  double moved(double x, double blur, double error) const;
  double moved_anywhere(double size, double error) const;
  // Does the accumulator hold the sum and the difference of any two numbers of the format with magnitudes in these
  // intervals? They are multiples of the quantum of the smaller one.
  bool adds_exactly(const Interval& a, const Interval& b) const;
  // No number of at most this size becomes larger than that.
  double largest_behind(double size) const;

 private:
  double nearest(double x) const;

  std::uint32_t format_ = 0;
  bool saturates_ = false;
  bool counts_ = false;
  double flushed_below_ = 0;  // smaller numbers may become 0
  bool reads_ = false;        // the accumulator does not hold the format: its rounding, and its underflow
  double read_roundoff_ = 0;
  double read_lambda_ = 0;
  double accumulator_reach_ = 0;  // 2^p of the accumulator
};

// Lanes first .. first + count - 1 of a row pass a point; `before` and `after` are their exact numbers, [D] each. The
// factor that the lanes of the vector share ends here: it is part of the error of every lane.
void round_errors(VectorError& vector, const double* before, const double* after, std::int64_t first,
                  std::int64_t count, const RoundingPoint& point);

}  // namespace qkcts
