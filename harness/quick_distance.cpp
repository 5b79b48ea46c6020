// SPDX-License-Identifier: Apache-2.0
#include "harness/quick_distance.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "harness/pattern_values.hpp"

#ifdef __FAST_MATH__
#error "the judge must not be compiled with fast-math: NaN and rounding errors would lose their meaning"
#endif

namespace qkcts {
namespace {

constexpr std::uint64_t exponent_bits = 0x7FF0000000000000u, sign_bit = 0x8000000000000000u;
constexpr std::size_t group = 16;  // elements that are read together

// N numbers of other types, and twice as many.
template <std::size_t N>
struct NarrowLanes {
  using Floats __attribute__((vector_size(4 * N))) = float;
  using Words __attribute__((vector_size(4 * N))) = std::uint32_t;
  using TwoNumbers __attribute__((vector_size(16 * N))) = double;
  using TwoFloats __attribute__((vector_size(8 * N))) = float;
  using TwoWords __attribute__((vector_size(8 * N))) = std::uint32_t;
  using TwoInts __attribute__((vector_size(8 * N))) = std::int32_t;
  using TwoShorts __attribute__((vector_size(4 * N))) = std::int16_t;
};

template <std::size_t N>
struct Operands {
  typename LanesOf<N>::Numbers got, hi, lo;
  typename NarrowLanes<N>::Floats delta;
};

template <std::size_t N>
[[gnu::always_inline]] inline void halve(const typename NarrowLanes<N>::TwoNumbers& both,
                                         typename LanesOf<N>::Numbers& first, typename LanesOf<N>::Numbers& second) {
  std::memcpy(&first, &both, sizeof first);
  std::memcpy(&second, reinterpret_cast<const std::byte*>(&both) + sizeof first, sizeof second);
}

// 2N of them, since g++ widens all lanes of a register to those of two, and those of half a register in detours.
template <std::size_t N, class Got>
[[gnu::always_inline]] inline void read(const QuickElements& z, std::size_t at, Operands<N> (&lanes)[2]) {
  using Narrow = NarrowLanes<N>;
  using TwoNumbers = typename Narrow::TwoNumbers;
  if constexpr (sizeof(Got) == sizeof(double)) {
    std::memcpy(&lanes[0].got, z.got + at * sizeof(Got), sizeof lanes[0].got);
    std::memcpy(&lanes[1].got, z.got + (at + N) * sizeof(Got), sizeof lanes[1].got);
  } else {
    typename Narrow::TwoFloats got;
    std::memcpy(&got, z.got + at * sizeof(Got), sizeof got);
    halve<N>(__builtin_convertvector(got, TwoNumbers), lanes[0].got, lanes[1].got);
  }
  typename Narrow::TwoShorts lo;
  std::memcpy(&lo, z.lo + at, sizeof lo);
  const auto words = __builtin_convertvector(lo, typename Narrow::TwoInts);
  halve<N>(__builtin_convertvector(words, TwoNumbers), lanes[0].lo, lanes[1].lo);
  for (std::size_t half = 0; half < 2; ++half) {
    LanesOf<N>::read(z.hi + at + half * N, lanes[half].hi);
    std::memcpy(&lanes[half].delta, z.delta + at + half * N, sizeof lanes[half].delta);
  }
}

// The last elements, filled up to a group with some that are right.
template <class Got>
struct Rest {
  std::array<Got, group> got;
  std::array<double, group> hi;
  std::array<std::int16_t, group> lo{};
  std::array<float, group> delta;

