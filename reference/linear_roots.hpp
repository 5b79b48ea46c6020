// SPDX-License-Identifier: Apache-2.0
// Long sums of rational multiples of square roots of rationals: are they 0? A RootSum would need 2^n terms for n roots.
//
// sqrt(a) and sqrt(b) are rational multiples of each other iff a b is a square of a rational. Of numbers a_1, ..., a_n
// > 0 of which no two are so related, the square roots are linearly independent over the rationals (Besicovitch 1940:
// write each as a rational times the root of a squarefree whole number; roots of distinct squarefree numbers are
// independent). So a sum is 0 iff the coefficients of every class add up to 0.
#pragma once

#include <vector>

#include "reference/root_sum.hpp"

namespace qkcts {

class LinearRoots {
 public:
  // + factor * sqrt(radicand), radicand >= 0.
  void add(const Rational& factor, const Rational& radicand);
  // + factor * x; false, and nothing added, if x has nested roots.
  bool add(const RootSum& x, const Rational& factor);

  bool is_zero() const;

 private:
  struct Class {
    Rational radicand, coefficient;
  };
  std::vector<Class> classes_;
};

}  // namespace qkcts
