// SPDX-License-Identifier: Apache-2.0
// The two sums of a budget that have a term per query, key and element. Every sum is formed in the order of its terms,
// whatever the number of lanes.
#pragma once

#include <cstddef>

namespace qkcts {

// Over the keys of a row, per element d of its output.
struct ValueTerms {
  const double* const* v = nullptr;  // one pointer per key
  const double* moved = nullptr;     // p (e^t - 1) of each
  const double* grown = nullptr;     // p e^t of each
  std::size_t keys = 0, length = 0;
  const double* exact = nullptr;  // o
};
struct ValueSums {
  double* moved = nullptr;     // sum p (e^t - 1) |v - o|
  double* spread = nullptr;    // sum p e^t |v - o|; null: not asked for
  double* weighted = nullptr;  // sum p e^t |v|
};
// Sets the sums.
void sum_value_terms(const ValueTerms& terms, const ValueSums& sums);

// Over the elements of q and k, per key; keys come in groups of eight.
struct ProductTerms {
  const double* q_size = nullptr;   // |q| + Dq
  const double* q_error = nullptr;  // Dq
  std::size_t elements = 0;
  // Dk, |k| of element d of key i of a group at d * 8 + i, one group after another.
  const double* k_error = nullptr;
  const double* k_magnitude = nullptr;
  std::size_t groups = 0;
};
struct ProductSums {
  double* size = nullptr;   // A = sum (|q| + Dq)(|k| + Dk)
  double* moved = nullptr;  // B = sum (|q| + Dq) Dk + Dq |k|
};
// Sets the sums.
void sum_product_terms(const ProductTerms& terms, const ProductSums& sums);

// Of numbers that may hold NaN, which is neither larger nor smaller than another: the first place of the largest one
// (0 where the first is NaN), n > 0; and the largest one that is larger than `least`, or that.
std::size_t place_of_largest(const double* numbers, std::size_t n);
double largest_above(double least, const double* numbers, std::size_t n);

// How many of `tops` lie above each of `levels`.
void count_above(const double* tops, std::size_t top_count, const double* levels, std::size_t level_count,
                 double* counts);

}  // namespace qkcts
