// SPDX-License-Identifier: Apache-2.0
#include "harness/quick_distance.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "harness/distance_lanes.hpp"
#include "harness/pattern_values.hpp"

#ifdef __FAST_MATH__
#error "the judge must not be compiled with fast-math: NaN and rounding errors would lose their meaning"
#endif

namespace qkcts {
namespace {

using namespace distance_lanes;

// The patterns of Delta with which a quotient tells what (6) says.
constexpr auto least_delta = std::bit_cast<std::uint32_t>(0x1p-100f);
constexpr auto largest_delta = std::bit_cast<std::uint32_t>(0x1.fffffep127f);

// Elements that are measured together: two registers of them, and each lane of the sums.
template <std::size_t N>
constexpr std::size_t group = std::max(2 * N, UlpSums::lanes);
constexpr std::size_t largest_group = group<8>;

// A run filled up to whole groups with elements that add 0 to the sums.
template <class Got>
struct FilledUp {
  std::array<Got, quick_run> got;
  std::array<double, quick_run> hi;
  std::array<std::int16_t, quick_run> lo;
  std::array<float, quick_run> delta;

  QuickElements elements(const QuickElements& z) {
    const std::size_t count = (z.count + largest_group - 1) / largest_group * largest_group;
    std::memcpy(got.data(), z.got, z.count * sizeof(Got));
    std::copy_n(z.hi, z.count, hi.begin());
    std::copy_n(z.lo, z.count, lo.begin());
    std::copy_n(z.delta, z.count, delta.begin());
    for (std::size_t i = z.count; i < count; ++i) {
      got[i] = 1;
      hi[i] = 1;
      lo[i] = 0;
      delta[i] = 1;
    }
    return {z.format, count, std::as_bytes(std::span(got)).data(), hi.data(), lo.data(), delta.data()};
  }
};

// What tells of a whole block whether it is settled: patterns of numbers >= 0 rise as these do, those of infinity and
// NaN and of what is negative are above them all. Of powers and ulps the upper words tell enough.
template <std::size_t N>
struct BlockLanes {
  using Words = typename NarrowLanes<N>::TwoWords;
  typename LanesOf<N>::Bits inexact{};
  Words least_power = ~Words{}, largest_ulps{}, largest_ratio{},
        largest_excess{};  // of Delta over the least that is right
};

template <class Words>
[[gnu::always_inline]] inline void raise(Words& largest, const Words& x) {
  largest = largest < x ? x : largest;
}
template <class Words>
[[gnu::always_inline]] inline void lower(Words& least, const Words& x) {
  least = x < least ? x : least;
}

template <std::size_t N, bool near>
[[gnu::always_inline]] inline void check_exact(const Operands<N>& z, const Measured<N>& m, BlockLanes<N>& block) {
  using Bits = typename LanesOf<N>::Bits;
  using Words = typename BlockLanes<N>::Words;
  lower(block.least_power, reinterpret_cast<Words>(m.power));
  if constexpr (near) {
    raise(block.largest_ulps, reinterpret_cast<Words>(m.ulps));
  } else {
    block.inexact |= reinterpret_cast<Bits>(z.got - m.sum) ^ reinterpret_cast<Bits>(z.hi);
    block.inexact |= reinterpret_cast<Bits>(m.sum + z.hi) ^ reinterpret_cast<Bits>(z.got);
  }
}

// (6) The quotient q in binary32 of |t|, rounded to it, by Delta >= 2^-100. Where |t| or q is subnormal, |t| < 2^-26
//     Delta; else q differs from |t| / Delta by two relative errors of at most 2^-24. So q <= 1 - 2^-20 implies
//     |t| < (1 - 2^-21) Delta, and by (3) |d - w| < Delta. A NaN, an infinity or a Delta that is none reach q or Delta.
// (7) A subnormal |t| is off by at most 2^-150, which is 2^-50 Delta: fl(|t| / Delta) < (1 + 2^-20) q + 2^-49.
template <std::size_t N>
[[gnu::always_inline]] inline void compare_within(const float* deltas, const Measured<N>& first,
                                                  const Measured<N>& second, BlockLanes<N>& block, float* ratio) {
  using Floats = typename NarrowLanes<N>::TwoFloats;
  using Words = typename BlockLanes<N>::Words;
  typename NarrowLanes<N>::TwoNumbers off;
  join<N>(first.off, second.off, off);
  Floats delta;
  std::memcpy(&delta, deltas, sizeof delta);
  const Floats quotient = __builtin_convertvector(off, Floats) / delta;
  raise(block.largest_ratio, reinterpret_cast<Words>(quotient));
  raise(block.largest_excess, reinterpret_cast<Words>(delta) - least_delta);
  std::memcpy(ratio, &quotient, sizeof quotient);
}

template <class Words>
[[gnu::always_inline]] inline std::uint32_t largest_of(const Words& words) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < sizeof words / 4; ++i) largest = std::max<std::uint32_t>(largest, words[i]);
  return largest;
}

