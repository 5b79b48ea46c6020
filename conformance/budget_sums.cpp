// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_sums.hpp"

#include <cmath>

#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

// How many terms are added to a sum while it is in a register.
constexpr std::size_t at_once = 4;

// Elements from `first` on, as many as fill lanes; returns the first one that is left. `Terms` <= at_once terms, from
// key `key` on.
template <std::size_t N, std::size_t Terms>
[[gnu::always_inline]] inline std::size_t add_values(const ValueTerms& terms, std::size_t key, const ValueSums& sums,
                                                     std::size_t first) {
  using L = LanesOf<N>;
  std::size_t d = first;
  for (; d + N <= terms.length; d += N) {
    typename L::Numbers exact, moved, spread, weighted;
    L::read(terms.exact + d, exact);
    L::read(sums.moved + d, moved);
    L::read(sums.spread + d, spread);
    L::read(sums.weighted + d, weighted);
    for (std::size_t j = key; j < key + Terms; ++j) {
      typename L::Numbers size;
      L::read(terms.v[j] + d, size);
      typename L::Numbers distance = size - exact;
      L::take_magnitudes(distance);
      L::take_magnitudes(size);
      moved += terms.moved[j] * distance;
      spread += terms.grown[j] * distance;
      weighted += terms.grown[j] * size;
    }
    L::write(moved, sums.moved + d);
    L::write(spread, sums.spread + d);
    L::write(weighted, sums.weighted + d);
  }
  return d;
}

template <std::size_t N, std::size_t Terms>
[[gnu::always_inline]] inline void add_values(const ValueTerms& terms, std::size_t key, const ValueSums& sums) {
  const std::size_t left = add_values<N, Terms>(terms, key, sums, 0);
  for (std::size_t d = left; d < terms.length; ++d) {
    for (std::size_t j = key; j < key + Terms; ++j) {
      const double distance = std::fabs(terms.v[j][d] - terms.exact[d]);
      sums.moved[d] += terms.moved[j] * distance;
      sums.spread[d] += terms.grown[j] * distance;
      sums.weighted[d] += terms.grown[j] * std::fabs(terms.v[j][d]);
    }
  }
}

template <std::size_t N>
[[gnu::always_inline]] inline void add_values(const ValueTerms& terms, const ValueSums& sums) {
  std::size_t key = 0;
  for (; key + at_once <= terms.keys; key += at_once) {
    add_values<N, at_once>(terms, key, sums);
  }
  for (; key < terms.keys; ++key) {
    add_values<N, 1>(terms, key, sums);
  }
}

template <std::size_t N, std::size_t Terms>
[[gnu::always_inline]] inline void add_products(const ProductTerms& terms, std::size_t element,
                                                const ProductSums& sums) {
  using L = LanesOf<N>;
  std::size_t i = 0;
  for (; i + N <= terms.keys; i += N) {
    typename L::Numbers size, moved;
    L::read(sums.size + i, size);
    L::read(sums.moved + i, moved);
    for (std::size_t d = element; d < element + Terms; ++d) {
      typename L::Numbers k_size, k_error, k_magnitude;
      L::read(terms.k_size + d * terms.stride + i, k_size);
      L::read(terms.k_error + d * terms.stride + i, k_error);
      L::read(terms.k_magnitude + d * terms.stride + i, k_magnitude);
      size += terms.q_size[d] * k_size;
      moved += terms.q_size[d] * k_error + terms.q_error[d] * k_magnitude;
    }
    L::write(size, sums.size + i);
    L::write(moved, sums.moved + i);
  }
  for (; i < terms.keys; ++i) {
    for (std::size_t d = element; d < element + Terms; ++d) {
      const std::size_t at = d * terms.stride + i;
      sums.size[i] += terms.q_size[d] * terms.k_size[at];
      sums.moved[i] += terms.q_size[d] * terms.k_error[at] + terms.q_error[d] * terms.k_magnitude[at];
    }
  }
}

template <std::size_t N>
[[gnu::always_inline]] inline void add_products(const ProductTerms& terms, const ProductSums& sums) {
  std::size_t d = 0;
  for (; d + at_once <= terms.elements; d += at_once) {
    add_products<N, at_once>(terms, d, sums);
  }
  for (; d < terms.elements; ++d) {
    add_products<N, 1>(terms, d, sums);
  }
}

template <std::size_t N>
[[gnu::always_inline]] inline void count(const double* tops, std::size_t top_count, const double* levels,
                                         std::size_t level_count, double* counts) {
  using L = LanesOf<N>;
  std::size_t j = 0;
  for (; j + N <= level_count; j += N) {
    typename L::Numbers level;
    typename L::Bits above{};
    L::read(levels + j, level);
    for (std::size_t k = 0; k < top_count; ++k) {
      above -= reinterpret_cast<typename L::Bits>(tops[k] > level);  // true is -1
    }
    for (std::size_t lane = 0; lane < N; ++lane) {
      counts[j + lane] = static_cast<double>(above[lane]);
    }
  }
  for (; j < level_count; ++j) {
    std::size_t above = 0;
    for (std::size_t k = 0; k < top_count; ++k) {
      above += tops[k] > levels[j] ? 1 : 0;
    }
    counts[j] = static_cast<double>(above);
  }
}

#if QKCTS_WIDE_LANES
QKCTS_WIDE void add_wide(const ValueTerms& terms, const ValueSums& sums) {
  add_values<4>(terms, sums);
}
QKCTS_WIDE void add_wide(const ProductTerms& terms, const ProductSums& sums) {
  add_products<4>(terms, sums);
}
QKCTS_WIDE void count_wide(const double* tops, std::size_t top_count, const double* levels, std::size_t level_count,
                           double* counts) {
  count<4>(tops, top_count, levels, level_count, counts);
}
QKCTS_WIDEST void add_widest(const ValueTerms& terms, const ValueSums& sums) {
  add_values<8>(terms, sums);
}
QKCTS_WIDEST void add_widest(const ProductTerms& terms, const ProductSums& sums) {
  add_products<8>(terms, sums);
}
#endif

}  // namespace

void add_value_terms(const ValueTerms& terms, const ValueSums& sums) {
#if QKCTS_WIDE_LANES
  if (lane_count() == 8) return add_widest(terms, sums);
  if (lane_count() == 4) return add_wide(terms, sums);
#endif
  add_values<2>(terms, sums);
}

void add_product_terms(const ProductTerms& terms, const ProductSums& sums) {
#if QKCTS_WIDE_LANES
  if (lane_count() == 8) return add_widest(terms, sums);
  if (lane_count() == 4) return add_wide(terms, sums);
#endif
  add_products<2>(terms, sums);
}

void count_above(const double* tops, std::size_t top_count, const double* levels, std::size_t level_count,
                 double* counts) {
#if QKCTS_WIDE_LANES
  if (lane_count() >= 4) return count_wide(tops, top_count, levels, level_count, counts);
#endif
  count<2>(tops, top_count, levels, level_count, counts);
}

}  // namespace qkcts
