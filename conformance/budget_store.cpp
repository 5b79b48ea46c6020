// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_store.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

constexpr std::size_t at_once = 64;

constexpr double largest = std::numeric_limits<double>::max();
constexpr double infinity = std::numeric_limits<double>::infinity();

// As many of binary32 as there are of binary64 in LanesOf<N>.
template <std::size_t N>
struct HalfLanes {
  using Numbers __attribute__((vector_size(4 * N))) = float;
  using Bits __attribute__((vector_size(4 * N))) = std::int32_t;
};

// What an element may be off in all, unless its z is 0, nearly so or no number: then the exponent of an ulp (52 + 9
// below that of z) is not to be had from the bits. Returns 0 where none is so.
template <std::size_t N>
[[gnu::always_inline]] inline std::uint64_t add_storage(const StoreTerms& terms, std::size_t count, const double* z,
                                                        const double* errors, double* totals) {
  using L = LanesOf<N>;
  using Numbers = typename L::Numbers;
  using Bits = typename L::Bits;
  constexpr std::uint64_t field = std::uint64_t{0x7ff} << 52, lower = std::uint64_t{52 + 9} << 52;
  constexpr double least = 0x1p-900;
  const StorageRounding rounding = terms.rounding;
  const double recorded = terms.resolution > 0 ? 1 : 0;
  Bits others{};
  for (std::size_t i = 0; i < count; i += N) {
    Numbers size, error;
    L::read(z + i, size);
    L::read(errors + i, error);
    const Numbers resolution = reinterpret_cast<Numbers>((reinterpret_cast<Bits>(size) & field) - lower);
    L::take_magnitudes(size);
    const Numbers stored = rounding.counts * (rounding.roundoff * (size + error) + rounding.underflow);
    const Numbers sum = (error + stored + recorded * resolution) * (1 + 0x1p-30);
    L::write(error <= largest ? sum : Numbers{} + infinity, totals + i);
    others |= ~reinterpret_cast<Bits>((size >= least) & (size <= largest));
  }
  std::uint64_t any = 0;
  for (std::size_t lane = 0; lane < N; ++lane) any |= others[lane];
  return any;
}

// As binary32_upper(): beyond the largest number the nearest one is infinity, or one pattern below it and too small.
template <std::size_t N>
[[gnu::always_inline]] inline void round_up(std::size_t count, const double* totals, const double* mistrusted_from,
                                            float* deltas, std::int32_t* marks) {
  using L = LanesOf<N>;
  using Numbers = typename L::Numbers;
  using Floats = typename HalfLanes<N>::Numbers;
  using Words = typename HalfLanes<N>::Bits;
  constexpr std::int32_t largest32 = 0x7f7fffff;
  for (std::size_t i = 0; i < count; i += N) {
    Numbers total, from;
    L::read(totals + i, total);
    L::read(mistrusted_from + i, from);
    const Floats nearest = __builtin_convertvector(total, Floats);
    const Words is_below = __builtin_convertvector(__builtin_convertvector(nearest, Numbers) < total, Words);
    const Words pattern = reinterpret_cast<Words>(nearest) - is_below;
    const Numbers stored = __builtin_convertvector(reinterpret_cast<Floats>(pattern), Numbers);
    const Words reached = __builtin_convertvector((from > 0) & (stored >= from), Words);
    const Words beyond = (pattern & 0x7fffffff) > largest32;
    const Words mark = (beyond & 2) | (~beyond & -reached);
    std::memcpy(deltas + i, &pattern, sizeof pattern);
    std::memcpy(marks + i, &mark, sizeof mark);
  }
}