template <std::size_t N>
[[gnu::always_inline]] inline bool any_of(const typename LanesOf<N>::Bits& bits) {
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < N; ++i) any |= bits[i];
  return any != 0;
}

constexpr std::uint32_t upper_word(std::uint64_t bits) {
  return static_cast<std::uint32_t>(bits >> 32);
}

// Of a whole block.
enum class Outcome : std::uint8_t { within, not_within, not_exact };

template <std::size_t N, bool near>
[[gnu::always_inline]] inline Outcome outcome_of(UlpBits ulp, const BlockLanes<N>& block, double& largest_ratio) {
  using Bits = typename LanesOf<N>::Bits;
  const std::uint32_t ratio = largest_of(block.largest_ratio);
  largest_ratio = static_cast<double>(std::bit_cast<float>(ratio)) * (1 + 0x1p-20) + 0x1p-49;
  const Bits faulty_delta = reinterpret_cast<Bits>(block.largest_excess > largest_delta - least_delta);
  const std::uint64_t least = std::max(near ? ulp.least : 0, std::bit_cast<std::uint64_t>(0x1p-800));
  Bits inexact = reinterpret_cast<Bits>(block.least_power < upper_word(least)) >> 32;
  if constexpr (near) {
    inexact |= reinterpret_cast<Bits>(block.largest_ulps >= upper_word(ulp.near)) >> 32;
  } else {
    inexact |= block.inexact;
  }
  const bool within = ratio <= std::bit_cast<std::uint32_t>(1 - 0x1p-20f);
  if (within && !any_of<N>(faulty_delta | inexact)) return Outcome::within;
  return within && !any_of<N>(faulty_delta) ? Outcome::not_exact : Outcome::not_within;
}

template <std::size_t N>
struct LaneSums {
  using Numbers = typename LanesOf<N>::Numbers;
  static constexpr std::size_t parts = UlpSums::lanes / N;
  Numbers ulps[parts], signed_ulps[parts], outward_ulps[parts];

  [[gnu::always_inline]] static void read(const std::array<double, UlpSums::lanes>& from, Numbers (&into)[parts]) {
    for (std::size_t part = 0; part < parts; ++part) {
      Numbers sum;
      LanesOf<N>::read(from.data() + part * N, sum);
      into[part] = sum;
    }
  }
  [[gnu::always_inline]] static void write(const Numbers (&from)[parts], std::array<double, UlpSums::lanes>& into) {
    for (std::size_t part = 0; part < parts; ++part) {
      const Numbers sum = from[part];
      LanesOf<N>::write(sum, into.data() + part * N);
    }
  }
  [[gnu::always_inline]] explicit LaneSums(const UlpSums& sums) {
    read(sums.ulps, ulps);
    read(sums.signed_ulps, signed_ulps);
    read(sums.outward_ulps, outward_ulps);
  }
  [[gnu::always_inline]] void write(UlpSums& sums) const {
    write(ulps, sums.ulps);
    write(signed_ulps, sums.signed_ulps);
    write(outward_ulps, sums.outward_ulps);
  }
  [[gnu::always_inline]] void add(std::size_t part, const Measured<N>& m) {
    ulps[part] += reinterpret_cast<Numbers>(m.ulps);
    signed_ulps[part] += reinterpret_cast<Numbers>(m.signed_ulps);
    outward_ulps[part] += reinterpret_cast<Numbers>(m.outward_ulps);
  }
};

