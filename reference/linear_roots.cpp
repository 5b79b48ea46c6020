// SPDX-License-Identifier: Apache-2.0
#include "reference/linear_roots.hpp"

#include <algorithm>
#include <optional>

namespace qkcts {
namespace {

using Whole = boost::multiprecision::mpz_int;

// sqrt(x), if that is rational; x > 0 is in lowest terms.
std::optional<Rational> rational_root(const Rational& x) {
  const Whole over = numerator(x);
  const Whole under = denominator(x);
  if (mpz_perfect_square_p(over.backend().data()) == 0 || mpz_perfect_square_p(under.backend().data()) == 0)
    return std::nullopt;
  return Rational(Rational(Whole(sqrt(over))) / Rational(Whole(sqrt(under))));
}

}  // namespace

// sqrt(a) = sqrt(a/b) sqrt(b).
void LinearRoots::add(const Rational& factor, const Rational& radicand) {
  if (factor.sign() == 0 || radicand.sign() == 0) return;
  for (Class& one : classes_) {
    const std::optional<Rational> ratio = rational_root(radicand / one.radicand);
    if (!ratio) continue;
    one.coefficient += factor * *ratio;
    return;
  }
  classes_.push_back({radicand, factor});
}

bool LinearRoots::add(const RootSum& x, const Rational& factor) {
  const std::optional<std::vector<RootSum::Term>> terms = x.linear();
  if (!terms) return false;
  for (const RootSum::Term& term : *terms) add(Rational(term.factor * factor), term.radicand);
  return true;
}

bool LinearRoots::is_zero() const {
  return std::all_of(classes_.begin(), classes_.end(), [](const Class& one) { return one.coefficient.sign() == 0; });
}

}  // namespace qkcts