// `count` is a multiple of 8.
template <std::size_t N>
[[gnu::always_inline]] inline void store(const StoreTerms& terms, std::size_t count, const double* z,
                                         const double* error, const double* mistrusted_from, float* delta,
                                         std::uint8_t* trust) {
  alignas(64) std::array<double, at_once> total;
  alignas(64) std::array<std::int32_t, at_once> marks;
  if (add_storage<N>(terms, count, z, error, total.data()) != 0) {
    for (std::size_t i = 0; i < count; ++i) {
      const double sum =
          error[i] + terms.rounding.error(std::fabs(z[i]), error[i]) + terms.resolution * ulp(Format::binary64, z[i]);
      total[i] = std::isfinite(error[i]) ? sum * (1 + 0x1p-30) : infinity;
    }
  }
  round_up<N>(count, total.data(), mistrusted_from, delta, marks.data());
  for (std::size_t i = 0; i < count; ++i) {
    trust[i] = static_cast<std::uint8_t>(marks[i]);
  }
}

static_assert(static_cast<int>(Trust::judged) == 0 && static_cast<int>(Trust::mistrusted) == 1 &&
              static_cast<int>(Trust::domain) == 2 && sizeof(Trust) == 1);

// The last ones, some beyond them included, so that no loop has a rest that is shorter than a vector.
template <std::size_t N>
[[gnu::always_inline]] inline void store_rest(const StoreTerms& terms, std::size_t count, const double* z,
                                              const double* error, const double* mistrusted_from, float* delta,
                                              std::uint8_t* trust) {
  constexpr std::size_t lanes = 8;
  struct Numbers {
    std::array<double, at_once> z, error, from;
  } in;
  std::array<float, at_once> out;
  const std::size_t whole = (count + lanes - 1) / lanes * lanes;
  for (std::size_t i = whole - lanes; i < whole; ++i) {
    in.z[i] = 1;
    in.error[i] = in.from[i] = 0;
  }
  std::memcpy(in.z.data(), z, count * sizeof *z);
  std::memcpy(in.error.data(), error, count * sizeof *error);
  std::memcpy(in.from.data(), mistrusted_from, count * sizeof *mistrusted_from);
  store<N>(terms, whole, in.z.data(), in.error.data(), in.from.data(), out.data(), trust);
  std::memcpy(delta, out.data(), count * sizeof *delta);
}

// At most `at_once`; `trust` has room for so many.
template <std::size_t N>
[[gnu::always_inline]] inline void store_part(const StoreTerms& terms, std::size_t count, const double* z,
                                              const double* error, const double* mistrusted_from, float* delta,
                                              std::uint8_t* trust) {
  if (count == at_once) {
    store<N>(terms, count, z, error, mistrusted_from, delta, trust);
  } else {
    store_rest<N>(terms, count, z, error, mistrusted_from, delta, trust);
  }
}

void store_plain(const StoreTerms& terms, std::size_t count, const double* z, const double* error,
                 const double* mistrusted_from, float* delta, std::uint8_t* trust) {
  store_part<2>(terms, count, z, error, mistrusted_from, delta, trust);
}

#if QKCTS_WIDE_LANES
QKCTS_WIDE void store_wide(const StoreTerms& terms, std::size_t count, const double* z, const double* error,
                           const double* mistrusted_from, float* delta, std::uint8_t* trust) {
  store_part<4>(terms, count, z, error, mistrusted_from, delta, trust);
}
QKCTS_WIDEST void store_widest(const StoreTerms& terms, std::size_t count, const double* z, const double* error,
                               const double* mistrusted_from, float* delta, std::uint8_t* trust) {
  store_part<8>(terms, count, z, error, mistrusted_from, delta, trust);
}
#endif

}  // namespace

void store_budgets(const StoreTerms& terms, std::size_t count, const double* z, const double* error,
                   const double* mistrusted_from, float* delta, Trust* trust) {
  auto* run = store_plain;
#if QKCTS_WIDE_LANES
  if (lane_count() == 8) run = store_widest;
  if (lane_count() == 4) run = store_wide;
#endif
  for (std::size_t i = 0; i < count; i += at_once) {
    const std::size_t part = std::min(at_once, count - i);
    std::array<std::uint8_t, at_once> marks;
    run(terms, part, z + i, error + i, mistrusted_from + i, delta + i, marks.data());
    std::memcpy(trust + i, marks.data(), part);
  }
}

}  // namespace qkcts
