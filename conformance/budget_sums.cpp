// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_sums.hpp"

#include <algorithm>
#include <cmath>

#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

// Sums of `Parts` times N neighbouring elements stay in registers while all terms are added to them.
constexpr std::size_t most_parts = 4;

template <bool with_spread, std::size_t N, std::size_t Parts>
[[gnu::always_inline]] inline void sum_values(const ValueTerms& terms, const ValueSums& sums, std::size_t d) {
  using L = LanesOf<N>;
  typename L::Numbers exact[Parts], moved[Parts], spread[Parts], weighted[Parts];
  for (std::size_t i = 0; i < Parts; ++i) {
    L::read(terms.exact + d + i * N, exact[i]);
    moved[i] = spread[i] = weighted[i] = typename L::Numbers{};
  }
  for (std::size_t j = 0; j < terms.keys; ++j) {
    const double* const v = terms.v[j] + d;
    const double moves = terms.moved[j], grown = terms.grown[j];
    for (std::size_t i = 0; i < Parts; ++i) {
      typename L::Numbers size;
      L::read(v + i * N, size);
      typename L::Numbers distance = size - exact[i];
      L::take_magnitudes(distance);
      L::take_magnitudes(size);
      moved[i] += moves * distance;
      if constexpr (with_spread) spread[i] += grown * distance;
      weighted[i] += grown * size;
    }
  }
  for (std::size_t i = 0; i < Parts; ++i) {
    L::write(moved[i], sums.moved + d + i * N);
    if constexpr (with_spread) L::write(spread[i], sums.spread + d + i * N);
    L::write(weighted[i], sums.weighted + d + i * N);
  }
}

template <bool with_spread, std::size_t N>
[[gnu::always_inline]] inline void sum_values(const ValueTerms& terms, const ValueSums& sums) {
  std::size_t d = 0;
  for (; d + most_parts * N <= terms.length; d += most_parts * N) {
    sum_values<with_spread, N, most_parts>(terms, sums, d);
  }
  for (; d + N <= terms.length; d += N) {
    sum_values<with_spread, N, 1>(terms, sums, d);
  }
  for (; d < terms.length; ++d) {
    sums.moved[d] = sums.weighted[d] = 0;
    if constexpr (with_spread) sums.spread[d] = 0;
    for (std::size_t j = 0; j < terms.keys; ++j) {
      const double distance = std::fabs(terms.v[j][d] - terms.exact[d]);
      sums.moved[d] += terms.moved[j] * distance;
      if constexpr (with_spread) sums.spread[d] += terms.grown[j] * distance;
      sums.weighted[d] += terms.grown[j] * std::fabs(terms.v[j][d]);
    }
  }
}

template <std::size_t N>
[[gnu::always_inline]] inline void sum_values(const ValueTerms& terms, const ValueSums& sums) {
  if (sums.spread != nullptr) {
    sum_values<true, N>(terms, sums);
  } else {
    sum_values<false, N>(terms, sums);
  }
}

// Of the keys of a group.
template <std::size_t N>
[[gnu::always_inline]] inline void sum_products(const ProductTerms& terms, const ProductSums& sums, std::size_t group) {
  using L = LanesOf<N>;
  constexpr std::size_t keys = 8, parts = keys / N;
  typename L::Numbers size[parts]{}, moved[parts]{};
  const double* errors = terms.k_error + group * keys * terms.elements;
  const double* magnitudes = terms.k_magnitude + group * keys * terms.elements;
  for (std::size_t d = 0; d < terms.elements; ++d) {
    const double q_size = terms.q_size[d], q_error = terms.q_error[d];
    for (std::size_t i = 0; i < parts; ++i) {
      typename L::Numbers k_error, k_magnitude;
      L::read(errors + i * N, k_error);
      L::read(magnitudes + i * N, k_magnitude);
      size[i] += q_size * (k_magnitude + k_error);
      moved[i] += q_size * k_error + q_error * k_magnitude;
    }
    errors += keys;
    magnitudes += keys;
  }
  for (std::size_t i = 0; i < parts; ++i) {
    L::write(size[i], sums.size + group * keys + i * N);
    L::write(moved[i], sums.moved + group * keys + i * N);
  }
}

template <std::size_t N>
[[gnu::always_inline]] inline void sum_products(const ProductTerms& terms, const ProductSums& sums) {
  for (std::size_t group = 0; group < terms.groups; ++group) {
    sum_products<N>(terms, sums, group);
  }
}

template <std::size_t N, std::size_t Parts>
[[gnu::always_inline]] inline void count(const double* tops, std::size_t top_count, const double* levels,
                                         double* counts) {
  using L = LanesOf<N>;
  typename L::Numbers level[Parts];
  typename L::Bits above[Parts];
  for (std::size_t i = 0; i < Parts; ++i) {
    L::read(levels + i * N, level[i]);
    above[i] = typename L::Bits{};
  }
  for (std::size_t k = 0; k < top_count; ++k) {
    for (std::size_t i = 0; i < Parts; ++i) {
      above[i] -= reinterpret_cast<typename L::Bits>(tops[k] > level[i]);  // true is -1
    }
  }
  for (std::size_t i = 0; i < Parts; ++i) {
    for (std::size_t lane = 0; lane < N; ++lane) {
      counts[i * N + lane] = static_cast<double>(above[i][lane]);
    }
  }
}

