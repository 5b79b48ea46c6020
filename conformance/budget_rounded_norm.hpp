// SPDX-License-Identifier: Apache-2.0
// Error of a norm whose root, reciprocal or quotient is rounded on the way (QK-ROUND): docs/budgets.md, Q2.
#pragma once

#include <qkcts/contract.h>

#include "conformance/budget_norm.hpp"
#include "conformance/budget_rounding.hpp"

namespace qkcts {

// The points that a norm passes before its end.
struct NormPoints {
  RoundingPoint root, reciprocal, unit;

  bool exist() const { return root.exists() || reciprocal.exists() || unit.exists(); }
};
NormPoints norm_points(const qkcts_vector_rounding& points, bool saturates, const BudgetArithmetic& arithmetic);
// Of a norm that may round its unit, and neither its root nor the reciprocal of that.
NormPoints unit_point(std::uint32_t format, bool saturates, const BudgetArithmetic& arithmetic);

// The vectors of one statistic. What its root is off by is no common factor any more: it is counted in every element.
class RoundedNorm {
 public:
  RoundedNorm(const qkcts_norm& norm, const NormStatistics& statistics, const NormPoints& points,
              const BudgetArithmetic& arithmetic);

  // A point may overflow, or round the root to 0.
  bool domain() const { return domain_; }

  // One element before the clamp at the end: the exact number as far as binary64 knows it, `blur` how far off that may
  // be, and the error of what is computed.
  struct Element {
    double value = 0;
    double blur = 0;
    double error = 0;
    bool domain = false;
  };
  Element element(double x, double x_error, const ElementParameters& parameters) const;

 private:
  // A number as the interval that it is known to lie in, with the error of what is computed for it.
  struct Part {
    Interval exact;
    double error = 0;
  };
  void set_divisor();
  void set_factor();
  // c / d before and behind the point `unit`.
  Part centred(double x, double x_error) const;
  Part unit(const Part& centred, Element& element) const;

  const qkcts_norm& norm_;
  const NormStatistics& statistics_;
  const NormPoints& points_;
  const BudgetArithmetic& arithmetic_;
  bool inside_ = false;
  Interval divisor_, divisor_computed_;  // d
  Interval factor_, factor_computed_;    // 1 / d
  double kappa_ = 0;                     // roundings of the product of an element with 1 / d
  bool domain_ = false;
};

}  // namespace qkcts
