// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_sums.hpp"

#include <cmath>

#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

// Sums of `Parts` times N neighbouring elements stay in registers while all terms are added to them.
constexpr std::size_t most_parts = 4;

template <std::size_t N, std::size_t Parts>
[[gnu::always_inline]] inline void add_values(const ValueTerms& terms, const ValueSums& sums, std::size_t d) {
  using L = LanesOf<N>;
  typename L::Numbers exact[Parts], moved[Parts], spread[Parts], weighted[Parts];
  for (std::size_t i = 0; i < Parts; ++i) {
    L::read(terms.exact + d + i * N, exact[i]);
    L::read(sums.moved + d + i * N, moved[i]);
    L::read(sums.spread + d + i * N, spread[i]);
    L::read(sums.weighted + d + i * N, weighted[i]);
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
      spread[i] += grown * distance;
      weighted[i] += grown * size;
    }
  }
  for (std::size_t i = 0; i < Parts; ++i) {
    L::write(moved[i], sums.moved + d + i * N);
    L::write(spread[i], sums.spread + d + i * N);
    L::write(weighted[i], sums.weighted + d + i * N);
  }
}

template <std::size_t N>
[[gnu::always_inline]] inline void add_values(const ValueTerms& terms, const ValueSums& sums) {
  std::size_t d = 0;
  for (; d + most_parts * N <= terms.length; d += most_parts * N) {
    add_values<N, most_parts>(terms, sums, d);
  }
  for (; d + N <= terms.length; d += N) {
    add_values<N, 1>(terms, sums, d);
  }
  for (; d < terms.length; ++d) {
    for (std::size_t j = 0; j < terms.keys; ++j) {
      const double distance = std::fabs(terms.v[j][d] - terms.exact[d]);
      sums.moved[d] += terms.moved[j] * distance;
      sums.spread[d] += terms.grown[j] * distance;
      sums.weighted[d] += terms.grown[j] * std::fabs(terms.v[j][d]);
    }
  }
}

template <std::size_t N, std::size_t Parts>
[[gnu::always_inline]] inline void add_products(const ProductTerms& terms, const ProductSums& sums, std::size_t key) {
  using L = LanesOf<N>;
  typename L::Numbers size[Parts], moved[Parts];
  for (std::size_t i = 0; i < Parts; ++i) {
    L::read(sums.size + key + i * N, size[i]);
    L::read(sums.moved + key + i * N, moved[i]);
  }
  for (std::size_t d = 0; d < terms.elements; ++d) {
    const double q_size = terms.q_size[d], q_error = terms.q_error[d];
    const double* const errors = terms.k_error + d * terms.stride + key;
    const double* const magnitudes = terms.k_magnitude + d * terms.stride + key;
    for (std::size_t i = 0; i < Parts; ++i) {
      typename L::Numbers k_error, k_magnitude;
      L::read(errors + i * N, k_error);
      L::read(magnitudes + i * N, k_magnitude);
      size[i] += q_size * (k_magnitude + k_error);
      moved[i] += q_size * k_error + q_error * k_magnitude;
    }
  }
  for (std::size_t i = 0; i < Parts; ++i) {
    L::write(size[i], sums.size + key + i * N);
    L::write(moved[i], sums.moved + key + i * N);
  }
}

template <std::size_t N>
[[gnu::always_inline]] inline void add_products(const ProductTerms& terms, const ProductSums& sums) {
  std::size_t key = 0;
  for (; key + most_parts * N <= terms.keys; key += most_parts * N) {
    add_products<N, most_parts>(terms, sums, key);
  }
  if (key + 3 * N <= terms.keys) {
    add_products<N, 3>(terms, sums, key);
    key += 3 * N;
  } else if (key + 2 * N <= terms.keys) {
    add_products<N, 2>(terms, sums, key);
    key += 2 * N;
  } else if (key + N <= terms.keys) {
    add_products<N, 1>(terms, sums, key);
    key += N;
  }
  for (; key < terms.keys; ++key) {
    for (std::size_t d = 0; d < terms.elements; ++d) {
      const std::size_t at = d * terms.stride + key;
      sums.size[key] += terms.q_size[d] * (terms.k_magnitude[at] + terms.k_error[at]);
      sums.moved[key] += terms.q_size[d] * terms.k_error[at] + terms.q_error[d] * terms.k_magnitude[at];
    }
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
      above = tops[k] > level ? above + 1 : above;
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
QKCTS_WIDEST void count_widest(const double* tops, std::size_t top_count, const double* levels, std::size_t level_count,
                               double* counts) {
  count<8>(tops, top_count, levels, level_count, counts);
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
  if (lane_count() == 8) return count_widest(tops, top_count, levels, level_count, counts);
  if (lane_count() == 4) return count_wide(tops, top_count, levels, level_count, counts);
#endif
  count<2>(tops, top_count, levels, level_count, counts);
}

}  // namespace qkcts