  Rest(const QuickElements& z, std::size_t from) {
    got.fill(1);
    hi.fill(1);
    delta.fill(1);
    for (std::size_t i = 0; from + i < z.count; ++i) {
      std::memcpy(&got[i], z.got + (from + i) * sizeof(Got), sizeof(Got));
      hi[i] = z.hi[from + i];
      lo[i] = z.lo[from + i];
      delta[i] = z.delta[from + i];
    }
  }
  QuickElements elements(Format format) const {
    return {format, group, std::as_bytes(std::span(got)).data(), hi.data(), lo.data(), delta.data()};
  }
};

// Of the format of the stage: its smallest normal number, what the bits of 2^n are subtracted from to give those of
// 1/ulp(2^n), and whether 1/ulp(0) is a number.
struct UlpBits {
  std::uint64_t least, inverse;
  bool of_zero;
};

UlpBits ulp_bits(Format format) {
  const FormatParameters& f = parameters(format);
  return {static_cast<std::uint64_t>(f.emin + 1023) << 52, static_cast<std::uint64_t>(2046 + f.precision - 1) << 52,
          f.precision - 1 - f.emin < 1023};
}

template <std::size_t N>
struct Measured {
  typename LanesOf<N>::Numbers sum, off;
  typename LanesOf<N>::Bits power, ulps, signed_ulps, outward_ulps;
};

// Let d = got - hi and w = lo/256 * ulp64(hi), so that the exact distance is d - w.
// (1) Only an exact sum = fl(d) is settled here. Of the greater operand a and the lesser b, fl(sum - a) - b is the
//     rounding error (Dekker 1971, Fast2Sum); so sum - got = -hi and sum + hi = got both hold if and only if it is 0.
// (2) w = lo * 2^(e-60), e = floor(log2 |hi|), is exact: |lo| < 2^15, and |hi| >= 2^-800 keeps it normal. Of hi = 0 and
//     lo = 0 it is 0.
// (3) t = fl(sum - w) differs from d - w by at most 2^-53 |t|, and is 0 only where d - w is.
// (4) distance() sums the parts of the same expansion, whose largest one is t and whose others are its rounding error
//     and 0: fl(error of t + t) = t. Its scaling by 2^128 changes no quotient, since |t| <= 2^127 and Delta < 2^128
//     come nowhere near the ends of the range. So the figures are fl(|t| / Delta) and |t| / ulp(hi), the latter by an
//     exact power of two: t is a multiple of 2^(e-60), so that its quotient by ulp(hi) is no subnormal number.
template <std::size_t N>
[[gnu::always_inline]] inline void measure_lanes(UlpBits ulp, const Operands<N>& z, Measured<N>& m) {
  using Numbers = typename LanesOf<N>::Numbers;
  using Bits = typename LanesOf<N>::Bits;
  const Bits got_bits = reinterpret_cast<Bits>(z.got), hi_bits = reinterpret_cast<Bits>(z.hi);
  m.sum = z.got - z.hi;
  m.power = hi_bits & exponent_bits;
  const Numbers t = m.sum - z.lo * (reinterpret_cast<Numbers>(m.power) * 0x1p-60);
  m.off = reinterpret_cast<Numbers>(reinterpret_cast<Bits>(t) & ~sign_bit);
  const Bits least = Bits{} + ulp.least, divisor = m.power > least ? m.power : least;
  m.ulps = reinterpret_cast<Bits>(m.off * reinterpret_cast<Numbers>(ulp.inverse - divisor));
  // The difference of the patterns of numbers >= 0 has the sign of theirs.
  const Bits outward = (got_bits & ~sign_bit) - (hi_bits & ~sign_bit);
  m.signed_ulps = m.ulps | (reinterpret_cast<Bits>(m.sum) & sign_bit);
  m.outward_ulps = m.ulps | (outward & sign_bit);
}

// What tells of a whole block whether it is settled: patterns of numbers >= 0 rise as these do, those of infinity and
// NaN and of what is negative are above them all.
template <std::size_t N>
struct BlockLanes {
  typename LanesOf<N>::Bits inexact{}, least_power = ~typename LanesOf<N>::Bits{};
  typename NarrowLanes<N>::Words largest_ratio{};
  typename NarrowLanes<N>::TwoWords largest_delta{}, least_delta = ~typename NarrowLanes<N>::TwoWords{};
};

// (5) The quotient q in binary32 of |t|, rounded to it, by Delta >= 2^-100. Where |t| or q is subnormal, |t| < 2^-26
//     Delta; else q differs from |t| / Delta by two relative errors of at most 2^-24. So q <= 1 - 2^-20 implies
//     |t| < (1 - 2^-21) Delta, and by (3) |d - w| < Delta. A NaN, an infinity or a Delta that is none reach q or Delta.
// (6) A subnormal |t| is off by at most 2^-150, which is 2^-50 Delta: fl(|t| / Delta) < (1 + 2^-20) q + 2^-49.
template <std::size_t N>
[[gnu::always_inline]] inline void compare_within(const Operands<N>& z, const Measured<N>& m, BlockLanes<N>& block,
                                                  double* ulps, float* ratio) {
  using Bits = typename LanesOf<N>::Bits;
  using Floats = typename NarrowLanes<N>::Floats;
  using Words = typename NarrowLanes<N>::Words;
  const Floats quotient = __builtin_convertvector(m.off, Floats) / z.delta;
  const Words quotient_bits = reinterpret_cast<Words>(quotient);
  block.inexact |= reinterpret_cast<Bits>(z.got - m.sum) ^ reinterpret_cast<Bits>(z.hi);
  block.inexact |= reinterpret_cast<Bits>(m.sum + z.hi) ^ reinterpret_cast<Bits>(z.got);
  block.least_power = m.power < block.least_power ? m.power : block.least_power;
  block.largest_ratio = block.largest_ratio < quotient_bits ? quotient_bits : block.largest_ratio;
  std::memcpy(ulps, &m.ulps, sizeof m.ulps);
  std::memcpy(ratio, &quotient, sizeof quotient);
}

template <std::size_t N>
[[gnu::always_inline]] inline void compare_deltas(const float* deltas, BlockLanes<N>& block) {
  typename NarrowLanes<N>::TwoWords delta;
  std::memcpy(&delta, deltas, sizeof delta);
  block.largest_delta = block.largest_delta < delta ? delta : block.largest_delta;
  block.least_delta = delta < block.least_delta ? delta : block.least_delta;
}

template <std::size_t N>
[[gnu::always_inline]] inline bool all_within(const BlockLanes<N>& block, double& largest_ratio) {
  std::uint64_t inexact = 0, least_power = ~std::uint64_t{0};
  std::uint32_t ratio = 0, largest_delta = 0, least_delta = ~std::uint32_t{0};
  for (std::size_t i = 0; i < N; ++i) {
    inexact |= block.inexact[i];
    least_power = std::min<std::uint64_t>(least_power, block.least_power[i]);
    ratio = std::max<std::uint32_t>(ratio, block.largest_ratio[i]);
  }
  for (std::size_t i = 0; i < 2 * N; ++i) {
    largest_delta = std::max<std::uint32_t>(largest_delta, block.largest_delta[i]);
    least_delta = std::min<std::uint32_t>(least_delta, block.least_delta[i]);
  }
  largest_ratio = static_cast<double>(std::bit_cast<float>(ratio)) * (1 + 0x1p-20) + 0x1p-49;
  return inexact == 0 && least_power >= std::bit_cast<std::uint64_t>(0x1p-800) &&
         ratio <= std::bit_cast<std::uint32_t>(1 - 0x1p-20f) &&
         least_delta >= std::bit_cast<std::uint32_t>(0x1p-100f) &&
         largest_delta <= std::bit_cast<std::uint32_t>(0x1.fffffep127f);
}

template <std::size_t N>
struct LaneSums {
  static constexpr std::size_t parts = UlpSums::lanes / N;
  std::array<typename LanesOf<N>::Numbers, parts> ulps, signed_ulps, outward_ulps;
};

template <std::size_t N, class Got>
[[gnu::always_inline]] inline void measure_group(UlpBits ulp, const QuickElements& z, std::size_t from, std::size_t to,
                                                 BlockLanes<N>& block, LaneSums<N>& sums, WithinDelta& within) {
  using Numbers = typename LanesOf<N>::Numbers;
  for (std::size_t i = 0; i < group; i += 2 * N) {
    Operands<N> lanes[2];
    read<N, Got>(z, from + i, lanes);
    compare_deltas<N>(z.delta + from + i, block);
    for (std::size_t half = 0; half < 2; ++half) {
      const std::size_t part = (i / N + half) % LaneSums<N>::parts, at = to + i + half * N;
      Measured<N> m;
      measure_lanes<N>(ulp, lanes[half], m);
      compare_within<N>(lanes[half], m, block, within.ulps.data() + at, within.ratio.data() + at);
      sums.ulps[part] += reinterpret_cast<Numbers>(m.ulps);
      sums.signed_ulps[part] += reinterpret_cast<Numbers>(m.signed_ulps);
      sums.outward_ulps[part] += reinterpret_cast<Numbers>(m.outward_ulps);
    }
  }
}

template <std::size_t N, class Got>
[[gnu::always_inline]] inline bool within_all(UlpBits ulp, const QuickElements& z, WithinDelta& within, UlpSums& sums) {
  BlockLanes<N> block;
  LaneSums<N> lanes;
  std::memcpy(lanes.ulps.data(), sums.ulps.data(), sizeof sums.ulps);
  std::memcpy(lanes.signed_ulps.data(), sums.signed_ulps.data(), sizeof sums.signed_ulps);
  std::memcpy(lanes.outward_ulps.data(), sums.outward_ulps.data(), sizeof sums.outward_ulps);
  const QuickElements elements = z;  // not looked up again after every store
  std::size_t at = 0;
  for (; at + group <= elements.count; at += group) measure_group<N, Got>(ulp, elements, at, at, block, lanes, within);
  if (at < elements.count) {
    const Rest<Got> rest(z, at);  // what it is filled up with adds 0 to the sums
    measure_group<N, Got>(ulp, rest.elements(z.format), 0, at, block, lanes, within);
  }
  if (z.count < quick_elements)
    std::fill(within.ulps.begin() + static_cast<std::ptrdiff_t>(z.count), within.ulps.end(), no_ulps);
  if (!all_within<N>(block, within.largest_ratio)) return false;
  std::memcpy(sums.ulps.data(), lanes.ulps.data(), sizeof sums.ulps);
  std::memcpy(sums.signed_ulps.data(), lanes.signed_ulps.data(), sizeof sums.signed_ulps);
  std::memcpy(sums.outward_ulps.data(), lanes.outward_ulps.data(), sizeof sums.outward_ulps);
  return true;
}

// (7) Of Delta > 0 by fl(|t| / Delta): if it is <= 1 - 2^-49, then |t| / Delta < 1 - 2^-50, and by (3) |d - w| <=
// Delta;
//     if it is >= 1 + 2^-49, infinity too, then by the same |d - w| > Delta. Of Delta = 0 by (3): t = 0 or not.
template <std::size_t N>
[[gnu::always_inline]] inline void compare_each(UlpBits ulp, const Operands<N>& z, const Measured<N>& m,
                                                EachDistance& each, std::size_t at) {
  using Numbers = typename LanesOf<N>::Numbers;
  using Bits = typename LanesOf<N>::Bits;
  constexpr double largest_delta = 0x1.fffffep127;
  const Numbers delta = __builtin_convertvector(z.delta, Numbers), zero = {};
  const Numbers ratio = m.off == 0.0 ? zero : m.off / delta;
  const Bits exact = reinterpret_cast<Bits>(m.sum - z.got == -z.hi) & reinterpret_cast<Bits>(m.sum + z.hi == z.got);
  const Bits null = reinterpret_cast<Bits>(z.hi == 0.0) & reinterpret_cast<Bits>(z.lo == 0.0) &
                    (Bits{} - static_cast<std::uint64_t>(ulp.of_zero));
  const Bits of_size = reinterpret_cast<Bits>(reinterpret_cast<Numbers>(m.power) >= 0x1p-800) | null;
  const Bits near = reinterpret_cast<Bits>(m.off <= 0x1p127) & reinterpret_cast<Bits>(ratio >= 0.0);
  const Bits bounded = reinterpret_cast<Bits>(delta >= 0.0) & reinterpret_cast<Bits>(delta <= largest_delta);
  const Bits beyond = reinterpret_cast<Bits>(ratio >= 1 + 0x1p-49);
  const Bits plain = beyond | reinterpret_cast<Bits>(ratio <= 1 - 0x1p-49);
  const Bits settled = exact & of_size & near & bounded & plain;
  const Bits side = (beyond & settled & static_cast<std::uint64_t>(Side::beyond)) |
                    (~settled & static_cast<std::uint64_t>(Side::open));
  std::memcpy(each.side.data() + at, &side, sizeof side);
  std::memcpy(each.ratio.data() + at, &ratio, sizeof ratio);
  std::memcpy(each.ulps.data() + at, &m.ulps, sizeof m.ulps);
  std::memcpy(each.signed_ulps.data() + at, &m.signed_ulps, sizeof m.signed_ulps);
  std::memcpy(each.outward_ulps.data() + at, &m.outward_ulps, sizeof m.outward_ulps);
}

template <std::size_t N, class Got>
[[gnu::always_inline]] inline void each_of_group(UlpBits ulp, const QuickElements& z, std::size_t from, std::size_t to,
                                                 EachDistance& each) {
  for (std::size_t i = 0; i < group; i += 2 * N) {
    Operands<N> lanes[2];
    read<N, Got>(z, from + i, lanes);
    for (std::size_t half = 0; half < 2; ++half) {
      Measured<N> m;
      measure_lanes<N>(ulp, lanes[half], m);
      compare_each<N>(ulp, lanes[half], m, each, to + i + half * N);
    }
  }
}

template <std::size_t N, class Got>
[[gnu::always_inline]] inline void each_of_all(UlpBits ulp, const QuickElements& z, EachDistance& each) {
  std::size_t at = 0;
  for (; at + group <= z.count; at += group) each_of_group<N, Got>(ulp, z, at, at, each);
  if (at < z.count) {
    const Rest<Got> rest(z, at);
    each_of_group<N, Got>(ulp, rest.elements(z.format), 0, at, each);
  }
  std::fill(each.ulps.begin() + static_cast<std::ptrdiff_t>(z.count), each.ulps.end(), no_ulps);
}

#if QKCTS_WIDE_LANES
template <class Got>
QKCTS_WIDEST bool within_widest(UlpBits ulp, const QuickElements& z, WithinDelta& within, UlpSums& sums) {
  return within_all<8, Got>(ulp, z, within, sums);
}
template <class Got>
QKCTS_WIDE bool within_wide(UlpBits ulp, const QuickElements& z, WithinDelta& within, UlpSums& sums) {
  return within_all<4, Got>(ulp, z, within, sums);
}
template <class Got>
QKCTS_WIDEST void each_widest(UlpBits ulp, const QuickElements& z, EachDistance& each) {
  each_of_all<8, Got>(ulp, z, each);
}
template <class Got>
QKCTS_WIDE void each_wide(UlpBits ulp, const QuickElements& z, EachDistance& each) {
  each_of_all<4, Got>(ulp, z, each);
}
#endif

template <class Got>
bool within_in_lanes(UlpBits ulp, const QuickElements& z, WithinDelta& within, UlpSums& sums, std::size_t lanes) {
#if QKCTS_WIDE_LANES
  if (lanes == 8) return within_widest<Got>(ulp, z, within, sums);
  if (lanes == 4) return within_wide<Got>(ulp, z, within, sums);
#endif
  (void)lanes;
  return within_all<2, Got>(ulp, z, within, sums);
}

template <class Got>
void each_in_lanes(UlpBits ulp, const QuickElements& z, EachDistance& each, std::size_t lanes) {
#if QKCTS_WIDE_LANES
  if (lanes == 8) return each_widest<Got>(ulp, z, each);
  if (lanes == 4) return each_wide<Got>(ulp, z, each);
#endif
  (void)lanes;
  each_of_all<2, Got>(ulp, z, each);
}

// The same elements with `got` as numbers of binary64, where it is neither binary32 nor that.
struct Decoded {
  alignas(64) std::array<double, quick_elements> values;

