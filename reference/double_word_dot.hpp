// SPDX-License-Identifier: Apache-2.0
// Dot products, many at a time, as anchored sums: the leading parts of the products are added without any error on a
// grid that is fixed beforehand, what they leave behind is small and is added in binary64.
//
// z_c = sum_i x_i y_i[c] for columns c side by side, x_i = xh + xl, y_i = yh + yl with |xl| <= u |xh|, |yl| <= u |yh|,
// u = 2^-53. A >= |sum over i < m of xh yh| for every m and A >= sum |xh yh| (for instance A = ||xh|| ||yh||).
// P = the power of two with A (1 + 2^-19) <= P < 2 A (1 + 2^-19) (1 + 2^-50), g = 2^-51 P, anchor = 3 P = 1.5 * 2^52 g.
//
// (1) acc starts at the anchor, t = RN(acc + x y), d = t - acc. All t lie in [2^52 g, 2^53 g] as long as n < 2^30: they
//     differ from anchor + partial sum by at most n g/2 <= 2^-22 P. There one ulp is g, so t is a multiple of g, d is
//     exact, the sum of the d is acc - anchor exactly, and |x y - d| <= g/2.
// (2) e = RN(xh yh - d), then RN(e + xh yl), RN(e + xl yh): |e| <= g/2 + 2u |xh yh|; roundings u g/2, and for each low
//     word u (g/2 + 2u |xh yh|); xl yl, left out, is u^2 |xh yh|.
// (3) low += e in blocks of b = 32 terms that start at 0: |low| <= b g/2 + 2u * (sum |xh yh| of the block); the b
//     roundings are u (b (b + 1)/4 g + 2u b * sum).
// (4) After a block (s2, r) = two_sum(s2, low) exactly, s3 = RN(s3 + r): |s2| <= n g/2 + 2u A =: Q, |r| <= u Q; with B
//     blocks the roundings of s3 are at most B^2 u^2 Q.
// (5) (a, a') = two_sum(acc - anchor, s2), a'' = RN(a' + s3), result two_sum(a, a''): u (u |a| + 2 B u Q) (1 + u), with
//     |a| <= |z| + 2 B u Q.
// Sum, with w low words (0, 1 or 2):
//     E = u g [n (b + 1)/4 + (1 + w) n/2] + u^2 A [2b + 2w + 1] + B^2 u^2 Q + 1.01 u^2 (|z| + 4 B Q),
// all times 1 + 2^-20 for what is left out. A number below 2^-1022 inside costs 2^-1074 at most; with g >= 2^-900 that
// is part of the 2^-20.
#if defined(QKCTS_DOUBLE_WORD_DOT) == defined(HWY_TARGET_TOGGLE)
#ifdef QKCTS_DOUBLE_WORD_DOT
#undef QKCTS_DOUBLE_WORD_DOT
#else
#define QKCTS_DOUBLE_WORD_DOT
#endif

#include "reference/double_word.hpp"
#include "reference/double_word_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace qkcts::HWY_NAMESPACE {

constexpr std::size_t dot_block = 32;

// 3 P of A; 0 for 0.
HWY_INLINE Lanes anchor_of(Lanes a) {
  const BitsTag bits;
  const Bits above = hn::BitCast(bits, a * all(1 + 0x1p-18)) + hn::Set(bits, 0x000fffffffffffff);
  return hn::BitCast(Tag(), hn::And(above, hn::Set(bits, 0x7ff0000000000000))) * all(3.0);
}

// E above but for 1.01 u^2 |z|, from A and the anchor.
HWY_INLINE Lanes dot_error(Lanes a, Lanes anchor, const DotSize& size) {
  return fused(anchor, all(size.grid_error), a * all(size.sum_error));
}

constexpr std::size_t dot_unroll = 4;

template <bool x_is_double, bool y_is_double>
HWY_INLINE void dot_strip(const DotOperands& o, std::size_t column, const double* anchors, Words result) {
  Lanes anchor[dot_unroll], acc[dot_unroll], low[dot_unroll], s2[dot_unroll], s3[dot_unroll];
  for (std::size_t c = 0; c < dot_unroll; ++c) {
    anchor[c] = acc[c] = load(anchors + column + c * lane_count);
    s2[c] = s3[c] = all(0.0);
  }
  for (std::size_t start = 0; start < o.terms; start += dot_block) {
    const std::size_t end = start + dot_block < o.terms ? start + dot_block : o.terms;
    for (std::size_t c = 0; c < dot_unroll; ++c) low[c] = all(0.0);
    for (std::size_t i = start; i < end; ++i) {
      const std::size_t row = o.rows == nullptr ? i : o.rows[i];
      const double* yh = o.y_high + row * o.stride + column;
      const Lanes xh = all(o.x_high[i]);
      for (std::size_t c = 0; c < dot_unroll; ++c) {
        const Lanes y = load(yh + c * lane_count);
        const Lanes t = fused(xh, y, acc[c]);
        Lanes e = fused_minus(xh, y, t - acc[c]);
        if constexpr (y_is_double) e = fused(xh, load(o.y_low + row * o.stride + column + c * lane_count), e);
        if constexpr (x_is_double) e = fused(all(o.x_low[i]), y, e);
        low[c] = low[c] + e;
        acc[c] = t;
      }
    }
    for (std::size_t c = 0; c < dot_unroll; ++c) {
      const DoubleWord<Lanes> sum = two_sum(s2[c], low[c]);
      s2[c] = sum.h;
      s3[c] = s3[c] + sum.l;
    }
  }
  for (std::size_t c = 0; c < dot_unroll; ++c) {
    const DoubleWord<Lanes> a = two_sum(acc[c] - anchor[c], s2[c]);
    const DoubleWord<Lanes> z = two_sum(a.h, a.l + s3[c]);
    store(result.h + column + c * lane_count, z.h);
    store(result.l + column + c * lane_count, z.l);
  }
}

}  // namespace qkcts::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
