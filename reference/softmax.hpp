// SPDX-License-Identifier: Apache-2.0
// Softmax, log-sum-exp and the row statistics over the visible keys of one row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/real.hpp"

namespace qkcts {

template <unsigned Digits>
struct SoftmaxRow {
  std::vector<Enclosure<Digits>> exponentials;  // e^(s_j - m), one per visible key
  Enclosure<Digits> sum;                        // of these
  Enclosure<Digits> lse;
  Enclosure<Digits> entropy, p_max, score_max;
  std::size_t largest = 0;  // index of a key whose score is (within the enclosures) the largest
};

// `seen` are the scores of the visible keys, at least one, all finite. m may be any real number, because softmax does
// not depend on it: it is the lower end of the largest score, taken as exact.
template <unsigned Digits>
void set_softmax(SoftmaxRow<Digits>& row, std::span<const Enclosure<Digits>* const> seen) {
  using Number = Enclosure<Digits>;
  row.largest = 0;
  row.score_max = Number(0);
  for (std::size_t j = 0; j < seen.size(); ++j) {
    if (mpfr_greater_p(lower(*seen[j]), lower(*seen[row.largest]))) row.largest = j;
    raise_to_magnitude(row.score_max, *seen[j]);
  }
  const RealView m = lower(*seen[row.largest]);

  row.exponentials.resize(seen.size());
  row.sum = Number(0);
  Number largest(0);
  Number weighted(0);  // sum e^x x, for the entropy
  Number x;
  for (std::size_t j = 0; j < seen.size(); ++j) {
    mpfi_sub_fr(raw(x), raw(*seen[j]), m);
    set_exp(row.exponentials[j], x);
    row.sum += row.exponentials[j];
    raise_to_magnitude(largest, row.exponentials[j]);
    mpfi_mul(raw(x), raw(x), raw(row.exponentials[j]));
    weighted += x;
  }
  Number log_sum;
  mpfi_log(raw(log_sum), raw(row.sum));
  row.lse = log_sum;
  mpfi_add_fr(raw(row.lse), raw(row.lse), m);
  if (seen.size() == 1) row.lse = *seen[0];  // the same number; an exact score stays exact
  row.p_max = largest / row.sum;
  row.entropy = maximum(Number(0), log_sum - weighted / row.sum);  // an entropy is never negative
}

}  // namespace qkcts
