// SPDX-License-Identifier: Apache-2.0
// Softmax, log-sum-exp and the row statistics over the visible keys of one row, and over a sink.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <qkcts/contract.h>

#include "reference/real.hpp"

namespace qkcts {

// What the softmax of one row is made of besides the scores. The weights are base^x.
struct SoftmaxTerms {
  Base base = Base::e;
  Base lse_base = Base::e;
  std::uint32_t sink = QKCTS_SINK_NONE;
  double sink_logit = 0;
};

inline SoftmaxTerms softmax_terms(const qkcts_softmax& terms, double sink_logit) {
  const auto base = [](std::uint32_t text) { return text == QKCTS_BASE_TWO ? Base::two : Base::e; };
  return {base(terms.base), base(terms.lse_base), terms.sink, sink_logit};
}

template <unsigned Digits>
struct SoftmaxRow {
  std::vector<Enclosure<Digits>> exponentials;  // base^(s_j - m), one per visible key
  Enclosure<Digits> sum;                        // denominator of the probabilities, in the same units
  Enclosure<Digits> output_sum;                 // denominator of the output
  Enclosure<Digits> lse;
  Enclosure<Digits> entropy, p_max, score_max;
  std::size_t largest = 0;  // index of a key whose score is (within the enclosures) the largest
};

// log_to(from^x).
template <unsigned Digits>
Enclosure<Digits> in_base(Base from, Base to, const Enclosure<Digits>& x) {
  if (from == to) return x;
  return from == Base::two ? Enclosure<Digits>(x * log_of_two<Digits>()) : Enclosure<Digits>(x / log_of_two<Digits>());
}

// lse from the natural logarithm of the sum of the weights in units of base^shift.
template <unsigned Digits>
Enclosure<Digits> shifted_lse(const SoftmaxTerms& terms, const Enclosure<Digits>& log_sum, RealView shift) {
  return in_base(Base::e, terms.lse_base, log_sum) + in_base(terms.base, terms.lse_base, point<Digits>(shift));
}

// Adds a column sink to a row whose `sum`, `weighted` = sum w ln(w) and `largest` weight are those of the keys, in
// units of base^m. Where the sink is the larger, lse and statistics are formed in units of its weight: they may be so
// small beside it that units of base^m would hide them; p and the output keep the units of the keys for the same
// reason.
template <unsigned Digits>
void add_column(SoftmaxRow<Digits>& row, const SoftmaxTerms& terms, RealView m, Enclosure<Digits> weighted,
                const Enclosure<Digits>& largest) {
  using Number = Enclosure<Digits>;
  const Number logit(terms.sink_logit);
  Number gap;  // ln of the sink's weight in units of base^m
  gap.set_difference(logit, m);
  Number weight;
  set_power(terms.base, weight, gap);
  gap = in_base(terms.base, Base::e, gap);
  const Number keys = row.sum;
  row.sum += weight;
  row.output_sum = row.sum;
  if (mpfr_cmp_d(m, terms.sink_logit) >= 0) {
    const Number log_sum = log_of(row.sum);
    row.lse = shifted_lse(terms, log_sum, m);
    weighted += weight * gap;
    row.p_max = maximum(largest, weight) / row.sum;
    row.entropy = maximum(Number(0), log_sum - weighted / row.sum);
    return;
  }
  Number unit;  // base^(m - z) <= 1
  set_power(terms.base, unit, point<Digits>(m) - logit);
  const Number rest = keys * unit;
  Number log_sum;
  log_sum.set_rising(rest, mpfr_log1p);
  const Number sum = rest + 1ul;
  row.lse = shifted_lse(terms, log_sum, lower(logit));
  row.p_max = maximum(Number(1), largest * unit) / sum;
  row.entropy = maximum(Number(0), log_sum - unit * (weighted - keys * gap) / sum);
}

// `seen` are the scores of the visible keys, at least one, all finite. m may be any real number, because softmax does
// not depend on it: it is the lower end of the largest score, taken as exact.
template <unsigned Digits>
void set_softmax(SoftmaxRow<Digits>& row, std::span<const Enclosure<Digits>* const> seen, const SoftmaxTerms& terms) {
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
  Number weighted(0);  // sum w ln w, for the entropy
  Number x;
  for (std::size_t j = 0; j < seen.size(); ++j) {
    x.set_difference(*seen[j], m);
    set_power(terms.base, row.exponentials[j], x);
    row.sum += row.exponentials[j];
    raise_to_magnitude(largest, row.exponentials[j]);
    if (terms.base == Base::two) x *= log_of_two<Digits>();
    x *= row.exponentials[j];
    weighted += x;
  }
  if (terms.sink == QKCTS_SINK_COLUMN) return add_column(row, terms, m, weighted, largest);
  const Number log_sum = log_of(row.sum);
  row.lse = seen.size() == 1 ? in_base(terms.base, terms.lse_base, *seen[0])  // the same number; an exact one stays so
                             : shifted_lse(terms, log_sum, m);
  row.p_max = largest / row.sum;
  row.entropy = maximum(Number(0), log_sum - weighted / row.sum);  // an entropy is never negative
  row.output_sum = row.sum;
  if (terms.sink == QKCTS_SINK_POST_SCALE) {  // (sum w v / sum w) / (1 + e^(z - lse)) = sum w v / (sum w + e^z)
    Number weight;
    x.set_difference(Number(terms.sink_logit), m);
    set_power(terms.base, weight, x);
    row.output_sum += weight;
  }
}

}  // namespace qkcts
