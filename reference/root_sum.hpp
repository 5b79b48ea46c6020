// SPDX-License-Identifier: Apache-2.0
// Exact real numbers of the form  sum over subsets S of a few radicands:  r_S * prod_{a in S} sqrt(a),  r_S rational.
//
// Every stage up to the score (and the score plus an additive bias) is such a number: inputs, gains, tables, epsilon
// and scales are rational, and the only irrational operations are the roots of the two norms and of the scale. Sums and
// products stay in the form, and the sign is decidable in rational arithmetic, so a comparison with a rounding boundary
// always ends, also where the number stands exactly on it.
#pragma once

#include <cstddef>
#include <vector>

#include "reference/real.hpp"

namespace qkcts {

class RootSum {
 public:
  RootSum() : terms_(1) {}
  explicit RootSum(const Rational& value) : terms_(1, value) {}
  static RootSum square_root(const Rational& radicand);  // radicand >= 0

  RootSum operator+(const RootSum& other) const;
  RootSum operator-(const RootSum& other) const;
  RootSum operator*(const RootSum& other) const;
  RootSum operator*(const Rational& factor) const;

  int sign() const;  // -1, 0, 1: exact

 private:
  // Coefficient i belongs to the product of the roots of the radicands in the bits of i.
  RootSum over(const std::vector<Rational>& radicands) const;  // rewritten; radicands_ must be a subset
  static std::vector<Rational> common(const RootSum& x, const RootSum& y);

  std::vector<Rational> radicands_;  // ascending, distinct, > 0
  std::vector<Rational> terms_;      // 2^radicands_.size()
};

}  // namespace qkcts
