// SPDX-License-Identifier: Apache-2.0
#include "reference/root_sum.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace qkcts {
namespace {

int sign_of(const Rational& x) {
  return x.sign();
}

bool all_zero(std::span<const Rational> terms) {
  return std::all_of(terms.begin(), terms.end(), [](const Rational& x) { return x.sign() == 0; });
}

}  // namespace

struct RootSum::Split {
  RootSum b, g;
  const RootSum& c;
};

// Depth first: what stands in a radicand is of smaller depth.
int RootSum::compare(const RootSum& x, const RootSum& y) {
  const auto order = [](const auto& a, const auto& b) { return a < b ? -1 : b < a ? 1 : 0; };
  if (const int by_depth = order(x.depth(), y.depth()); by_depth != 0) return by_depth;
  if (const int by_count = order(x.terms_.size(), y.terms_.size()); by_count != 0) return by_count;
  for (std::size_t i = 0; i < x.terms_.size(); ++i)
    if (const int by_term = order(x.terms_[i], y.terms_[i]); by_term != 0) return by_term;
  for (std::size_t i = 0; i < x.radicands_.size(); ++i)
    if (const int by_radicand = compare(*x.radicands_[i], *y.radicands_[i]); by_radicand != 0) return by_radicand;
  return 0;
}

RootSum RootSum::square_root(const Rational& radicand) {
  return square_root(RootSum(radicand));
}

RootSum RootSum::square_root(const RootSum& radicand) {
  if (radicand.sign() == 0) return {};
  RootSum result;
  const std::optional<Rational> rational = radicand.rational();
  if (!rational) result.radicands_ = radicand.radicands_;
  result.radicands_.push_back(std::make_shared<const RootSum>(rational ? RootSum(*rational) : radicand));
  result.terms_.assign(std::size_t{1} << result.radicands_.size(), Rational(0));
  result.terms_[result.terms_.size() / 2] = Rational(1);
  return result;
}

std::vector<RootSum::Radicand> RootSum::common(const RootSum& x, const RootSum& y) {
  std::vector<Radicand> all;
  std::set_union(x.radicands_.begin(), x.radicands_.end(), y.radicands_.begin(), y.radicands_.end(),
                 std::back_inserter(all), before);
  return all;
}

RootSum RootSum::over(const std::vector<Radicand>& radicands) const {
  RootSum result;
  result.radicands_ = radicands;
  result.terms_.assign(std::size_t{1} << radicands.size(), Rational(0));
  std::vector<std::size_t> bits;
  for (const Radicand& a : radicands_)
    bits.push_back(
        static_cast<std::size_t>(std::lower_bound(radicands.begin(), radicands.end(), a, before) - radicands.begin()));
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    std::size_t target = 0;
    for (std::size_t b = 0; b < bits.size(); ++b)
      if ((i >> b & 1) != 0) target |= std::size_t{1} << bits[b];
    result.terms_[target] = terms_[i];
  }
  return result;
}

RootSum RootSum::operator+(const RootSum& other) const {
  const std::vector<Radicand> radicands = common(*this, other);
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

// (b + g sqrt(c)) (b' + g' sqrt(c)) = b b' + g g' c + (b g' + g b') sqrt(c), with c over the radicands before it.
RootSum::Terms RootSum::product(std::span<const Rational> x, std::span<const Rational> y,
                                std::span<const Radicand> radicands) {
  Terms result(x.size(), Rational(0));
  if (all_zero(x) || all_zero(y)) return result;
  if (radicands.empty()) {
    result[0] = x[0] * y[0];
    return result;
  }
  const std::size_t half = x.size() / 2;
  const std::span<const Radicand> rest = radicands.first(radicands.size() - 1);
  const auto add = [&](std::size_t from, const Terms& terms) {
    for (std::size_t i = 0; i < half; ++i) result[from + i] += terms[i];
  };
  add(0, product(x.first(half), y.first(half), rest));
  add(half, product(x.first(half), y.last(half), rest));
  add(half, product(x.last(half), y.first(half), rest));
  Terms squares = product(x.last(half), y.last(half), rest);
  const RootSum& c = *radicands.back();
  if (c.radicands_.empty()) {
    for (Rational& term : squares) term *= c.terms_[0];
    add(0, squares);
  } else {
    add(0, product(squares, c.over({rest.begin(), rest.end()}).terms_, rest));
  }
  return result;
}

RootSum RootSum::operator*(const RootSum& other) const {
  RootSum result;
  result.radicands_ = common(*this, other);
  result.terms_ = product(over(result.radicands_).terms_, other.over(result.radicands_).terms_, result.radicands_);
  return result;
}

RootSum::Split RootSum::split() const {
  const auto half = static_cast<std::ptrdiff_t>(terms_.size() / 2);
  Split x{{}, {}, *radicands_.back()};
  x.b.radicands_ = x.g.radicands_ = {radicands_.begin(), radicands_.end() - 1};
  x.b.terms_.assign(terms_.begin(), terms_.begin() + half);
  x.g.terms_.assign(terms_.begin() + half, terms_.end());
  return x;
}

// With one radicand c split off, x = b + g sqrt(c), and b, g, c have one radicand less.
//  - b and g sqrt(c) of one sign, or one of them 0: that sign.
//  - opposite signs: the sign of b where |b| > |g| sqrt(c), i.e. b^2 - c g^2 > 0; that of g where it is < 0; 0 where
//    it is 0. The difference has one radicand less too, so the recursion ends. Nothing here needs the radicands to be
//    independent or free of squares.
int RootSum::sign() const {
  if (radicands_.empty()) return sign_of(terms_[0]);
  const Split x = split();
  const int sign_b = x.b.sign();
  const int sign_g = x.g.sign();
  if (sign_g == 0 || sign_b == sign_g) return sign_b;
  if (sign_b == 0) return sign_g;
  return sign_b * (x.b * x.b - x.g * x.g * x.c).sign();
}

// 1/x = (b - g sqrt(c)) / (b^2 - c g^2). Where that is 0 (c a square of what stands before it), b = -g sqrt(c) would
// be x = 0, so b = g sqrt(c) and x = 2 b.
RootSum RootSum::inverse() const {
  if (radicands_.empty()) return RootSum(Rational(Rational(1) / terms_[0]));
  const Split x = split();
  if (all_zero(x.g.terms_)) return x.b.inverse();
  const RootSum difference = x.b * x.b - x.g * x.g * x.c;
  if (difference.sign() == 0) return (x.b * Rational(2)).inverse();
  RootSum conjugate = *this;
  for (std::size_t i = terms_.size() / 2; i < terms_.size(); ++i) conjugate.terms_[i] *= Rational(-1);
  return conjugate * difference.inverse();
}

std::optional<Rational> RootSum::rational() const {
  if (!all_zero(std::span(terms_).subspan(1))) return std::nullopt;
  return terms_[0];
}

std::optional<std::vector<RootSum::Term>> RootSum::linear() const {
  std::vector<Term> result;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (terms_[i].sign() == 0) continue;
    Term term{terms_[i], Rational(1)};
    for (std::size_t b = 0; b < radicands_.size(); ++b) {
      if ((i >> b & 1) == 0) continue;
      if (!radicands_[b]->radicands_.empty()) return std::nullopt;
      term.radicand *= radicands_[b]->terms_[0];
    }
    result.push_back(std::move(term));
  }
  return result;
}

}  // namespace qkcts