  QuickElements elements(const QuickElements& z) {
    read_patterns(z.format, z.got, z.count, values.data());
    QuickElements decoded = z;
    decoded.got = std::as_bytes(std::span(values)).data();
    return decoded;
  }
};

}  // namespace

double sum_of(const std::array<double, UlpSums::lanes>& lanes) {
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

bool measure_within(const QuickElements& elements, WithinDelta& within, UlpSums& sums, std::size_t lanes) {
  const UlpBits ulp = ulp_bits(elements.format);
  if (elements.format == Format::binary32) return within_in_lanes<float>(ulp, elements, within, sums, lanes);
  if (elements.format == Format::binary64) return within_in_lanes<double>(ulp, elements, within, sums, lanes);
  Decoded decoded;
  return within_in_lanes<double>(ulp, decoded.elements(elements), within, sums, lanes);
}

void measure_each(const QuickElements& elements, EachDistance& each, std::size_t lanes) {
  const UlpBits ulp = ulp_bits(elements.format);
  if (elements.format == Format::binary32) return each_in_lanes<float>(ulp, elements, each, lanes);
  if (elements.format == Format::binary64) return each_in_lanes<double>(ulp, elements, each, lanes);
  Decoded decoded;
  each_in_lanes<double>(ulp, decoded.elements(elements), each, lanes);
}

}  // namespace qkcts