template <std::size_t N, class Got, bool near, std::size_t part>
[[gnu::always_inline]] inline void measure_two(UlpBits ulp, const QuickElements& z, std::size_t at,
                                               BlockLanes<N>& block, LaneSums<N>& sums, WithinDelta& within) {
  Operands<N> first, second;
  Measured<N> m, n;
  read<N, Got>(z, at, first, second);
  measure_lanes<N, near>(ulp, first, m);
  measure_lanes<N, near>(ulp, second, n);
  check_exact<N, near>(first, m, block);
  check_exact<N, near>(second, n, block);
  std::memcpy(within.ulps.data() + at, &m.ulps, sizeof m.ulps);
  std::memcpy(within.ulps.data() + at + N, &n.ulps, sizeof n.ulps);
  compare_within<N>(z.delta + at, m, n, block, within.ratio.data() + at);
  sums.add(part, m);
  sums.add((part + 1) % LaneSums<N>::parts, n);
}

template <std::size_t N, class Got, bool near>
[[gnu::always_inline]] inline void measure_group(UlpBits ulp, const QuickElements& z, std::size_t at,
                                                 BlockLanes<N>& block, LaneSums<N>& sums, WithinDelta& within) {
  measure_two<N, Got, near, 0>(ulp, z, at, block, sums, within);
  if constexpr (group < N >> 2 * N) measure_two<N, Got, near, 2>(ulp, z, at + 2 * N, block, sums, within);
}

// The elements from `begin` to `end` are a block.
template <std::size_t N, class Got, bool near>
[[gnu::always_inline]] inline Outcome measure_block(UlpBits ulp, const QuickElements& z, std::size_t begin,
                                                    std::size_t end, WithinDelta& within, UlpSums& sums) {
  BlockLanes<N> block;
  LaneSums<N> lanes(sums);
  for (std::size_t at = begin; at < end; at += group<N>) measure_group<N, Got, near>(ulp, z, at, block, lanes, within);
  const Outcome outcome = outcome_of<N, near>(ulp, block, within.largest_ratio[begin / quick_elements]);
  if (outcome == Outcome::within) lanes.write(sums);
  return outcome;
}

template <std::size_t N, class Got>
[[gnu::always_inline]] inline std::size_t within_all(UlpBits ulp, const QuickElements& z, WithinDelta& within,
                                                     UlpSums& sums) {
  const QuickElements elements = z;  // not looked up again after every store
  for (std::size_t begin = 0; begin < elements.count; begin += quick_elements) {
    const std::size_t end = std::min(elements.count, begin + quick_elements);
    Outcome outcome = measure_block<N, Got, true>(ulp, elements, begin, end, within, sums);
    if (outcome == Outcome::not_exact) outcome = measure_block<N, Got, false>(ulp, elements, begin, end, within, sums);
    if (outcome != Outcome::within) return begin;
  }
  return elements.count;
}

