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
constexpr double largest32 = std::numeric_limits<float>::max();

// Straight code, which the compiler turns into vector instructions; `plain` says that all z are in the range in which
// the exponent of an ulp may be taken from the bits (52 + 9 below that of z, a normal number).
[[gnu::always_inline]] inline void store(const StoreTerms& terms, std::size_t count, const double* __restrict z,
                                         const double* __restrict error, const double* __restrict mistrusted_from,
                                         float* __restrict delta, std::uint8_t* __restrict trust) {
  constexpr std::uint64_t field = std::uint64_t{0x7ff} << 52, lower = std::uint64_t{52 + 9} << 52;
  constexpr double least = 0x1p-900;
  std::array<double, at_once> total;
  std::array<double, at_once> mark;
  std::uint64_t others = 0;
  const StorageRounding rounding = terms.rounding;
  const double recorded = terms.resolution > 0 ? 1 : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double size = std::fabs(z[i]);
    const double resolution = std::bit_cast<double>((std::bit_cast<std::uint64_t>(z[i]) & field) - lower);
    const double sum = (error[i] + rounding.error(size, error[i]) + recorded * resolution) * (1 + 0x1p-30);
    total[i] = error[i] <= largest ? sum : std::numeric_limits<double>::infinity();
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double size = std::fabs(z[i]);
    others |= static_cast<std::uint64_t>(size >= least ? 0 : 1) | static_cast<std::uint64_t>(size <= largest ? 0 : 1);
  }
  if (others != 0) {
    for (std::size_t i = 0; i < count; ++i) {
      const double sum =
          error[i] + rounding.error(std::fabs(z[i]), error[i]) + terms.resolution * ulp(Format::binary64, z[i]);
      total[i] = std::isfinite(error[i]) ? sum * (1 + 0x1p-30) : std::numeric_limits<double>::infinity();
    }
  }
  // As binary32_upper(): beyond the largest number the nearest one is infinity, or one pattern below it and too small.
  for (std::size_t i = 0; i < count; ++i) {
    delta[i] = static_cast<float>(total[i]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t below = static_cast<double>(delta[i]) < total[i] ? 1u : 0u;
    delta[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(delta[i]) + below);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto stored = static_cast<double>(delta[i]);
    const double from = mistrusted_from[i] > 0 ? mistrusted_from[i] : std::numeric_limits<double>::infinity();
    const double reached = stored >= from ? 1 : 0;
    mark[i] = stored <= largest32 ? reached : 2;
  }
  for (std::size_t i = 0; i < count; ++i) {
    trust[i] = static_cast<std::uint8_t>(mark[i]);
  }
}

static_assert(static_cast<int>(Trust::judged) == 0 && static_cast<int>(Trust::mistrusted) == 1 &&
              static_cast<int>(Trust::domain) == 2 && sizeof(Trust) == 1);

// The last ones, some beyond them included, so that no loop has a rest that is shorter than a vector.
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
  store(terms, whole, in.z.data(), in.error.data(), in.from.data(), out.data(), trust);
  std::memcpy(delta, out.data(), count * sizeof *delta);
}

// At most `at_once`; `trust` has room for so many.
[[gnu::always_inline]] inline void store_part(const StoreTerms& terms, std::size_t count, const double* z,
                                              const double* error, const double* mistrusted_from, float* delta,
                                              std::uint8_t* trust) {
  if (count == at_once) {
    store(terms, count, z, error, mistrusted_from, delta, trust);
  } else {
    store_rest(terms, count, z, error, mistrusted_from, delta, trust);
  }
}

void store_plain(const StoreTerms& terms, std::size_t count, const double* z, const double* error,
                 const double* mistrusted_from, float* delta, std::uint8_t* trust) {
  store_part(terms, count, z, error, mistrusted_from, delta, trust);
}

#if QKCTS_WIDE_LANES
QKCTS_WIDE void store_wide(const StoreTerms& terms, std::size_t count, const double* z, const double* error,
                           const double* mistrusted_from, float* delta, std::uint8_t* trust) {
  store_part(terms, count, z, error, mistrusted_from, delta, trust);
}
QKCTS_WIDEST void store_widest(const StoreTerms& terms, std::size_t count, const double* z, const double* error,
                               const double* mistrusted_from, float* delta, std::uint8_t* trust) {
  store_part(terms, count, z, error, mistrusted_from, delta, trust);
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
