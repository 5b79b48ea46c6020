// SPDX-License-Identifier: Apache-2.0
// The arithmetic of quick_distance.cpp, for so many elements as a machine has lanes. Everything is inlined into
// functions that are compiled for those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "conformance/format.hpp"
#include "conformance/lanes.hpp"
#include "harness/quick_distance.hpp"

namespace qkcts::distance_lanes {

constexpr std::uint64_t exponent_bits = 0x7FF0000000000000u, sign_bit = 0x8000000000000000u;

// N numbers of other types, and twice as many.
template <std::size_t N>
struct NarrowLanes {
  using Floats __attribute__((vector_size(4 * N))) = float;
  using TwoNumbers __attribute__((vector_size(16 * N))) = double;
  using TwoFloats __attribute__((vector_size(8 * N))) = float;
  using TwoWords __attribute__((vector_size(8 * N))) = std::uint32_t;
  using TwoInts __attribute__((vector_size(8 * N))) = std::int32_t;
  using TwoShorts __attribute__((vector_size(4 * N))) = std::int16_t;
};

template <std::size_t N>
struct Operands {
  typename LanesOf<N>::Numbers got, hi, lo;
};

template <std::size_t N>
[[gnu::always_inline]] inline void halve(const typename NarrowLanes<N>::TwoNumbers& both,
                                         typename LanesOf<N>::Numbers& first, typename LanesOf<N>::Numbers& second) {
  std::memcpy(&first, &both, sizeof first);
  std::memcpy(&second, reinterpret_cast<const std::byte*>(&both) + sizeof first, sizeof second);
}

template <std::size_t N>
[[gnu::always_inline]] inline void join(const typename LanesOf<N>::Numbers& first,
                                        const typename LanesOf<N>::Numbers& second,
                                        typename NarrowLanes<N>::TwoNumbers& both) {
  if constexpr (N == 8) {
    both = __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  } else if constexpr (N == 4) {
    both = __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7);
  } else {
    both = __builtin_shufflevector(first, second, 0, 1, 2, 3);
  }
}

// 2N of them, since g++ widens all lanes of a register to those of two, and those of half a register in detours.
template <std::size_t N, class Got>
[[gnu::always_inline]] inline void read(const QuickElements& z, std::size_t at, Operands<N>& first,
                                        Operands<N>& second) {
  using Narrow = NarrowLanes<N>;
  using TwoNumbers = typename Narrow::TwoNumbers;
  if constexpr (sizeof(Got) == sizeof(double)) {
    std::memcpy(&first.got, z.got + at * sizeof(Got), sizeof first.got);
    std::memcpy(&second.got, z.got + (at + N) * sizeof(Got), sizeof second.got);
  } else {
    typename Narrow::TwoFloats got;
    std::memcpy(&got, z.got + at * sizeof(Got), sizeof got);
    halve<N>(__builtin_convertvector(got, TwoNumbers), first.got, second.got);
  }
  typename Narrow::TwoShorts lo;
  std::memcpy(&lo, z.lo + at, sizeof lo);
  const auto words = __builtin_convertvector(lo, typename Narrow::TwoInts);
  halve<N>(__builtin_convertvector(words, TwoNumbers), first.lo, second.lo);
  LanesOf<N>::read(z.hi + at, first.hi);
  LanesOf<N>::read(z.hi + at + N, second.hi);
}

// Of the format of the stage: its smallest normal number, what the bits of 2^n are subtracted from to give those of
// 1/ulp(2^n), the number of ulps that (5) speaks of, and whether 1/ulp(0) is a number.
struct UlpBits {
  std::uint64_t least, inverse, near;
  bool of_zero;
};

inline UlpBits ulp_bits(Format format) {
  const FormatParameters& f = parameters(format);
  return {static_cast<std::uint64_t>(f.emin + 1023) << 52, static_cast<std::uint64_t>(2046 + f.precision - 1) << 52,
          static_cast<std::uint64_t>(1023 + f.precision - 3) << 52, f.precision - 1 - f.emin < 1023};
}

template <std::size_t N>
struct Measured {
  typename LanesOf<N>::Numbers sum, off;
  typename LanesOf<N>::Bits power, ulps, signed_ulps, outward_ulps;
};

// Let d = got - hi and w = lo/256 * ulp64(hi), so that the exact distance is d - w.
// (1) Only an exact sum = fl(d) is settled here; (5) says where it is. Elsewhere, of the greater operand a and the
// lesser b, fl(sum - a) - b is the
//     rounding error (Dekker 1971, Fast2Sum); so sum - got = -hi and sum + hi = got both hold if and only if it is 0.
// (2) w = lo * 2^(e-60), e = floor(log2 |hi|), is exact: |lo| < 2^15, and |hi| >= 2^-800 keeps it normal. Of hi = 0 and
//     lo = 0 it is 0.
// (3) t = fl(sum - w) differs from d - w by at most 2^-53 |t|, and is 0 only where d - w is.
// (4) distance() sums the parts of the same expansion, whose largest one is t and whose others are its rounding error
//     and 0: fl(error of t + t) = t. Its scaling by 2^128 changes no quotient, since |t| < 2^128 and Delta < 2^128
//     come nowhere near the ends of the range. So the figures are fl(|t| / Delta) and |t| / ulp(hi), the latter by an
//     exact power of two: t is a multiple of 2^(e-60), so that its quotient by ulp(hi) is no subnormal number.
// (5) Where hi is a normal number of the format and |t| / ulp(hi) < 2^(p-3), so that |t| < 2^(e-2), it is exact: with
// |w| <= 2^(e-45) and (3) |fl(d)| < 2^(e-1), a number, so that |d| < 2^(e-1) <= |hi| / 2. Then got has the
//     sign of hi and lies between hi / 2 and 2 hi, and d is exact (Sterbenz 1974); and the difference of the patterns
//     of two numbers of one sign is that of their magnitudes. Who says `near` still has to see to both conditions;
//     until then the figures mean nothing.
template <std::size_t N, bool near = false>
[[gnu::always_inline]] inline void measure_lanes(UlpBits ulp, const Operands<N>& z, Measured<N>& m) {
  using Numbers = typename LanesOf<N>::Numbers;
  using Bits = typename LanesOf<N>::Bits;
  const Bits got_bits = reinterpret_cast<Bits>(z.got), hi_bits = reinterpret_cast<Bits>(z.hi);
  m.sum = z.got - z.hi;
  m.power = hi_bits & exponent_bits;
  const Numbers t = m.sum - z.lo * (reinterpret_cast<Numbers>(m.power) * 0x1p-60);
  m.off = reinterpret_cast<Numbers>(reinterpret_cast<Bits>(t) & ~sign_bit);
  const Bits least = Bits{} + ulp.least;
  Bits divisor = m.power, outward = got_bits - hi_bits;
  if constexpr (!near) {
    divisor = m.power > least ? m.power : least;
    // The difference of the patterns of numbers >= 0 has the sign of theirs.
    outward = (got_bits & ~sign_bit) - (hi_bits & ~sign_bit);
  }
  m.ulps = reinterpret_cast<Bits>(m.off * reinterpret_cast<Numbers>(ulp.inverse - divisor));
  m.signed_ulps = m.ulps | (reinterpret_cast<Bits>(m.sum) & sign_bit);
  m.outward_ulps = m.ulps | (outward & sign_bit);
}

}  // namespace qkcts::distance_lanes
