// SPDX-License-Identifier: Apache-2.0
// Loops over the entries of one vector of q or k, each with the error that has come together so far.
//
// u = 2^-53; every error is multiplied by 1 + 2^-30 for the roundings of the error itself. "x + e" below is the exact
// number that the double word x stands for, |e| <= error.
#if defined(QKCTS_DOUBLE_WORD_OPERAND) == defined(HWY_TARGET_TOGGLE)
#ifdef QKCTS_DOUBLE_WORD_OPERAND
#undef QKCTS_DOUBLE_WORD_OPERAND
#else
#define QKCTS_DOUBLE_WORD_OPERAND
#endif

#include "reference/double_word.hpp"
#include "reference/double_word_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace qkcts::HWY_NAMESPACE {

constexpr double slack = 1 + 0x1p-30;

HWY_INLINE DoubleWord<Lanes> load_word(ConstWords x, std::size_t i) {
  return {load(x.h + i), load(x.l + i)};
}
HWY_INLINE void store_word(Words x, std::size_t i, DoubleWord<Lanes> value) {
  store(x.h + i, value.h);
  store(x.l + i, value.l);
}
HWY_INLINE DoubleWord<Lanes> all(Word x) {
  return {all(x.h), all(x.l)};
}

// The sums of 32 interleaved parts, so that the order does not depend on the number of lanes and none waits for
// another. Each part has at most ceil(n/32) additions, and five more join it with the others: a term goes through n + 8
// at most.
struct Parts {
  static constexpr std::size_t entries = 32, count = entries / lane_count;
  DoubleWord<Lanes> part[count];
  HWY_INLINE Parts() {
    for (std::size_t c = 0; c < count; ++c) part[c] = {all(0.0), all(0.0)};
  }
  // i and i + half, while there are two.
  HWY_INLINE Word joined() const {
    HWY_ALIGN double h[entries], l[entries];
    for (std::size_t c = 0; c < count; ++c) {
      store(h + c * lane_count, part[c].h);
      store(l + c * lane_count, part[c].l);
    }
    std::size_t half = entries / 2;
    for (; half >= lane_count && half > 1; half /= 2) {
      for (std::size_t i = 0; i < half; i += lane_count) {
        const DoubleWord<Lanes> other{load(h + half + i), load(l + half + i)};
        const DoubleWord<Lanes> sum = add(DoubleWord<Lanes>{load(h + i), load(l + i)}, other);
        store(h + i, sum.h);
        store(l + i, sum.l);
      }
    }
    for (; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) {
        const auto sum = add(DoubleWord<double>{h[i], l[i]}, DoubleWord<double>{h[i + half], l[i + half]});
        h[i] = sum.h;
        l[i] = sum.l;
      }
    }
    return {h[0], l[0]};
  }
};

// Every addition errs by 2 u^2 (joining: 3.01 u^2) of a partial sum, and those that a term goes through number n + 8 at
// most: 3.01 (n + 8) u^2 sum |x|.
inline Word sum_of(const double* x, std::size_t n) {
  Parts parts;
  for (std::size_t i = 0; i < n; i += Parts::entries)
    for (std::size_t c = 0; c < Parts::count; ++c) parts.part[c] = add(parts.part[c], load(x + i + c * lane_count));
  return parts.joined();
}

// Squares within 5 u^2, all additions of numbers >= 0: relative 5 u^2 + 3.01 (n + 8) u^2.
inline Word sum_of_squares_of(ConstWords x, std::size_t n) {
  Parts parts;
  for (std::size_t i = 0; i < n; i += Parts::entries) {
    for (std::size_t c = 0; c < Parts::count; ++c) {
      const DoubleWord<Lanes> entry = load_word(x, i + c * lane_count);
      parts.part[c] = add(parts.part[c], multiply(entry, entry));
    }
  }
  return parts.joined();
}

// A binary64 sum of squares is relatively right to (n + 1) u, which the factor covers for n < 2^20.
inline double norm_bound_of(const double* x, std::size_t n) {
  Lanes sum[8 / lane_count];
  for (std::size_t c = 0; c < 8 / lane_count; ++c) sum[c] = all(0.0);
  for (std::size_t i = 0; i < n; i += 8) {
    for (std::size_t c = 0; c < 8 / lane_count; ++c) {
      const Lanes entry = load(x + i + c * lane_count);
      sum[c] = fused(entry, entry, sum[c]);
    }
  }
  double part[8];
  for (std::size_t c = 0; c < 8 / lane_count; ++c) store(part + c * lane_count, sum[c]);
  double total = 0;
  for (const double p : part) total += p;
  return std::sqrt(total) * (1 + 0x1p-30);
}

