// SPDX-License-Identifier: Apache-2.0
#include "harness/ulp_counts.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace qkcts {
namespace {

// Every edge is 0 or a power of two: what is above it has, with a mantissa of ones added to its pattern, an exponent of
// its own or a higher one plus one. The upper half of the pattern tells. That of no_ulps is negative.
constexpr std::int64_t mantissa = (std::int64_t{1} << 52) - 1;
constexpr std::int64_t upper_bits = ~std::int64_t{0xffffffff};
constexpr std::size_t edges = histogram_edges.size();

constexpr std::int32_t upper_half(double ulps) {
  return static_cast<std::int32_t>((std::bit_cast<std::int64_t>(ulps) + mantissa) >> 32);
}

constexpr std::array<std::int32_t, edges> upper_edges = [] {
  std::array<std::int32_t, edges> upper{};
  for (std::size_t i = 0; i < edges; ++i) upper[i] = upper_half(histogram_edges[i]) | 0xfffff;
  return upper;
}();

template <std::size_t N>
struct WordLanes {
  using Long __attribute__((vector_size(8 * N))) = std::int64_t;
  using Words __attribute__((vector_size(8 * N))) = std::int32_t;
  static constexpr std::size_t pairs = quick_elements / (2 * N);
};

// y[i] = x[i + step], around. (Not by way of memory: what is read back there in another size than it was written
// waits.)
template <std::size_t N, std::size_t step, class Lanes>
[[gnu::always_inline]] inline void rotate(const Lanes& x, Lanes& y) {
  if constexpr (N == 8) {
    y = __builtin_shufflevector(x, x, step, 1 + step, 2 + step, 3 + step, 4 + step, 5 + step, 6 + step, 7 + step);
  } else if constexpr (N == 4) {
    y = __builtin_shufflevector(x, x, step, 1 + step, 2 + step, 3 + step);
  } else {
    y = __builtin_shufflevector(x, x, step, 1 + step);
  }
}

template <std::size_t N, std::size_t step = N / 2>
[[gnu::always_inline]] inline void raise_to_largest(typename WordLanes<N>::Long& lanes) {
  typename WordLanes<N>::Long others;
  rotate<N, step>(lanes, others);
  lanes = lanes < others ? others : lanes;
  if constexpr (step > 1) raise_to_largest<N, step / 2>(lanes);
}

template <std::size_t N, std::size_t step = N / 2>
[[gnu::always_inline]] inline void join_bits(typename WordLanes<N>::Long& lanes) {
  typename WordLanes<N>::Long others;
  rotate<N, step>(lanes, others);
  lanes |= others << static_cast<std::int64_t>(64 / N * step);
  if constexpr (step > 1) join_bits<N, step / 2>(lanes);
}

// Bit (64/N) j + i of what is chosen is that of element N i + j.
template <std::size_t N>
std::size_t element_of(std::size_t bit) {
  return bit % (64 / N) * N + bit / (64 / N);
}

// What is chosen of a block: its elements from the floor on.
struct Chosen {
  double* values;
  std::size_t count = 0;
  std::int64_t largest = 0;  // the pattern of the largest element, chosen or not; negative if there is none
};

template <std::size_t N>
[[gnu::always_inline]] inline void count_all(const double* ulps, std::size_t places, std::int64_t floor,
                                             std::uint32_t* counts, Chosen& chosen) {
  using Long = typename WordLanes<N>::Long;
  using Words = typename WordLanes<N>::Words;
  constexpr std::size_t counters = 16;
  const std::size_t pairs = (places + 2 * N - 1) / (2 * N);
  Words upper[WordLanes<N>::pairs];
  Long largest = Long{} - 1, from_floor{};
  for (std::size_t i = 0; i < pairs; ++i) {
    Long even, odd;
    std::memcpy(&even, ulps + 2 * N * i, sizeof even);
    std::memcpy(&odd, ulps + 2 * N * i + N, sizeof odd);
    upper[i] = reinterpret_cast<Words>(
        reinterpret_cast<Long>(reinterpret_cast<typename LanesOf<N>::Bits>(even + mantissa) >> 32) |
        ((odd + mantissa) & upper_bits));
    const Long greater = even < odd ? odd : even;
    largest = largest < greater ? greater : largest;
    from_floor |= (even >= floor) & static_cast<std::int64_t>(std::uint64_t{1} << (2 * i));
    from_floor |= (odd >= floor) & static_cast<std::int64_t>(std::uint64_t{2} << (2 * i));
  }
  raise_to_largest<N>(largest);
  chosen.largest = largest[0];
  const std::int32_t top = upper_half(std::bit_cast<double>(chosen.largest));
  for (std::size_t edge = 0; edge < edges && upper_edges[edge] < top; ++edge) {
    Words above;
    std::memcpy(&above, counts + counters * edge, sizeof above);
    for (std::size_t i = 0; i < pairs; ++i) above = upper[i] > upper_edges[edge] ? above + 1 : above;
    std::memcpy(counts + counters * edge, &above, sizeof above);
  }
  join_bits<N>(from_floor);  // into lane 0
  if (from_floor[0] == -1) {
    std::memcpy(chosen.values, ulps, quick_elements * sizeof *ulps);
    chosen.count = quick_elements;
    return;
  }
  for (auto bits = static_cast<std::uint64_t>(from_floor[0]); bits != 0; bits &= bits - 1)
    chosen.values[chosen.count++] = ulps[element_of<N>(static_cast<std::size_t>(std::countr_zero(bits)))];
}

#if QKCTS_WIDE_LANES
QKCTS_WIDEST void count_widest(const double* ulps, std::size_t places, std::int64_t floor, std::uint32_t* counts,
                               Chosen& chosen) {
  count_all<8>(ulps, places, floor, counts, chosen);
}
QKCTS_WIDE void count_wide(const double* ulps, std::size_t places, std::int64_t floor, std::uint32_t* counts,
                           Chosen& chosen) {
  count_all<4>(ulps, places, floor, counts, chosen);
}
#endif

void count_in_lanes(std::size_t lanes, const double* ulps, std::size_t places, std::int64_t floor,
                    std::uint32_t* counts, Chosen& chosen) {
#if QKCTS_WIDE_LANES
  if (lanes == 8) return count_widest(ulps, places, floor, counts, chosen);
  if (lanes == 4) return count_wide(ulps, places, floor, counts, chosen);
#endif
  (void)lanes;
  count_all<2>(ulps, places, floor, counts, chosen);
}

}  // namespace

void UlpCounts::add(double ulps) {
  ++count_;
  top_ = std::max(top_, ulps);
  for (std::size_t edge = 0; edge < edges && upper_edges[edge] < upper_half(ulps); ++edge) ++above_[edge][0];
  if (std::bit_cast<std::uint64_t>(ulps) >= largest_.floor()) largest_.add(&ulps, 1);
}

double UlpCounts::add(const std::array<double, quick_elements>& ulps, std::size_t places, std::size_t count) {
  Chosen chosen{largest_.room()};
  count_in_lanes(lanes_, ulps.data(), places, static_cast<std::int64_t>(largest_.floor()), above_[0].data(), chosen);
  largest_.take(chosen.count);
  count_ += count;
  const double largest = chosen.largest < 0 ? 0 : std::bit_cast<double>(chosen.largest);
  top_ = std::max(top_, largest);
  return largest;
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
