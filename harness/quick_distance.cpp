// SPDX-License-Identifier: Apache-2.0
#include "harness/quick_distance.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "conformance/lanes.hpp"
#include "harness/pattern_values.hpp"

#ifdef __FAST_MATH__
#error "the judge must not be compiled with fast-math: NaN and rounding errors would lose their meaning"
#endif

namespace qkcts {
namespace {

constexpr std::uint64_t exponent_bits = 0x7FF0000000000000u, sign_bit = 0x8000000000000000u;
constexpr auto bits_of = [](double x) { return std::bit_cast<std::uint64_t>(x); };

struct Operands {
  const std::byte* got;  // binary32 or binary64, wherever it stands
  const double* hi;
  const std::int16_t* lo;
  const float* delta;
};

// The same as numbers of binary64, a block of them, filled up with what is settled.
struct WideOperands {
  alignas(64) std::array<double, quick_elements> got, hi, lo, delta;
};

template <class Got>
[[gnu::always_inline]] inline void widen(const std::byte* __restrict got, const double* __restrict hi,
                                         const std::int16_t* __restrict lo, const float* __restrict delta,
                                         WideOperands& wide) {
  for (std::size_t i = 0; i < quick_elements; ++i) {
    Got value;
    std::memcpy(&value, got + i * sizeof value, sizeof value);
    wide.got[i] = static_cast<double>(value);
  }
  std::memcpy(wide.hi.data(), hi, sizeof wide.hi);
  alignas(64) std::array<std::int32_t, quick_elements> words;  // in two steps, for which there are instructions
  for (std::size_t i = 0; i < quick_elements; ++i) words[i] = lo[i];
  for (std::size_t i = 0; i < quick_elements; ++i) wide.lo[i] = static_cast<double>(words[i]);
  for (std::size_t i = 0; i < quick_elements; ++i) wide.delta[i] = static_cast<double>(delta[i]);
}

template <class Got>
[[gnu::always_inline]] inline void widen_some(const Operands& z, std::size_t count, WideOperands& wide) {
  wide.got.fill(1);
  wide.hi.fill(1);
  wide.lo.fill(0);
  wide.delta.fill(1);
  for (std::size_t i = 0; i < count; ++i) {
    Got value;
    std::memcpy(&value, z.got + i * sizeof value, sizeof value);
    wide.got[i] = static_cast<double>(value);
    wide.hi[i] = z.hi[i];
    wide.lo[i] = static_cast<double>(z.lo[i]);
    wide.delta[i] = static_cast<double>(z.delta[i]);
  }
}

// Of the format of the stage: its smallest normal number, and what the bits of 2^n are subtracted from to give those of
// 1/ulp(2^n).
struct UlpBits {
  std::uint64_t least, inverse;
};

UlpBits ulp_bits(Format format) {
  const FormatParameters& f = parameters(format);
  return {static_cast<std::uint64_t>(f.emin + 1023) << 52, static_cast<std::uint64_t>(2046 + f.precision - 1) << 52};
}

// Of a block: any pattern that is odd, and the largest ratios.
template <std::size_t N>
struct BlockLanes {
  typename LanesOf<N>::Bits odd{}, ratio{};
};

// x0 y0 x1 y1 ...
template <std::size_t N, class Bits>
[[gnu::always_inline]] inline void make_pairs(const Bits& x, const Bits& y, Bits& first, Bits& second) {
  if constexpr (N == 8) {
    first = __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
    second = __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
  } else if constexpr (N == 4) {
    first = __builtin_shufflevector(x, y, 0, 4, 1, 5);
    second = __builtin_shufflevector(x, y, 2, 6, 3, 7);
  } else {
    first = __builtin_shufflevector(x, y, 0, 2);
    second = __builtin_shufflevector(x, y, 1, 3);
  }
}

// Let d = got - hi and w = lo/256 * ulp64(hi), so that the exact distance is d - w.
// (1) Only an exact sum = fl(d) is settled here. Of the greater operand a and the lesser b, fl(sum - a) - b is the
//     rounding error (Dekker 1971, Fast2Sum); so sum - got = -hi and sum + hi = got both hold if and only if it is 0.
// (2) w = lo * 2^(e-60), e = floor(log2 |hi|), is exact: |lo| < 2^15, and |hi| >= 2^-800 keeps it normal.
// (3) t = fl(sum - w) differs from d - w by at most 2^-53 |t|. If fl(|t| / delta) <= 1 - 2^-49, then the quotient is
//     below 1 - 2^-50, and |d - w| <= delta.
// (4) distance() sums the parts of the same expansion, whose largest one is t and whose others are its rounding error
//     and 0: fl(error of t + t) = t. Its scaling by 2^128 changes no quotient, since nothing here comes near the ends
//     of the range. So the figures are |t| / delta and |t| / ulp(hi), the latter by an exact power of two.
// Conditions are differences of bit patterns, of which none may be negative: patterns of numbers >= 0 rise as these do,
// those of infinity and NaN are above them all, and an infinite or NaN got, hi or lesser bound reaches the quotient.
template <std::size_t N>
[[gnu::always_inline]] inline void measure_lanes(UlpBits ulp, std::size_t at, const WideOperands& z,
                                                 BlockLanes<N>& block, QuickDistances& distances) {
  using Numbers = typename LanesOf<N>::Numbers;
  using Bits = typename LanesOf<N>::Bits;
  constexpr std::uint64_t least = bits_of(0x1p-800), most = bits_of(0x1p1000);
  constexpr std::uint64_t nearly_one = bits_of(1 - 0x1p-49), largest_delta = bits_of(0x1.fffffep127);
  Numbers g, h, low, bound;
  LanesOf<N>::read(z.got.data() + at, g);
  LanesOf<N>::read(z.hi.data() + at, h);
  LanesOf<N>::read(z.lo.data() + at, low);
  LanesOf<N>::read(z.delta.data() + at, bound);
  const Bits g_bits = reinterpret_cast<Bits>(g), h_bits = reinterpret_cast<Bits>(h);
  const Numbers sum = g - h;
  const Bits inexact =
      (reinterpret_cast<Bits>(sum - g) ^ h_bits ^ sign_bit) | (reinterpret_cast<Bits>(sum + h) ^ g_bits);
  const Bits power = h_bits & exponent_bits;
  const Numbers t = sum - low * (reinterpret_cast<Numbers>(power) * 0x1p-60);
  const Numbers off = reinterpret_cast<Numbers>(reinterpret_cast<Bits>(t) & ~sign_bit);
  const Numbers ratio = off / bound;
  const Bits ratio_bits = reinterpret_cast<Bits>(ratio);
  const Bits divisor = power < ulp.least ? Bits{} + ulp.least : power;
  const Bits ulps = reinterpret_cast<Bits>(off * reinterpret_cast<Numbers>(ulp.inverse - divisor));
  const Numbers outward = reinterpret_cast<Numbers>(g_bits & ~sign_bit) - reinterpret_cast<Numbers>(h_bits & ~sign_bit);
  const Bits beyond = (nearly_one - ratio_bits) | ratio_bits | (largest_delta - reinterpret_cast<Bits>(bound)) |
                      (power - least) | (most - power);
  const Bits odd = inexact | (beyond & sign_bit);
  block.odd |= odd;
  block.ratio = block.ratio < ratio_bits ? ratio_bits : block.ratio;
  const Bits signed_ulps = ulps | (reinterpret_cast<Bits>(sum) & sign_bit);
  const Bits outward_ulps = ulps | (reinterpret_cast<Bits>(outward) & sign_bit);
  std::memcpy(distances.odd.data() + at, &odd, sizeof odd);
  std::memcpy(distances.ulps.data() + at, &ulps, sizeof ulps);
  std::memcpy(distances.ratio.data() + at, &ratio, sizeof ratio);
  Bits first, second;
  make_pairs<N>(signed_ulps, outward_ulps, first, second);
  std::memcpy(distances.signed_and_outward.data() + 2 * at, &first, sizeof first);
  std::memcpy(distances.signed_and_outward.data() + 2 * at + N, &second, sizeof second);
}

// In the order of the elements, one after the other: the figures of a report do not depend on the machine.
[[gnu::always_inline]] inline void add_up(const QuickDistances& distances, std::size_t from, std::size_t to,
                                          double& ulps, LanesOf<2>::Numbers& pair) {
  for (std::size_t i = from; i < to; ++i) {
    LanesOf<2>::Numbers next;
    LanesOf<2>::read(distances.signed_and_outward.data() + 2 * i, next);
    ulps += distances.ulps[i];
    pair += next;
  }
}

template <std::size_t N, class Got>
[[gnu::always_inline]] inline void measure_all(UlpBits ulp, std::size_t count, const Operands& z,
                                               QuickDistances& distances, UlpSums& sums) {
  WideOperands wide;
  if (count == quick_elements) {
    widen<Got>(z.got, z.hi, z.lo, z.delta, wide);
  } else {
    widen_some<Got>(z, count, wide);
  }
  BlockLanes<N> block;
  double ulps = sums.ulps;
  LanesOf<2>::Numbers pair = {sums.signed_ulps, sums.outward_ulps};
  std::size_t at = 0;
  for (; at + N <= count; at += N) {
    measure_lanes<N>(ulp, at, wide, block, distances);
    add_up(distances, at, at + N, ulps, pair);
  }
  if (at < count) {
    measure_lanes<N>(ulp, at, wide, block, distances);
    add_up(distances, at, count, ulps, pair);
  }
  std::uint64_t odd = 0, largest = 0;
  for (std::size_t i = 0; i < N; ++i) {
    odd |= block.odd[i];
    largest = largest < block.ratio[i] ? block.ratio[i] : largest;
  }
  distances.all_settled = odd == 0;
  distances.largest_ratio = std::bit_cast<double>(largest);
  if (odd == 0) sums = {ulps, pair[0], pair[1]};
}

#if QKCTS_WIDE_LANES
template <class Got>
QKCTS_WIDEST void measure_widest(UlpBits ulp, std::size_t count, const Operands& z, QuickDistances& distances,
                                 UlpSums& sums) {
  measure_all<8, Got>(ulp, count, z, distances, sums);
}
template <class Got>
QKCTS_WIDE void measure_wide(UlpBits ulp, std::size_t count, const Operands& z, QuickDistances& distances,
                             UlpSums& sums) {
  measure_all<4, Got>(ulp, count, z, distances, sums);
}
#endif

template <class Got>
void measure(Format format, std::size_t count, const Operands& z, QuickDistances& distances, UlpSums& sums) {
  const UlpBits ulp = ulp_bits(format);
#if QKCTS_WIDE_LANES
  if (lane_count() == 8) return measure_widest<Got>(ulp, count, z, distances, sums);
  if (lane_count() == 4) return measure_wide<Got>(ulp, count, z, distances, sums);
#endif
  measure_all<2, Got>(ulp, count, z, distances, sums);
}

}  // namespace

void measure_quickly(Format format, std::size_t count, const std::byte* got, const double* hi, const std::int16_t* lo,
                     const float* delta, QuickDistances& distances, UlpSums& sums) {
  const Operands z = {got, hi, lo, delta};
  if (format == Format::binary32) return measure<float>(format, count, z, distances, sums);
  if (format == Format::binary64) return measure<double>(format, count, z, distances, sums);
  std::array<double, quick_elements> values;
  read_patterns(format, got, count, values.data());
  measure<double>(format, count, {std::as_bytes(std::span(values)).data(), hi, lo, delta}, distances, sums);
}

}  // namespace qkcts