// (8) Of Delta > 0 by fl(|t| / Delta): if it is <= 1 - 2^-49, then |t| / Delta < 1 - 2^-50, and by (3) |d - w| <=
// Delta;
//     if it is >= 1 + 2^-49, infinity too, then by the same |d - w| > Delta. Of Delta = 0 by (3): t = 0 or not.
template <std::size_t N>
[[gnu::always_inline]] inline void compare_each(UlpBits ulp, const Operands<N>& z, const float* deltas,
                                                const Measured<N>& m, EachDistance& each, std::size_t at) {
  using Numbers = typename LanesOf<N>::Numbers;
  using Bits = typename LanesOf<N>::Bits;
  typename NarrowLanes<N>::Floats narrow;
  std::memcpy(&narrow, deltas, sizeof narrow);
  const Numbers delta = __builtin_convertvector(narrow, Numbers), zero = {};
  const Numbers ratio = m.off == 0.0 ? zero : m.off / delta;
  const Bits exact = reinterpret_cast<Bits>(m.sum - z.got == -z.hi) & reinterpret_cast<Bits>(m.sum + z.hi == z.got);
  const Bits null = reinterpret_cast<Bits>(z.hi == 0.0) & reinterpret_cast<Bits>(z.lo == 0.0) &
                    (Bits{} - static_cast<std::uint64_t>(ulp.of_zero));
  const Bits of_size = reinterpret_cast<Bits>(reinterpret_cast<Numbers>(m.power) >= 0x1p-800) | null;
  const Bits near = reinterpret_cast<Bits>(m.off <= 0x1p127) & reinterpret_cast<Bits>(ratio >= 0.0);
  const Bits bounded = reinterpret_cast<Bits>(delta >= 0.0) & reinterpret_cast<Bits>(delta <= 0x1.fffffep127);
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
[[gnu::always_inline]] inline void each_of_all(UlpBits ulp, const QuickElements& z, EachDistance& each) {
  for (std::size_t at = 0; at < z.count; at += 2 * N) {
    Operands<N> first, second;
    Measured<N> m;
    read<N, Got>(z, at, first, second);
    measure_lanes<N>(ulp, first, m);
    compare_each<N>(ulp, first, z.delta + at, m, each, at);
    measure_lanes<N>(ulp, second, m);
    compare_each<N>(ulp, second, z.delta + at + N, m, each, at + N);
  }
}

#if QKCTS_WIDE_LANES
template <class Got>
QKCTS_WIDEST std::size_t within_widest(UlpBits ulp, const QuickElements& z, WithinDelta& within, UlpSums& sums) {
  return within_all<8, Got>(ulp, z, within, sums);
}
template <class Got>
QKCTS_WIDE std::size_t within_wide(UlpBits ulp, const QuickElements& z, WithinDelta& within, UlpSums& sums) {
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
std::size_t within_in_lanes(UlpBits ulp, const QuickElements& z, WithinDelta& within, UlpSums& sums,
                            std::size_t lanes) {
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

// In whole groups, and with `got` in numbers of binary64 where it is neither these nor of binary32: calls
// measure(elements, Got{}).
template <class Got, class Measure>
[[gnu::noinline]] auto in_whole_groups(const QuickElements& z, const Measure& measure) {
  if (z.count % largest_group == 0) return measure(z, Got{});
  FilledUp<Got> filled;
  return measure(filled.elements(z), Got{});
}
template <class Measure>
[[gnu::noinline]] auto decoded(const QuickElements& z, const Measure& measure) {
  alignas(64) std::array<double, quick_run> values;
  read_patterns(z.format, z.got, z.count, values.data());
  QuickElements numbers = z;
  numbers.got = std::as_bytes(std::span(values)).data();
  return in_whole_groups<double>(numbers, measure);
}
template <class Measure>
auto as_numbers(const QuickElements& z, const Measure& measure) {
  if (z.format == Format::binary32) return in_whole_groups<float>(z, measure);
  if (z.format == Format::binary64) return in_whole_groups<double>(z, measure);
  return decoded(z, measure);
}

// Of the last block.
void mark_rest(double* ulps, std::size_t count) {
  std::fill(ulps + count, ulps + blocks_of(count) * quick_elements, no_ulps);
}

}  // namespace

double sum_of(const std::array<double, UlpSums::lanes>& lanes) {
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

std::size_t measure_within(const QuickElements& elements, WithinDelta& within, UlpSums& sums, std::size_t lanes) {
  const UlpBits ulp = ulp_bits(elements.format);
  const std::size_t settled = as_numbers(elements, [&](const QuickElements& z, auto got) {
    return within_in_lanes<decltype(got)>(ulp, z, within, sums, lanes);
  });
  mark_rest(within.ulps.data(), elements.count);
  return std::min(settled, elements.count);
}

void measure_each(const QuickElements& elements, EachDistance& each, std::size_t lanes) {
  const UlpBits ulp = ulp_bits(elements.format);
  as_numbers(elements, [&](const QuickElements& z, auto got) { each_in_lanes<decltype(got)>(ulp, z, each, lanes); });
  mark_rest(each.ulps.data(), elements.count);
}

}  // namespace qkcts
