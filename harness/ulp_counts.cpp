// SPDX-License-Identifier: Apache-2.0
#include "harness/ulp_counts.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace qkcts {
namespace {

// Every number of ulps is rounded up to one of the patterns whose lower 48 bits are 0: a word, which rises as it does.
// Edges are such patterns, so that what is above an edge has a word above that of the edge, and nothing else has. The
// word of no_ulps is negative.
constexpr std::int64_t rounding_up = (std::int64_t{1} << 48) - 1;
constexpr std::size_t edges = histogram_edges.size();

constexpr std::int16_t word_of(std::int64_t pattern) {
  return static_cast<std::int16_t>((pattern + rounding_up) >> 48);
}

// And one that nothing is above.
constexpr std::array<std::int16_t, edges + 1> edge_words = [] {
  std::array<std::int16_t, edges + 1> words{};
  words[edges] = std::numeric_limits<std::int16_t>::max();
  for (std::size_t i = 0; i < edges; ++i) words[i] = word_of(std::bit_cast<std::int64_t>(histogram_edges[i]));
  return words;
}();

template <std::size_t N>
struct WordLanes {
  using Long __attribute__((vector_size(8 * N))) = std::int64_t;
  using Halves __attribute__((vector_size(8 * N))) = std::uint32_t;
  using Floats __attribute__((vector_size(8 * N))) = float;
  using Words __attribute__((vector_size(8 * N))) = std::int16_t;
  using Counters __attribute__((vector_size(8 * N))) = std::uint16_t;
  static constexpr std::size_t lanes = 4 * N, registers = quick_elements / lanes;
  static_assert(lanes * registers == quick_elements && N * registers == 16);  // as a block has bits
};
static_assert(LargestValues::most >= quick_run);  // which are chosen at once, at most

// The upper halves of x and y: of two lanes of x, of two of y, and so on. (Of floating-point numbers it is a single
// instruction.)
template <std::size_t N>
[[gnu::always_inline]] inline void take_upper(const typename WordLanes<N>::Long& x,
                                              const typename WordLanes<N>::Long& y,
                                              typename WordLanes<N>::Halves& upper) {
  using Floats = typename WordLanes<N>::Floats;
  using Halves = typename WordLanes<N>::Halves;
  const Floats a = reinterpret_cast<Floats>(x), b = reinterpret_cast<Floats>(y);
  if constexpr (N == 4) {
    upper = reinterpret_cast<Halves>(__builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15));
  } else {
    upper = reinterpret_cast<Halves>(__builtin_shufflevector(a, b, 1, 3, 5, 7));
  }
}

template <std::size_t N>
[[gnu::always_inline]] inline void read_rounded(const double* ulps, typename WordLanes<N>::Long& patterns) {
  std::memcpy(&patterns, ulps, sizeof patterns);
  patterns += rounding_up;
}

// The words of 4N elements.
template <std::size_t N>
[[gnu::always_inline]] inline void read_words(const double* ulps, typename WordLanes<N>::Words& words) {
  typename WordLanes<N>::Long a, b, c, d;
  read_rounded<N>(ulps, a);
  read_rounded<N>(ulps + N, b);
  read_rounded<N>(ulps + 2 * N, c);
  read_rounded<N>(ulps + 3 * N, d);
  typename WordLanes<N>::Halves first, second;
  take_upper<N>(a, b, first);
  take_upper<N>(c, d, second);
  words = reinterpret_cast<typename WordLanes<N>::Words>(first >> 16 | (second & 0xffff0000U));
}

// Whose word stands in a lane there.
constexpr std::size_t element_in_lane(std::size_t lane, std::size_t N) {
  const std::size_t half = lane / 2, second = lane % 2;  // of the halves, and of which of them
  return (2 * second + half % 4 / 2) * N + half / 4 * 2 + half % 2;
}

// A bit for each element: of the words of a register one bit each, those of the next registers beside them. The lanes
// of 64 bits are laid over each other.
template <std::size_t N>
[[gnu::always_inline]] inline std::uint64_t join_bits(const typename WordLanes<N>::Words& bits) {
  const auto lanes = reinterpret_cast<typename WordLanes<N>::Long>(bits);
  std::uint64_t joined = 0;
  for (std::size_t lane = 0; lane < N; ++lane)
    joined |= static_cast<std::uint64_t>(lanes[lane]) << (WordLanes<N>::registers * lane);
  return joined;
}

template <std::size_t N>
constexpr std::array<std::uint8_t, quick_elements> element_of_bit = [] {
  constexpr std::size_t registers = WordLanes<N>::registers, lanes = WordLanes<N>::lanes;
  std::array<std::uint8_t, quick_elements> elements{};
  for (std::size_t bit = 0; bit < quick_elements; ++bit) {
    const std::size_t lane = bit % 16 / registers * 4 + bit / 16;
    elements[bit] = static_cast<std::uint8_t>(bit % registers * lanes + element_in_lane(lane, N));
  }
  return elements;
}();