template <std::size_t N>
[[gnu::always_inline]] inline void count(const double* tops, std::size_t top_count, const double* levels,
                                         std::size_t level_count, double* counts) {
  std::size_t j = 0;
  for (; j + most_parts * N <= level_count; j += most_parts * N) {
    count<N, most_parts>(tops, top_count, levels + j, counts + j);
  }
  for (; j + N <= level_count; j += N) {
    count<N, 1>(tops, top_count, levels + j, counts + j);
  }
  if (j < level_count) {  // the rest as one more group
    double rest[N], found[N];
    for (std::size_t i = 0; i < N; ++i) {
      rest[i] = levels[j + i < level_count ? j + i : j];
    }
    count<N, 1>(tops, top_count, rest, found);
    for (std::size_t i = 0; j + i < level_count; ++i) {
      counts[j + i] = found[i];
    }
  }
}

template <std::size_t N>
[[gnu::always_inline]] inline double largest(double least, const double* numbers, std::size_t n) {
  using L = LanesOf<N>;
  std::size_t i = 0;
  if (n >= N) {
    typename L::Numbers most = typename L::Numbers{} + least;
    for (; i + N <= n; i += N) {
      typename L::Numbers x;
      L::read(numbers + i, x);
      most = x > most ? x : most;
    }
    for (std::size_t lane = 0; lane < N; ++lane) {
      least = most[lane] > least ? most[lane] : least;
    }
  }
  for (; i < n; ++i) {
    least = numbers[i] > least ? numbers[i] : least;
  }
  return least;
}

#if QKCTS_WIDE_LANES
QKCTS_WIDE double largest_wide(double least, const double* numbers, std::size_t n) {
  return largest<4>(least, numbers, n);
}
QKCTS_WIDEST double largest_widest(double least, const double* numbers, std::size_t n) {
  return largest<8>(least, numbers, n);
}
QKCTS_WIDE void sum_wide(const ValueTerms& terms, const ValueSums& sums) {
  sum_values<4>(terms, sums);
}
QKCTS_WIDE void sum_wide(const ProductTerms& terms, const ProductSums& sums) {
  sum_products<4>(terms, sums);
}
QKCTS_WIDE void count_wide(const double* tops, std::size_t top_count, const double* levels, std::size_t level_count,
                           double* counts) {
  count<4>(tops, top_count, levels, level_count, counts);
}
QKCTS_WIDEST void sum_widest(const ValueTerms& terms, const ValueSums& sums) {
  sum_values<8>(terms, sums);
}
QKCTS_WIDEST void sum_widest(const ProductTerms& terms, const ProductSums& sums) {
  sum_products<8>(terms, sums);
}
QKCTS_WIDEST void count_widest(const double* tops, std::size_t top_count, const double* levels, std::size_t level_count,
                               double* counts) {
  count<8>(tops, top_count, levels, level_count, counts);
}
#endif

}  // namespace

void sum_value_terms(const ValueTerms& terms, const ValueSums& sums) {
#if QKCTS_WIDE_LANES
  if (lane_count() == 8) return sum_widest(terms, sums);
  if (lane_count() == 4) return sum_wide(terms, sums);
#endif
  sum_values<2>(terms, sums);
}

void sum_product_terms(const ProductTerms& terms, const ProductSums& sums) {
#if QKCTS_WIDE_LANES
  if (lane_count() == 8) return sum_widest(terms, sums);
  if (lane_count() == 4) return sum_wide(terms, sums);
#endif
  sum_products<2>(terms, sums);
}

double largest_above(double least, const double* numbers, std::size_t n) {
#if QKCTS_WIDE_LANES
  if (lane_count() == 8) return largest_widest(least, numbers, n);
  if (lane_count() == 4) return largest_wide(least, numbers, n);
#endif
  return largest<2>(least, numbers, n);
}

std::size_t place_of_largest(const double* numbers, std::size_t n) {
  const double most = largest_above(numbers[0], numbers, n);
  const auto* const place = std::find(numbers, numbers + n, most);
  return place == numbers + n ? 0 : static_cast<std::size_t>(place - numbers);
}

void count_above(const double* tops, std::size_t top_count, const double* levels, std::size_t level_count,
                 double* counts) {
#if QKCTS_WIDE_LANES
  if (lane_count() == 8) return count_widest(tops, top_count, levels, level_count, counts);
  if (lane_count() == 4) return count_wide(tops, top_count, levels, level_count, counts);
#endif
  count<2>(tops, top_count, levels, level_count, counts);
}

}  // namespace qkcts
