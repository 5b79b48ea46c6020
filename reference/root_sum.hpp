// SPDX-License-Identifier: Apache-2.0
// Exact real numbers of the form  sum over subsets S of a few radicands:  r_S * prod_{a in S} sqrt(a),  r_S rational. A
// radicand is rational, or itself such a number over radicands that stand before it.
//
// Every stage up to the score (and the score plus an additive bias) is such a number: inputs, weights, gains, tables,
// epsilon and scales are rational, and the only irrational operations are the roots of the norms and of the scale. (A
// norm after a projection after a norm has a root of a sum with roots in it.) Sums, products and inverses stay in the
// form, and the sign is decidable in rational arithmetic, so a comparison with a rounding boundary always ends, also
// where the number stands exactly on it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reference/real.hpp"

namespace qkcts {

class RootSum {
 public:
  RootSum() : terms_(1) {}
  explicit RootSum(const Rational& value) : terms_(1, value) {}
  static RootSum square_root(const Rational& radicand);  // radicand >= 0
  static RootSum square_root(const RootSum& radicand);   // likewise

  RootSum operator+(const RootSum& other) const;
  RootSum operator-(const RootSum& other) const;
  RootSum operator*(const RootSum& other) const;
  RootSum operator*(const Rational& factor) const;
  RootSum inverse() const;  // of a number that is not 0

  int sign() const;  // -1, 0, 1: exact
  // The number, if no root stands in what is written here (one that cancels may).
  std::optional<Rational> rational() const;

  // The same number as a sum of factors times square roots of rationals >= 0, if no radicand has roots in it.
  struct Term {
    Rational factor, radicand;
  };
  std::optional<std::vector<Term>> linear() const;

 private:
  using Radicand = std::shared_ptr<const RootSum>;
  using Terms = std::vector<Rational>;

  static int compare(const RootSum& x, const RootSum& y);  // of what is written, so that equal radicands are shared
  static bool before(const Radicand& x, const Radicand& y) { return compare(*x, *y) < 0; }
  static std::vector<Radicand> common(const RootSum& x, const RootSum& y);
  static Terms product(std::span<const Rational> x, std::span<const Rational> y, std::span<const Radicand> radicands);
  int depth() const { return radicands_.empty() ? 0 : 1 + radicands_.back()->depth(); }
  RootSum over(const std::vector<Radicand>& radicands) const;  // rewritten; radicands_ must be a subset
  // x = b + g sqrt(c), c the last radicand; there must be one.
  struct Split;
  Split split() const;

  // Ascending, distinct, > 0; those with roots in them after all that stand in them.
  std::vector<Radicand> radicands_;
  // Coefficient i belongs to the product of the roots of the radicands in the bits of i; 2^radicands_.size().
  Terms terms_;
};

}  // namespace qkcts
