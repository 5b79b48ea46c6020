// SPDX-License-Identifier: Apache-2.0
// Double words: a real number as the unevaluated sum h + l of two binary64 numbers, h = RN(h + l).
//
// u = 2^-53, round to nearest, ties to even, no underflow and no overflow inside. Names of algorithms and the bounds
// with a number are those of Joldes, Muller and Popescu (2017) as corrected by Muller and Rideau (2022); the others are
// derived here. A bound is relative to the exact result of the operation on its (double-word) operands.
#if defined(QKCTS_DOUBLE_WORD) == defined(HWY_TARGET_TOGGLE)
#ifdef QKCTS_DOUBLE_WORD
#undef QKCTS_DOUBLE_WORD
#else
#define QKCTS_DOUBLE_WORD
#endif

#include "reference/double_word_lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace qkcts::HWY_NAMESPACE {

template <class V>
struct DoubleWord {
  V h, l;
};

constexpr double unit_square = 0x1p-106;  // u^2

// Bounds in units of u^2.
constexpr double add_number_bound = 2;       // algorithm 4
constexpr double add_bound = 3.001;          // algorithm 6: 3/(1 - 4u)
constexpr double multiply_number_bound = 2;  // algorithm 9
constexpr double multiply_bound = 5;         // algorithm 11
constexpr double divide_bound = 11.001;      // divide()
constexpr double root_bound = 3.126;         // SQRTDWtoDW of Lefevre, Louvet, Muller, Picot, Rideau (2023): 25/8

// a + b = h + l exactly, any order of magnitude.
template <class V>
HWY_INLINE DoubleWord<V> two_sum(V a, V b) {
  const V s = a + b;
  const V a1 = s - b;
  const V b1 = s - a1;
  return {s, (a - a1) + (b - b1)};
}

// The same if |a| >= |b| or a = 0.
template <class V>
HWY_INLINE DoubleWord<V> fast_two_sum(V a, V b) {
  const V s = a + b;
  return {s, b - (s - a)};
}

template <class V>
HWY_INLINE DoubleWord<V> two_product(V a, V b) {
  const V p = a * b;
  return {p, fused_minus(a, b, p)};
}

template <class V>
HWY_INLINE DoubleWord<V> add(DoubleWord<V> x, V y) {
  const DoubleWord<V> s = two_sum(x.h, y);
  return fast_two_sum(s.h, x.l + s.l);
}

// The accurate sum: the sloppy one has no bound where the operands have opposite signs.
template <class V>
HWY_INLINE DoubleWord<V> add(DoubleWord<V> x, DoubleWord<V> y) {
  const DoubleWord<V> s = two_sum(x.h, y.h);
  const DoubleWord<V> t = two_sum(x.l, y.l);
  const DoubleWord<V> v = fast_two_sum(s.h, s.l + t.h);
  return fast_two_sum(v.h, t.l + v.l);
}

template <class V>
HWY_INLINE DoubleWord<V> negated(DoubleWord<V> x) {
  return {negated(x.h), negated(x.l)};
}

template <class V>
HWY_INLINE DoubleWord<V> multiply(DoubleWord<V> x, V y) {
  const DoubleWord<V> c = two_product(x.h, y);
  return fast_two_sum(c.h, fused(x.l, y, c.l));
}

template <class V>
HWY_INLINE DoubleWord<V> multiply(DoubleWord<V> x, DoubleWord<V> y) {
  const DoubleWord<V> c = two_product(x.h, y.h);
  const V cross = fused(x.l, y.h, x.h * y.l);
  return fast_two_sum(c.h, c.l + cross);
}

// x / y, y != 0. With q1 = RN(xh / yh) the remainder r1 = xh - q1 yh is a binary64 number, so that it is exact, and
// |r1| <= u |xh|. |xl| <= u |xh| and |yl| <= u |yh|. Relative to |x|, up to terms of u^3:
//   r2 = RN(r1 + xl), |r2| <= 2u: rounding 2 u^2;   r3 = RN(r2 - q1 yl), |r3| <= 3u: rounding 3 u^2;
//   q2 = RN(r3 / yh): yh in place of y costs 3u * u, the rounding 3 u^2.
// x/y = q1 + (x - q1 y)/y, hence the error is at most (2 + 3 + 3 + 3) u^2.
template <class V>
HWY_INLINE DoubleWord<V> divide(DoubleWord<V> x, DoubleWord<V> y) {
  const V q1 = x.h / y.h;
  const V r1 = fused_less(q1, y.h, x.h);
  const V r3 = fused_less(q1, y.l, r1 + x.l);
  return fast_two_sum(q1, r3 / y.h);
}

// sqrt(x), x.h > 0: SQRTDWtoDW.
template <class V>
HWY_INLINE DoubleWord<V> square_root(DoubleWord<V> x) {
  const V s = root_of(x.h);
  const V rest = fused_less(s, s, x.h) + x.l;
  return fast_two_sum(s, rest / (s + s));
}

}  // namespace qkcts::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
