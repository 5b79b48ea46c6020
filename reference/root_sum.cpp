// SPDX-License-Identifier: Apache-2.0
#include "reference/root_sum.hpp"

#include <algorithm>

namespace qkcts {
namespace {

int sign_of(const Rational& x) {
  return x.sign();
}

}  // namespace

RootSum RootSum::square_root(const Rational& radicand) {
  RootSum result;
  if (radicand.sign() == 0) return result;
  result.radicands_ = {radicand};
  result.terms_ = {Rational(0), Rational(1)};
  return result;
}

std::vector<Rational> RootSum::common(const RootSum& x, const RootSum& y) {
  std::vector<Rational> all;
  std::set_union(x.radicands_.begin(), x.radicands_.end(), y.radicands_.begin(), y.radicands_.end(),
                 std::back_inserter(all));
  return all;
}

RootSum RootSum::over(const std::vector<Rational>& radicands) const {
  RootSum result;
  result.radicands_ = radicands;
  result.terms_.assign(std::size_t{1} << radicands.size(), Rational(0));
  std::vector<std::size_t> bits;
  for (const Rational& a : radicands_)
    bits.push_back(
        static_cast<std::size_t>(std::lower_bound(radicands.begin(), radicands.end(), a) - radicands.begin()));
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    std::size_t target = 0;
    for (std::size_t b = 0; b < bits.size(); ++b)
      if ((i >> b & 1) != 0) target |= std::size_t{1} << bits[b];
    result.terms_[target] = terms_[i];
  }
  return result;
}

RootSum RootSum::operator+(const RootSum& other) const {
  const std::vector<Rational> radicands = common(*this, other);
  RootSum result = over(radicands);
  const RootSum right = other.over(radicands);
  for (std::size_t i = 0; i < result.terms_.size(); ++i) result.terms_[i] += right.terms_[i];
  return result;
}

RootSum RootSum::operator-(const RootSum& other) const {
  return *this + other * Rational(-1);
}

RootSum RootSum::operator*(const Rational& factor) const {
  RootSum result = *this;
  for (Rational& term : result.terms_) term *= factor;
  return result;
}

RootSum RootSum::operator*(const RootSum& other) const {
  const std::vector<Rational> radicands = common(*this, other);
  const RootSum left = over(radicands);
  const RootSum right = other.over(radicands);
  RootSum result;
  result.radicands_ = radicands;
  result.terms_.assign(left.terms_.size(), Rational(0));
  for (std::size_t i = 0; i < left.terms_.size(); ++i) {
    if (left.terms_[i].sign() == 0) continue;
    for (std::size_t j = 0; j < right.terms_.size(); ++j) {
      Rational product = left.terms_[i] * right.terms_[j];
      if (product.sign() == 0) continue;
      for (std::size_t b = 0; b < radicands.size(); ++b)  // sqrt(a) sqrt(a) = a
        if (((i & j) >> b & 1) != 0) product *= radicands[b];
      result.terms_[i ^ j] += product;
    }
  }
  return result;
}

// With one radicand c split off, x = b + g sqrt(c), and b, g have one radicand less.
//  - b and g sqrt(c) of one sign, or one of them 0: that sign.
//  - opposite signs: the sign of b where |b| > |g| sqrt(c), i.e. b^2 - c g^2 > 0; that of g where it is < 0; 0 where
//    it is 0. The difference has one radicand less too, so the recursion ends. Nothing here needs the radicands to be
//    independent or free of squares.
int RootSum::sign() const {
  if (radicands_.empty()) return sign_of(terms_[0]);
  const std::size_t half = terms_.size() / 2;
  RootSum b;
  RootSum g;
  b.radicands_ = g.radicands_ = {radicands_.begin(), radicands_.end() - 1};
  b.terms_.assign(terms_.begin(), terms_.begin() + static_cast<std::ptrdiff_t>(half));
  g.terms_.assign(terms_.begin() + static_cast<std::ptrdiff_t>(half), terms_.end());
  const int sign_b = b.sign();
  const int sign_g = g.sign();
  if (sign_g == 0 || sign_b == sign_g) return sign_b;
  if (sign_b == 0) return sign_g;
  return sign_b * (b * b - g * g * radicands_.back()).sign();
}

}  // namespace qkcts
