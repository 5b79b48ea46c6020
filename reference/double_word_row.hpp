// SPDX-License-Identifier: Apache-2.0
// Loops over the keys of one row of attention, and over the columns of its output.
//
// u = 2^-53; errors are absolute unless called relative, and multiplied by 1 + 2^-30 for the roundings of the error
// itself.
#if defined(QKCTS_DOUBLE_WORD_ROW) == defined(HWY_TARGET_TOGGLE)
#ifdef QKCTS_DOUBLE_WORD_ROW
#undef QKCTS_DOUBLE_WORD_ROW
#else
#define QKCTS_DOUBLE_WORD_ROW
#endif

#include "reference/double_word_dot.hpp"
#include "reference/double_word_function.hpp"
#include "reference/double_word_operand.hpp"

HWY_BEFORE_NAMESPACE();
namespace qkcts::HWY_NAMESPACE {

// A = x_norm * y_norm for every column.
inline void set_anchors(const double* norms, std::size_t n, double norm, double* anchors) {
  for (std::size_t i = 0; i < n; i += lane_count) store(anchors + i, anchor_of(load(norms + i) * all(norm)));
}

// s = factor * scale_k * z, with z the dot product of the vectors x and y that are known within dx and dy (2-norms):
// |z - <x + dx, y + dy>| <= E + dx ||y|| + ||x|| dy + dx dy. Two products of double words: 10 u^2, and the relative
// errors of both factors.
// Without norm and rotation, all products of entries are multiples of `grid`. If g = anchor/3 2^-51 <= grid, every e of
// the anchored sum is 0 and z = acc - anchor is exact; and so is its product with a binary64 factor.
inline void score_row(ConstWords dots, const double* anchors, std::size_t n, const ScoreTerms& terms,
                      const NormedKeys& keys, Words scores, double* error) {
  const DoubleWord<Lanes> factor = all(terms.factor);
  const Lanes factor_size = magnitude(factor.h);
  const Lanes finest = all(terms.grid * 0x1.8p52);  // as an anchor
  for (std::size_t i = 0; i < n; i += lane_count) {
    const DoubleWord<Lanes> z = load_word(dots, i);
    const DoubleWord<Lanes> scale{load(keys.scale_high + i), load(keys.scale_low + i)};
    const DoubleWord<Lanes> s = multiply(multiply(z, scale), factor);
    const Lanes norm = load(keys.norm + i);
    const Lanes delta = load(keys.delta + i);
    const Lanes anchor = load(anchors + i);
    Lanes e = dot_error(all(terms.norm) * norm, anchor, terms.size);
    e = fused(all(1.01 * unit_square), magnitude(z.h), e);
    e = fused(all(terms.delta), norm + delta, fused(all(terms.norm), delta, e));
    e = e * (magnitude(scale.h) * factor_size);
    const Lanes relative = load(keys.scale_error + i) + all(terms.factor_error + 2 * multiply_bound * unit_square);
    e = fused(magnitude(s.h), relative, e) * all(slack);
    if (terms.is_exact_product) e = hn::IfThenElse(hn::Le(anchor, finest), all(0.0), e);
    store_word(scores, i, s);
    store(error + i, e);
  }
}

// An exact binary64 number plus a number is exact; else 2 u^2.
HWY_INLINE DoubleWord<Lanes> biased(DoubleWord<Lanes> x, Lanes bias, Lanes& error) {
  const DoubleWord<Lanes> z = add(x, bias);
  const Mask is_exact = hn::Eq(magnitude(x.l) + error, all(0.0));
  const Lanes e = fused(all(add_number_bound * unit_square), magnitude(z.h), error) * all(slack);
  error = hn::IfThenElse(is_exact, all(0.0), e);
  return z;
}

// c tanh(x/c) = c tanh(y): y = x RN(1/c) within (11 + 5) u^2 relative. The slope of tanh is at most 1, so that c tanh
// moves by err(x) + 16.01 u^2 |x| at most; c times the error of tanh; the product with c: 2 u^2.
inline void cap_row(ConstWords scores, const double* score_error, std::size_t n, const CapOperands& terms, Words result,
                    double* error) {
  const ExpConstants& constants = exp_constants();
  for (std::size_t i = 0; i < n; i += lane_count) {
    DoubleWord<Lanes> x = load_word(scores, i);
    Lanes e = load(score_error + i);
    if (terms.before != nullptr) x = biased(x, load(terms.before + i), e);
    if (terms.cap > 0) {
      const Bounded t = hyperbolic_tangent(multiply(x, all(terms.inverse)), constants);
      e = fused(all((divide_bound + multiply_bound + 0.01) * unit_square), magnitude(x.h), e);
      e = fused(all(terms.cap), t.error, e);
      x = multiply(t.value, all(terms.cap));
      e = fused(all(multiply_number_bound * unit_square), magnitude(x.h), e) * all(slack);
    }
    if (terms.after != nullptr) x = biased(x, load(terms.after + i), e);
    store_word(result, i, x);
    store(error + i, e);
  }
}

inline RowExtremes extremes_of(ConstWords x, const double* error, std::size_t n) {
  Lanes most = all(-HUGE_VAL), size = all(0.0), worst = all(0.0);
  for (std::size_t i = 0; i < n; i += lane_count) {
    const Mask is_seen = hn::FirstN(Tag(), n - i);
    const Lanes h = load(x.h + i), e = load(error + i);
    most = hn::Max(most, hn::IfThenElse(is_seen, h, all(-HUGE_VAL)));
    size = hn::Max(size, hn::IfThenElseZero(is_seen, magnitude(h)));
    worst = hn::Max(worst, hn::IfThenElseZero(is_seen, hn::IfThenElse(hn::Le(e, all(HUGE_VAL)), e, all(HUGE_VAL))));
  }
  const double largest = hn::GetLane(hn::MaxOfLanes(Tag(), most));
  const double farthest = hn::GetLane(hn::MaxOfLanes(Tag(), size));
  // Among equal high words the low ones decide.
  RowExtremes found{n, n, hn::GetLane(hn::MaxOfLanes(Tag(), worst))};
  const auto low_of = [x](std::size_t j) { return x.h[j] < 0 ? -x.l[j] : x.l[j]; };
  for (std::size_t i = 0; i < n; i += lane_count) {
    const Lanes h = load(x.h + i);
    const Mask is_one = hn::Or(hn::Eq(h, all(largest)), hn::Eq(magnitude(h), all(farthest)));
    if (hn::AllFalse(Tag(), is_one)) continue;
    for (std::size_t j = i; j < n && j < i + lane_count; ++j) {
      const bool is_largest = x.h[j] == largest && (found.largest == n || x.l[j] > x.l[found.largest]);
      const bool is_farthest =
          std::fabs(x.h[j]) == farthest && (found.farthest == n || low_of(j) > low_of(found.farthest));
      if (is_largest) found.largest = j;
      if (is_farthest) found.farthest = j;
    }
  }
  if (found.largest == n) found.largest = 0;  // no numbers: their errors are infinite
  if (found.farthest == n) found.farthest = 0;
  return found;
}

// w_j = e^(s_j - m) for the exact number m = (the double word of the largest score): softmax does not depend on it.
// x = s_j - m is off by err(s_j) + 3.01 u^2 |x|, and e^(that) - 1 by a factor 1 + 2^-29 more where it is below 2^-30; a
// larger error is made infinite. Below x = -600 the weight is taken as 0, which leaves out less than 2^-865 of a sum
// that is about 1 or more: 2^-850 in the relative error of the sum.
constexpr double least_exponent = -600;
inline WeightSums weigh_row(ConstWords scores, const double* error, std::size_t n, std::size_t largest, Words weights,
                            double* x_high, double* relative_error) {
  const ExpConstants& constants = exp_constants();
  const DoubleWord<Lanes> m{all(-scores.h[largest]), all(-scores.l[largest])};
  Lanes worst = all(0x1p-850);
  for (std::size_t i = 0; i < (n + 7) / 8 * 8; i += lane_count) {
    DoubleWord<Lanes> x = add(load_word(scores, i), m);
    store(x_high + i, x.h);
    const Mask is_seen = hn::FirstN(Tag(), i < n ? n - i : 0);
    const Mask is_kept = hn::And(is_seen, hn::Ge(x.h, all(least_exponent)));
    x.h = hn::IfThenElse(is_kept, x.h, all(0.0));
    x.l = hn::IfThenElse(is_kept, x.l, all(0.0));
    const DoubleWord<Lanes> w = exponential(x, constants);
    store(weights.h + i, hn::IfThenElse(is_kept, w.h, all(0.0)));
    store(weights.l + i, hn::IfThenElse(is_kept, w.l, all(0.0)));
    const Lanes size = magnitude(x.h);
    const Lanes moved = fused(all(add_bound * unit_square), size, load(error + i));
    Lanes e = fused(moved, all(1 + 0x1p-28), exp_error(size)) * all(slack);
    e = hn::IfThenElse(hn::Le(moved, all(0x1p-30)), e, all(HUGE_VAL));
    store(relative_error + i, hn::IfThenElse(is_kept, e, all(HUGE_VAL)));
    worst = hn::Max(worst, hn::IfThenElse(is_kept, e, hn::IfThenElse(is_seen, all(0x1p-850), all(0.0))));
  }
  weights.h[largest] = 0;  // exactly 1, added by the caller
  for (std::size_t i = (n + 7) / 8 * 8; i < padded(n); i += lane_count) {
    store(weights.h + i, all(0.0));
    store(weights.l + i, all(0.0));
  }
  Parts rest, weighted;
  for (std::size_t i = 0; i < n; i += Parts::entries) {
    for (std::size_t c = 0; c < Parts::count; ++c) {
      const std::size_t at = i + c * lane_count;
      const DoubleWord<Lanes> w = load_word(weights, at);
      const DoubleWord<Lanes> x = negated(add(load_word(scores, at), m));
      rest.part[c] = add(rest.part[c], w);
      const Mask is_nothing = hn::Eq(w.h, all(0.0));
      DoubleWord<Lanes> product = multiply(w, x);
      product.h = hn::IfThenElse(is_nothing, all(0.0), product.h);
      product.l = hn::IfThenElse(is_nothing, all(0.0), product.l);
      weighted.part[c] = add(weighted.part[c], product);
    }
  }
  weights.h[largest] = 1;
  WeightSums result;
  result.rest = rest.joined();
  result.weighted = weighted.joined();
  result.error = hn::GetLane(hn::MaxOfLanes(Tag(), worst));
  return result;
}

// p = w * (1/S): the product 5 u^2, 1/S within sum_error (which holds its quotient).
inline void probability_row(ConstWords weights, const double* weight_error, std::size_t n, Word inverse_sum,
                            double sum_error, Words probs, double* error) {
  const DoubleWord<Lanes> inverse = all(inverse_sum);
  const Lanes common = all(sum_error + multiply_bound * unit_square);
  for (std::size_t i = 0; i < n; i += lane_count) {
    const DoubleWord<Lanes> p = multiply(load_word(weights, i), inverse);
    store_word(probs, i, p);
    store(error + i, magnitude(p.h) * (load(weight_error + i) + common) * all(slack));
  }
}

// o = N/S, N = sum w v within E, and the relative error of the weights times sum w |v| <= weight_sum * largest |v|.
inline void output_row(ConstWords sums, const double* anchors, const double* largest, std::size_t n,
                       const DotSize& size, double weight_sum, double weight_error, Word inverse_sum, double sum_error,
                       Words outputs, double* error) {
  const DoubleWord<Lanes> inverse = all(inverse_sum);
  const Lanes common = all(sum_error + multiply_bound * unit_square);
  for (std::size_t i = 0; i < n; i += lane_count) {
    const DoubleWord<Lanes> z = load_word(sums, i);
    const DoubleWord<Lanes> o = multiply(z, inverse);
    const Lanes reach = load(largest + i) * all(weight_sum);
    Lanes e = dot_error(reach, load(anchors + i), size);
    e = fused(all(1.01 * unit_square), magnitude(z.h), e);
    e = fused(reach, all(weight_error), e) * inverse.h * all(1 + sum_error);
    store_word(outputs, i, o);
    store(error + i, fused(magnitude(o.h), common, e) * all(slack));
  }
}

}  // namespace qkcts::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