// x - mean: 3.01 u^2 of the result, and both errors.
inline void subtract_word(Words x, double* error, std::size_t n, Word mean, double mean_error) {
  const DoubleWord<Lanes> m = negated(all(mean));
  for (std::size_t i = 0; i < n; i += lane_count) {
    const DoubleWord<Lanes> z = add(load_word(x, i), m);
    store_word(x, i, z);
    const Lanes e = fused(all(add_bound * unit_square), magnitude(z.h), load(error + i) + all(mean_error));
    store(error + i, e * all(slack));
  }
}

// x f: exact where both low words are 0, and then the error is what it was times |f|; else 5 u^2 |x f| more.
inline void multiply_words(Words x, double* error, std::size_t n, ConstWords factors) {
  for (std::size_t i = 0; i < n; i += lane_count) {
    const DoubleWord<Lanes> entry = load_word(x, i);
    const DoubleWord<Lanes> factor = load_word(factors, i);
    const DoubleWord<Lanes> z = multiply(entry, factor);
    store_word(x, i, z);
    const Mask is_exact = hn::Eq(magnitude(entry.l) + magnitude(factor.l), all(0.0));
    const Lanes own = hn::IfThenElse(is_exact, all(0.0), all(multiply_bound * unit_square) * magnitude(z.h));
    store(error + i, fused(load(error + i), magnitude(factor.h), own) * all(slack));
  }
}

// x + y with exact y: 2 u^2 of the result.
inline void add_numbers(Words x, double* error, std::size_t n, const double* y) {
  for (std::size_t i = 0; i < n; i += lane_count) {
    const DoubleWord<Lanes> z = add(load_word(x, i), load(y + i));
    store_word(x, i, z);
    store(error + i, fused(all(add_number_bound * unit_square), magnitude(z.h), load(error + i)) * all(slack));
  }
}

// a C - b S: two products (2 u^2 each of them), one sum (3.01 u^2 of the result <= |a C| + |b S|): 5.02 u^2 (|a C| +
// |b S|), and |C| err(a) + |S| err(b).
HWY_INLINE DoubleWord<Lanes> turned(DoubleWord<Lanes> a, Lanes c, DoubleWord<Lanes> b, Lanes s, Lanes a_error,
                                    Lanes b_error, Lanes& error) {
  const DoubleWord<Lanes> p = multiply(a, c);
  const DoubleWord<Lanes> q = multiply(b, s);
  const Lanes carried = fused(magnitude(c), a_error, magnitude(s) * b_error);
  error = fused(all(5.02 * unit_square), magnitude(p.h) + magnitude(q.h), carried) * all(slack);
  return add(p, q);
}

inline void rotate_words(Words a, double* a_error, Words b, double* b_error, const double* cos, const double* sin,
                         std::size_t n) {
  for (std::size_t i = 0; i < n; i += lane_count) {
    const Lanes c = load(cos + i);
    const Lanes s = load(sin + i);
    const DoubleWord<Lanes> x = load_word(a, i);
    const DoubleWord<Lanes> y = load_word(b, i);
    const Lanes x_error = load(a_error + i);
    const Lanes y_error = load(b_error + i);
    Lanes error;
    store_word(a, i, turned(x, c, y, negated(s), x_error, y_error, error));
    store(a_error + i, error);
    store_word(b, i, turned(y, c, x, s, y_error, x_error, error));
    store(b_error + i, error);
  }
}

// factor x, the factor within relative_error: |z| (relative_error + 5 u^2) + |factor| err(x), and their product.
inline void scale_words(ConstWords x, const double* x_error, std::size_t n, Word factor, double relative_error,
                        Words result, double* error) {
  const DoubleWord<Lanes> f = all(factor);
  const Lanes relative = all((relative_error + multiply_bound * unit_square) * slack);
  const Lanes carried = all(std::fabs(factor.h) * (1 + relative_error) * slack);
  for (std::size_t i = 0; i < n; i += lane_count) {
    const DoubleWord<Lanes> z = multiply(load_word(x, i), f);
    store_word(result, i, z);
    store(error + i, fused(magnitude(z.h), relative, carried * load(x_error + i)) * all(slack));
  }
}

}  // namespace qkcts::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
