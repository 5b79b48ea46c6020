// SPDX-License-Identifier: Apache-2.0
// exp, expm1, tanh and log1p of double words, each with the bound of its error beside the value.
//
// u = 2^-53. Quasi product of r and B, where r is a double word and |Bl| <= b u |Bh|: p = RN(rh Bh), p + e1 = rh Bh
// exactly, e2 = RN(rh Bl + e1), e3 = RN(rl Bh + e2). |e2| <= (1 + b) u |p|, |e3| <= (2 + b) u |p|, rl Bl is left out:
//   error <= ((1 + b) + (2 + b) + b) u^2 |p| = (3 + 3b) u^2 |p|, and the low word is at most (2 + b) u |p|.
#if defined(QKCTS_DOUBLE_WORD_FUNCTION) == defined(HWY_TARGET_TOGGLE)
#ifdef QKCTS_DOUBLE_WORD_FUNCTION
#undef QKCTS_DOUBLE_WORD_FUNCTION
#else
#define QKCTS_DOUBLE_WORD_FUNCTION
#endif

#include "reference/double_word.hpp"
#include "reference/double_word_constants.hpp"

HWY_BEFORE_NAMESPACE();
namespace qkcts::HWY_NAMESPACE {

HWY_INLINE DoubleWord<Lanes> quasi_product(DoubleWord<Lanes> r, DoubleWord<Lanes> b) {
  const DoubleWord<Lanes> p = two_product(r.h, b.h);
  return {p.h, fused(r.l, b.h, fused(r.h, b.l, p.l))};
}

// x = k ln2/256 + r, |r| <= ln2/512 (1 + 2^-20), for |x| < 1400, so that |k| < 2^19 and k times a piece of 34 bits is
// exact. p = e^r - 1. e^x = 2^(k div 256) T (1 + p), T = 2^((k mod 256)/256).
//
// r: k L1 and k L2 are exact and so are both two_sum; |s1.l|, |s2.l| <= u 0.0014 (1 + 2^-30). low = RN(RN(xl - k L3) +
// RN(s1.l + s2.l)): |xl| <= u |x| and |k L3| <= 2^-69 |x|, so the roundings are u^2 (1.001 |x|), u^2 0.003 and
// u^2 (1.001 |x| + 0.003); what ln2 has beyond the three pieces is below 2^-120 |x|. So r is off by at most
// (2.01 |x| + 0.01) u^2, and exact for k = 0.
struct Reduced {
  DoubleWord<Lanes> r;
  DoubleWord<Lanes> p;
  Lanes p_error;  // relative error of p, in units of u^2
  Bits k;         // two's complement
  Mask is_small;  // k = 0
};

// p = r (1 + r (1/2 + r (1/6 + r (1/24 + r t)))), t = 1/5! + ... + r^4/9!. With rho = |r| <= 0.001355:
//   t in binary64 from rh: coefficient u, last rounding u, the rest 0.01 u: 2.01 u. v = RN(rh t): with rl left out (u)
//   and its rounding 4.02 u, so v is off by 4.02 u rho/119.
//   B4 = 1/24 + v: fast_two_sum is exact, l = RN(t + c.l) of two numbers <= u/24: 2.01 u^2/24. |l| <= 2.01 u h.
//   B3 = 1/6 + r B4: quasi product with b = 2.01: 9.1 u^2 |p|, |p| <= 0.0004/6; l = RN(t + RN(e3 + c.l)): both parts
//        <= u/6: (1.01 + 2.01) u^2/6. Sum: 3.03 u^2/6 + rho err(B4). |l| <= 2.02 u h.
//   B2 = 1/2 + r B3: no low word in 1/2; quasi product 9.1 u^2 |p|, |p| <= 0.0005/2; l = RN(t + e3): 1.02 u^2/2.
//        Sum: 1.03 u^2/2 + rho err(B3). |l| <= 1.01 u h.
//   B1 = 1 + r B2: likewise 1.02 u^2 + rho err(B2). |l| <= 1.01 u.
//   p  = r B1: quasi product with b = 1.01: 6.1 u^2, fast_two_sum exact; B1 >= 0.998.
// Relative: 6.1 + 1.03 + 0.01 (the u^2 terms under rho) + 0.035 rho^4/u, and the series left out,
// rho^9/10! <= 0.36 u^2:
//   p_error = 7.5 + 0.035 rho^4/u.
HWY_INLINE Reduced reduce(DoubleWord<Lanes> x, const ExpConstants& c) {
  Reduced result;
  const Lanes shifter = all(0x1.8p52);
  const Lanes shifted = fused(x.h, all(c.inverse_step), shifter);
  const Lanes k = shifted - shifter;
  result.k = hn::BitCast(BitsTag(), shifted) - hn::BitCast(BitsTag(), shifter);
  result.is_small = hn::Eq(k, all(0.0));
  const DoubleWord<Lanes> s1 = two_sum(x.h, negated(k * all(c.step[0])));
  const DoubleWord<Lanes> s2 = two_sum(s1.h, negated(k * all(c.step[1])));
  result.r = two_sum(s2.h, fused_less(k, all(c.step[2]), x.l) + (s1.l + s2.l));

  const DoubleWord<Lanes>& r = result.r;
  Lanes t = fused(r.h, all(c.tail[4]), all(c.tail[3]));
  t = fused(r.h, t, all(c.tail[2]));
  t = fused(r.h, t, all(c.tail[1]));
  t = fused(r.h, t, all(c.tail[0]));
  DoubleWord<Lanes> b = fast_two_sum(all(c.twenty_fourth[0]), r.h * t);
  b.l = b.l + all(c.twenty_fourth[1]);
  DoubleWord<Lanes> product = quasi_product(r, b);
  b = fast_two_sum(all(c.sixth[0]), product.h);
  b.l = b.l + (product.l + all(c.sixth[1]));
  product = quasi_product(r, b);
  b = fast_two_sum(all(0.5), product.h);
  b.l = b.l + product.l;
  product = quasi_product(r, b);
  b = fast_two_sum(all(1.0), product.h);
  b.l = b.l + product.l;
  product = quasi_product(r, b);
  result.p = fast_two_sum(product.h, product.l);
  const Lanes square = r.h * r.h;
  result.p_error = fused(all(0.035 * 0x1p53), square * square, all(7.5));
  return result;
}

// 2^(k div 256), from the two's complement k, for -1022 <= k div 256 <= 1023.
HWY_INLINE Lanes power_of_two(Bits k) {
  const BitsTag bits;
  const Bits biased = k + hn::Set(bits, std::uint64_t{1023} << exp_table_bits);
  return hn::BitCast(Tag(), hn::ShiftLeft<52>(hn::ShiftRight<exp_table_bits>(biased)));
}

// T 2^(k div 256) as a double word; T is off by 2^-107 = u^2/2 of itself.
HWY_INLINE DoubleWord<Lanes> table_power(Bits k, const ExpConstants& c) {
  const Bits entry = hn::And(k, hn::Set(BitsTag(), std::uint64_t{exp_table_size - 1}));
  const auto index = hn::BitCast(SignedTag(), entry);
  const Lanes scale = power_of_two(k);
  return {hn::GatherIndex(Tag(), c.high.data(), index) * scale, hn::GatherIndex(Tag(), c.low.data(), index) * scale};
}

// e^x for |x| <= 620. T p: quasi product with b = 1, 6 u^2 |T p|; l = RN(t + RN(e3 + Tl)), both parts <= 1.01 u T:
// (1.01 + 2.02) u^2; p is off by 0.00136 p_error <= 1.6 u^2. With T's own u^2/2: 5.2 u^2, and x as reduced:
//   relative error <= (2.01 |x| + 5.3) u^2.
constexpr double exp_largest = 620;
HWY_INLINE Lanes exp_error(Lanes x_magnitude) {
  return fused(all(2.01 * unit_square), x_magnitude, all(5.3 * unit_square));
}
HWY_INLINE DoubleWord<Lanes> exponential(DoubleWord<Lanes> x, const ExpConstants& c) {
  const Reduced reduced = reduce(x, c);
  const DoubleWord<Lanes> power = table_power(reduced.k, c);
  const DoubleWord<Lanes> product = quasi_product(reduced.p, power);
  const DoubleWord<Lanes> sum = fast_two_sum(power.h, product.h);
  return fast_two_sum(sum.h, sum.l + (product.l + power.l));
}

// e^x - 1 for 0 <= x <= 620, with P = T 2^(k div 256).
// a = P - 1: Ph >= 1, so fast_two_sum is exact; al = RN(a.l + Pl) of two numbers <= u P: 2 u^2 P. For k >= 1:
// P - 1 >= 0.0027 > |P p| (1 + 2^-50) at k = 1, and further apart beyond, so fast_two_sum of a and P p is exact.
// l = RN(t + RN(e3 + al)): |e3| <= 0.005 u P, |al| <= 2 u P, |t| <= u P: (2.01 + 3.01) u^2 P. With 0.01 u^2 P of the
// quasi product and P's own u^2/2: 7.6 u^2 P. For k = 0: P = 1, a = 0 and every step is exact.
//   error <= P |p| p_error u^2 + (k >= 1: (7.6 + 2.01 x + 0.01) u^2 P).
struct ExpMinusOne {
  DoubleWord<Lanes> value;
  Lanes error;  // absolute
  Lanes p, p_error;
  Mask is_small;
};
HWY_INLINE ExpMinusOne exp_minus_one(DoubleWord<Lanes> x, const ExpConstants& c) {
  const Reduced reduced = reduce(x, c);
  const DoubleWord<Lanes> power = table_power(reduced.k, c);
  const DoubleWord<Lanes> a = fast_two_sum(power.h, all(-1.0));
  const DoubleWord<Lanes> product = quasi_product(reduced.p, power);
  const DoubleWord<Lanes> sum = fast_two_sum(a.h, product.h);
  ExpMinusOne result;
  result.value = fast_two_sum(sum.h, sum.l + (product.l + (a.l + power.l)));
  result.p = magnitude(reduced.p.h);
  result.p_error = reduced.p_error;
  result.is_small = reduced.is_small;
  const Lanes beyond = hn::IfThenElse(reduced.is_small, all(0.0), fused(all(2.02), x.h, all(7.7)));
  result.error = all(unit_square) * power.h * fused(result.p, reduced.p_error, beyond);
  return result;
}

// tanh y = m / (m + 2) with m = e^(2|y|) - 1, and the sign of y. |y| is cut off at 50, where tanh is within 2^-143 of 1
// and of the value at the cut.
// d tanh / dm = 2/(m + 2)^2. With E = m + 1 >= P (1 - 0.0014): 2 P/(E + 1)^2 <= 0.501, so that the errors of m give
// 0.501 |p| p_error u^2 and, for k >= 1, 0.501 * 7.7 u^2 + 2 E/(E + 1)^2 * 2.02 x u^2 with x = 2|y|; x E/(E + 1)^2 =
// x / (4 cosh^2(x/2)) <= 0.224: together 4.8 u^2. The denominator is a sum (2 u^2), then the quotient (11 u^2).
//   error <= 13.1 u^2 |tanh| + 0.51 |p| p_error u^2 + (k >= 1: 4.9 u^2), including the cut.
struct Bounded {
  DoubleWord<Lanes> value;
  Lanes error;  // absolute
};
HWY_INLINE Bounded hyperbolic_tangent(DoubleWord<Lanes> y, const ExpConstants& c) {
  const Mask is_negative = hn::Lt(y.h, all(0.0));
  const Lanes sign = hn::IfThenElse(is_negative, all(-1.0), all(1.0));
  const Mask is_cut = hn::Gt(magnitude(y.h), all(50.0));
  const Lanes twice = all(2.0) * sign;
  const DoubleWord<Lanes> x{hn::IfThenElse(is_cut, all(100.0), y.h * twice),
                            hn::IfThenElse(is_cut, all(0.0), y.l * twice)};
  const ExpMinusOne m = exp_minus_one(x, c);
  const DoubleWord<Lanes> t = divide(m.value, add(m.value, all(2.0)));
  const Lanes beyond = hn::IfThenElse(m.is_small, all(0.0), all(4.9));
  const Lanes error = fused(all(0.51) * m.p, m.p_error, fused(all(13.1), t.h, beyond));
  return {{t.h * sign, t.l * sign}, all(unit_square) * error};
}

// log(1 + w) for 0 <= w, from an approximation y0 >= 0 of any origin: with E = e^y0 - 1 and d = (w - E)/(1 + E),
// log(1 + w) = y0 + log(1 + d), and log(1 + d) = d up to d^2. Valid where |d| <= 2^-45 y0, which is looked at.
// dh = wh - Eh is exact (they agree to 2^-44 of themselves); |wl - El| <= 2 u w with rounding 2 u^2 w, and the sum
// rounds by u (2^-44 + 2u) w: all below 0.01 u^2 w beside 2 u^2 w. The quotient d and its denominator in binary64: 3 u
// |d|, 1 + E taken as 1 + Eh: u |d|. |d| <= 2^-45 y0 gives 4 u |d| <= 2^10 u^2 y0, d^2 <= 2^-90 y0^2: bounded by the
// term `rough`. E is off by E_error, which the slope 1/(1 + E) carries over.
//   error <= (E_error + 2.1 u^2 w)/(1 + w) (1 + 2^-40) + 4.1 u |d| + d^2.
HWY_INLINE Bounded log_one_plus(DoubleWord<Lanes> w, Lanes y0, const ExpConstants& c) {
  const ExpMinusOne e = exp_minus_one({y0, all(0.0)}, c);
  const Lanes denominator = e.value.h + all(1.0);
  const Lanes d = ((w.h - e.value.h) + (w.l - e.value.l)) / denominator;
  const Lanes carried = fused(all(2.1 * unit_square), w.h, e.error) / denominator;
  const Lanes rough = fused(d, d, all(4.1 * 0x1p-53) * magnitude(d));
  const Mask is_near = hn::Le(magnitude(d), all(0x1p-45) * y0);
  const Lanes error = hn::IfThenElse(is_near, fused(carried, all(1 + 0x1p-30), rough), all(HUGE_VAL));
  return {fast_two_sum(y0, d), error};
}

}  // namespace qkcts::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
