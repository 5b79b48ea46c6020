// SPDX-License-Identifier: Apache-2.0
#include "harness/ulp_counts.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

// Every edge is 0 or a power of two: what is above it has, with a mantissa of ones added to its pattern, an exponent of
// its own or a higher one plus one. The upper half of the pattern tells.
constexpr std::uint64_t mantissa = (std::uint64_t{1} << 52) - 1;
constexpr std::size_t edges = histogram_edges.size();

constexpr std::int32_t upper_half(double ulps) {
  return static_cast<std::int32_t>((std::bit_cast<std::uint64_t>(ulps) + mantissa) >> 32);
}

constexpr std::array<std::int32_t, edges> upper_edges = [] {
  std::array<std::int32_t, edges> upper{};
  for (std::size_t i = 0; i < edges; ++i) upper[i] = upper_half(histogram_edges[i]) | 0xfffff;
  return upper;
}();

// A whole block. The pattern of the largest.
template <std::size_t N>
[[gnu::always_inline]] inline std::uint64_t count_all(const double* ulps, std::uint32_t* counts) {
  using Bits = typename LanesOf<N>::Bits;
  using Words __attribute__((vector_size(8 * N))) = std::int32_t;
  constexpr std::size_t pairs = quick_elements / (2 * N), counters = 16;
  Words upper[pairs];
  Bits largest{};
  for (std::size_t i = 0; i < pairs; ++i) {
    Bits even, odd;
    std::memcpy(&even, ulps + 2 * N * i, sizeof even);
    std::memcpy(&odd, ulps + 2 * N * i + N, sizeof odd);
    upper[i] = reinterpret_cast<Words>(((even + mantissa) >> 32) | ((odd + mantissa) & 0xffffffff00000000u));
    const Bits greater = even < odd ? odd : even;
    largest = largest < greater ? greater : largest;
  }
  std::uint64_t of_all = 0;
  for (std::size_t k = 0; k < N; ++k) of_all = of_all < largest[k] ? largest[k] : of_all;
  const std::int32_t top = upper_half(std::bit_cast<double>(of_all));
  for (std::size_t edge = 0; edge < edges && upper_edges[edge] < top; ++edge) {
    Words above;
    std::memcpy(&above, counts + counters * edge, sizeof above);
    for (std::size_t i = 0; i < pairs; ++i) above -= reinterpret_cast<Words>(upper[i] > upper_edges[edge]);
    std::memcpy(counts + counters * edge, &above, sizeof above);
  }
  return of_all;
}

#if QKCTS_WIDE_LANES
QKCTS_WIDEST std::uint64_t count_widest(const double* ulps, std::uint32_t* counts) {
  return count_all<8>(ulps, counts);
}
QKCTS_WIDE std::uint64_t count_wide(const double* ulps, std::uint32_t* counts) {
  return count_all<4>(ulps, counts);
}
#endif

std::uint64_t count_in_lanes(const double* ulps, std::uint32_t* counts) {
#if QKCTS_WIDE_LANES
  if (lane_count() == 8) return count_widest(ulps, counts);
  if (lane_count() == 4) return count_wide(ulps, counts);
#endif
  return count_all<2>(ulps, counts);
}

}  // namespace

void UlpCounts::add(double ulps) {
  ++count_;
  for (std::size_t edge = 0; edge < edges && upper_edges[edge] < upper_half(ulps); ++edge) ++above_[edge][0];
  largest_.add(&ulps, 1);
}

void UlpCounts::add(const double* ulps, std::size_t count) {
  if (count < quick_elements) {
    for (std::size_t i = 0; i < count; ++i) add(ulps[i]);
    return;
  }
  const std::uint64_t largest = count_in_lanes(ulps, above_[0].data());
  if (largest >= largest_.floor()) largest_.add(ulps, count);
  count_ += count;
}

std::array<std::uint64_t, edges + 1> UlpCounts::histogram() const {
  std::array<std::uint64_t, edges + 1> histogram{};
  std::uint64_t before = count_;
  for (std::size_t edge = 0; edge < edges; ++edge) {
    std::uint64_t above = 0;
    for (const std::uint32_t counter : above_[edge]) above += counter;
    histogram[edge] = before - above;
    before = above;
  }
  histogram[edges] = before;
  return histogram;
}

}  // namespace qkcts
