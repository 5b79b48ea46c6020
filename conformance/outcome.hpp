// SPDX-License-Identifier: Apache-2.0
// What conforming implementations may make of one number after a NaN or an infinity, as a set: numbers by their sign,
// infinities, NaN (QK-SPECIAL). An operation on sets gives every outcome of IEEE 754 for every pair of members.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace qkcts {

using Outcomes = std::uint8_t;

namespace outcome {
constexpr Outcomes negative = 1, zero = 2, positive = 4, minus_infinity = 8, plus_infinity = 16, nan = 32;
constexpr Outcomes number = negative | zero | positive;
constexpr Outcomes infinite = minus_infinity | plus_infinity;
// What a value may be that conforming implementations leave to chance.
constexpr Outcomes number_or_nan = number | nan;
constexpr Outcomes anything = number | infinite | nan;
}  // namespace outcome

// A finite value, judged as always.
constexpr bool is_number(Outcomes a) {
  return (a & ~outcome::number) == 0;
}
constexpr bool may_be_number(Outcomes a) {
  return (a & outcome::number) != 0;
}

constexpr Outcomes negated(Outcomes a) {
  using namespace outcome;
  const auto swapped = [a](Outcomes one, Outcomes other) {
    return static_cast<Outcomes>(((a & one) != 0 ? other : 0) | ((a & other) != 0 ? one : 0));
  };
  return static_cast<Outcomes>(swapped(negative, positive) | swapped(minus_infinity, plus_infinity) |
                               (a & (zero | nan)));
}

constexpr std::initializer_list<Outcomes> single_outcomes = {
    outcome::negative, outcome::zero, outcome::positive, outcome::minus_infinity, outcome::plus_infinity, outcome::nan};

constexpr Outcomes sum_of_singles(Outcomes a, Outcomes b) {
  using namespace outcome;
  if (a == nan || b == nan) return nan;
  if ((a & infinite) != 0 && (b & infinite) != 0) return a == b ? a : nan;
  if ((a & infinite) != 0) return a;
  if ((b & infinite) != 0) return b;
  return a == b || b == zero ? a : a == zero ? b : number;
}

constexpr Outcomes product_of_singles(Outcomes a, Outcomes b) {
  using namespace outcome;
  if (a == nan || b == nan) return nan;
  const bool is_infinite = ((a | b) & infinite) != 0;
  if (a == zero || b == zero) return is_infinite ? nan : zero;
  const bool is_negative = ((a & (negative | minus_infinity)) != 0) != ((b & (negative | minus_infinity)) != 0);
  if (is_infinite) return is_negative ? minus_infinity : plus_infinity;
  return is_negative ? negative : positive;
}

template <class Operation>
constexpr Outcomes of_pairs(Outcomes a, Outcomes b, Operation operation) {
  Outcomes result = 0;
  for (const Outcomes x : single_outcomes)
    for (const Outcomes y : single_outcomes)
      if ((a & x) != 0 && (b & y) != 0) result |= operation(x, y);
  return result;
}

// One addition. Two numbers may cancel or flush, so the sign of their sum is open.
constexpr Outcomes sum(Outcomes a, Outcomes b) {
  if (is_number(a) && is_number(b)) return outcome::number;
  return of_pairs(a, b, sum_of_singles);
}

// One product of two numbers may underflow to 0.
constexpr Outcomes product(Outcomes a, Outcomes b) {
  Outcomes result = of_pairs(a, b, product_of_singles);
  if ((result & outcome::number) != 0) result |= outcome::zero;
  return result;
}

// Of a sum of many terms: compensated summation and operands split into parts are legal (docs/budgets.md), and they
// subtract an infinity from itself.
constexpr Outcomes summed(Outcomes a) {
  return (a & outcome::infinite) != 0 ? static_cast<Outcomes>(a | outcome::nan) : a;
}

}  // namespace qkcts