struct Run {
  const double* ulps;
  std::size_t blocks;
  std::uint64_t floor;  // patterns below it are not chosen
};

// What is chosen of a run: its elements from the floor on.
struct Chosen {
  double* values;
  std::size_t count = 0;
  bool above_zero = false;  // is any element, chosen or not?
};

// Of a block those that have a bit, if they are not below the floor after all.
template <std::size_t N>
[[gnu::always_inline]] inline void choose(const double* ulps, std::uint64_t bits, std::uint64_t floor, Chosen& chosen) {
  double* const values = chosen.values;
  std::size_t count = chosen.count;
  if (bits == ~std::uint64_t{0} && floor == 0) {
    std::memcpy(values + count, ulps, quick_elements * sizeof *ulps);
    count += quick_elements;
  } else {
    for (; bits != 0; bits &= bits - 1) {
      const double value = ulps[element_of_bit<N>[static_cast<std::size_t>(std::countr_zero(bits))]];
      values[count] = value;
      count += std::bit_cast<std::uint64_t>(value) >= floor ? 1 : 0;
    }
  }
  chosen.count = count;
}

template <std::size_t N>
[[gnu::always_inline]] inline void count_all(const Run& run, std::uint16_t* counts, Chosen& chosen) {
  using Lanes = WordLanes<N>;
  using Words = typename Lanes::Words;
  const std::int16_t floor = word_of(static_cast<std::int64_t>(run.floor));
  Words words[quick_blocks * Lanes::registers], largest = Words{} - std::int16_t{1};
  for (std::size_t block = 0; block < run.blocks; ++block) {
    const double* const ulps = run.ulps + quick_elements * block;
    Words from_floor{};
    for (std::size_t i = 0; i < Lanes::registers; ++i) {
      Words these;
      read_words<N>(ulps + Lanes::lanes * i, these);
      words[Lanes::registers * block + i] = these;
      largest = largest < these ? these : largest;
      const auto bit = static_cast<std::int16_t>(1U << i);
      from_floor |= (these >= floor) & bit;
    }
    choose<N>(ulps, join_bits<N>(from_floor), run.floor, chosen);
  }
  std::int16_t top = -1;
  for (std::size_t lane = 0; lane < Lanes::lanes; ++lane) top = std::max<std::int16_t>(top, largest[lane]);
  chosen.above_zero = top > 0;
  for (std::size_t edge = 0; edge_words[edge] < top; ++edge) {
    typename Lanes::Counters above;
    std::memcpy(&above, counts + UlpCounts::counters * edge, sizeof above);
    for (std::size_t block = 0; block < run.blocks; ++block)
      for (std::size_t i = 0; i < Lanes::registers; ++i)
        above -= reinterpret_cast<typename Lanes::Counters>(words[Lanes::registers * block + i] > edge_words[edge]);
    std::memcpy(counts + UlpCounts::counters * edge, &above, sizeof above);
  }
}

#if QKCTS_WIDE_LANES
QKCTS_WIDE void count_wide(const Run& run, std::uint16_t* counts, Chosen& chosen) {
  count_all<4>(run, counts, chosen);
}
#endif

// (The widest lanes that lane_count() speaks of have no instructions for words.)
void count_in_lanes(std::size_t lanes, const Run& run, std::uint16_t* counts, Chosen& chosen) {
#if QKCTS_WIDE_LANES
  if (lanes >= 4) return count_wide(run, counts, chosen);
#endif
  (void)lanes;
  count_all<2>(run, counts, chosen);
}

}  // namespace

void UlpCounts::add(double ulps) {
  ++count_;
  const auto pattern = std::bit_cast<std::uint64_t>(ulps);
  for (std::size_t edge = 0; edge < edges && ulps > histogram_edges[edge]; ++edge) ++above_[edge];
  if (pattern >= largest_.floor()) largest_.add(&ulps, 1);
}

bool UlpCounts::add(const double* ulps, std::size_t blocks, std::size_t count) {
  if (blocks_ + blocks > blocks_counted) gather();
  blocks_ += blocks;
  Chosen chosen{largest_.room()};
  count_in_lanes(lanes_, {ulps, blocks, largest_.floor()}, counts_[0].data(), chosen);
  largest_.take(chosen.count);
  count_ += count;
  return chosen.above_zero;
}

void UlpCounts::gather() {
  for (std::size_t edge = 0; edge < edges; ++edge)
    for (std::uint16_t& counter : counts_[edge]) above_[edge] += std::exchange(counter, 0);
  blocks_ = 0;
}

std::array<std::uint64_t, edges + 1> UlpCounts::histogram() {
  gather();
  std::array<std::uint64_t, edges + 1> histogram{};
  std::uint64_t before = count_;
  for (std::size_t edge = 0; edge < edges; ++edge) {
    histogram[edge] = before - above_[edge];
    before = above_[edge];
  }
  histogram[edges] = before;
  return histogram;
}

}  // namespace qkcts
