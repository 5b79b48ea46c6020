// SPDX-License-Identifier: Apache-2.0
#include "reference/exact_softmax.hpp"

#include <cmath>

#include <fmt/format.h>

#include "reference/linear_roots.hpp"

namespace qkcts {
namespace {

// Weights beyond this are told apart by no precision here, and would cost memory.
constexpr std::int64_t largest_exponent = 1 << 16;

Rational power_of_two(std::int64_t n) {
  const Rational power(boost::multiprecision::mpz_int(1) << static_cast<unsigned>(n < 0 ? -n : n));
  return n < 0 ? Rational(Rational(1) / power) : power;
}

}  // namespace

// Index of the key, or -1 for the sink.
std::int64_t ExactSoftmax::key_of(const RowPlace& place, std::size_t term) const {
  return term < place.visible.size() ? static_cast<std::int64_t>(place.visible[term]) : -1;
}

TermGroups ExactSoftmax::groups(const RowPlace& place, const TermDistances& distances) {
  TermGroups result;
  const std::size_t sinks = values_.terms.softmax.sink == QKCTS_SINK_NONE ? 0 : 1;
  for (std::size_t i = 0; i < place.visible.size() + sinks; ++i) {
    std::size_t g = 0;
    Rational weight(1);
    for (; g < result.first.size(); ++g) {
      const std::optional<std::int64_t> n = distances.between(i, result.first[g]);
      if (!n || std::abs(*n) > largest_exponent) continue;
      if (!scores_.differ_by(place, key_of(place, i), key_of(place, result.first[g]), Rational(*n))) continue;
      weight = power_of_two(*n);
      break;
    }
    if (g == result.first.size()) result.first.push_back(i);
    result.group.push_back(static_cast<std::uint32_t>(g));
    result.weight.push_back(weight);
  }
  return result;
}

// Sign of sum_j base^(x_j) excess_j. It is 0 if it is 0 over every group. Is it 0 only then?
//  - base e, algebraic scores: yes, exponentials of distinct algebraic numbers are linearly independent over the
//    algebraic numbers (Lindemann-Weierstrass), and equality of such scores is decided exactly.
//  - base two, rational scores: yes, 2^(k/n) for 0 <= k < n are linearly independent over the rationals (x^n - 2 is
//    irreducible). Irrational scores: a conjecture.
//  - soft-cap, computed angles, transcendental factors: equal groups still come from equal arguments; a conjecture.
// Where the answer is yes, refinement ends where this rule says no; elsewhere it may reach its cap. Under base two one
// group alone gives the sign, where terms are too small for any precision.
Standing ExactSoftmax::weighted_sum(const TermGroups& groups, const std::vector<Rational>& excess) const {
  std::vector<Rational> sums(groups.first.size(), Rational(0));
  for (std::size_t i = 0; i < excess.size(); ++i) sums[groups.group[i]] += groups.weight[i] * excess[i];
  if (sums.size() == 1 && values_.terms.softmax.base == QKCTS_BASE_TWO) return standing(sums[0].sign());
  for (const Rational& sum : sums)
    if (sum.sign() != 0) return Standing::unknown;
  return Standing::equal;
}

// o - t = sum_j w_j (v_j - t) / sum_j w_j over the terms, with v = 0 at a sink of either form.
Standing ExactSoftmax::output(const RowPlace& place, const TermGroups& groups, std::int64_t d, const Rational& t) {
  if (!values_.given.probs.empty()) return output_of_given(place, groups, d, t);
  if (values_.v.transforms()) return algebraic_output(place, groups, d, t);
  std::vector<Rational> excess;
  for (std::size_t i = 0; i < groups.group.size(); ++i) {
    const std::int64_t key = key_of(place, i);
    const Rational v(key < 0 ? 0.0 : values_.v.row(values_.k_row(place.b, place.h, key))[static_cast<std::size_t>(d)]);
    excess.push_back(v - t);
  }
  return weighted_sum(groups, excess);
}

// From probabilities p~ at a point of their own: A = sum p~_j v_j, and under a post-scale sink
// o - t = (S (A - t) - e^z t) / (S + e^z) with S = sum e^(x_j), which the groups decide as above. An algebraic A is
// compared with t alone, and with the sink refused.
Standing ExactSoftmax::output_of_given(const RowPlace& place, const TermGroups& groups, std::int64_t d,
                                       const Rational& t) {
  const bool is_rational = !values_.v.transforms() || !values_.v.given.normed.empty();
  const bool scales = values_.terms.softmax.sink == QKCTS_SINK_POST_SCALE;
  LinearRoots sum;
  Rational total(-t);
  for (std::size_t j = 0; j < place.visible.size(); ++j) {
    const Rational p(values_.given.probs[j]);
    const RootSum v = value(place, place.visible[j], d);
    if (is_rational) total += p * v.rational().value();
    if (!is_rational && !sum.add(v, p)) return Standing::unknown;
  }
  if (!is_rational) {
    sum.add(Rational(-t), Rational(1));
    return sum.is_zero() && !scales ? Standing::equal : Standing::unknown;
  }
  if (!scales) return standing(total.sign());
  std::vector<Rational> excess(place.visible.size(), total);
  excess.push_back(Rational(-t));
  return weighted_sum(groups, excess);
}

// v^ of a key.
RootSum ExactSoftmax::value(const RowPlace& place, std::int64_t key, std::int64_t d) {
  const std::int64_t row = values_.k_row(place.b, place.h, key);
  if (!values_.v.transforms()) return RootSum(Rational(values_.v.row(row)[static_cast<std::size_t>(d)]));
  return scores_.operand(Side::value, row).entry(static_cast<std::size_t>(d));
}

// The same where the v_j are algebraic. It is 0 if it is 0 over every group, which square roots decide. Only then?
//  - base e, algebraic scores: yes, by Lindemann-Weierstrass as above, whose coefficients may be algebraic.
//  - base two: no. 2^(1/2) is algebraic, so roots in v may cancel against weights of another group; such a case is
//    refused.
// One visible key alone is v^ itself, and is compared.
Standing ExactSoftmax::algebraic_output(const RowPlace& place, const TermGroups& groups, std::int64_t d,
                                        const Rational& t) {
  if (groups.group.size() == 1) return standing(value(place, place.visible[0], d), t);
  std::vector<LinearRoots> sums(groups.first.size());
  for (std::size_t i = 0; i < groups.group.size(); ++i) {
    LinearRoots& sum = sums[groups.group[i]];
    sum.add(Rational(-t) * groups.weight[i], Rational(1));
    const std::int64_t key = key_of(place, i);
    if (key >= 0 && !sum.add(value(place, key, d), groups.weight[i])) return Standing::unknown;
  }
  for (const LinearRoots& sum : sums)
    if (!sum.is_zero()) return Standing::unknown;
  return Standing::equal;
}

// Algebraic: where it is not t, refinement ends. (At a point `probs` the weights are RN(1/Lk) in place of 1/Lk.)
Standing ExactSoftmax::mean(const RowPlace& place, std::int64_t d, const Rational& t) {
  const Rational weight =
      values_.given_uniform ? Rational(*values_.given_uniform) : Rational(1) / Rational(values_.shape.k_len);
  LinearRoots sum;
  for (std::int64_t key = 0; key < values_.shape.k_len; ++key) {
    const ExactVector& v = scores_.operand(Side::value, values_.k_row(place.b, place.h, key));
    if (!sum.add(v.entry(static_cast<std::size_t>(d)), weight)) return Standing::unknown;
  }
  sum.add(Rational(-t), Rational(1));
  return sum.is_zero() ? Standing::equal : Standing::unknown;
}

// p_j - t = sum_k w_k ([k = j] - t) / sum_k w_k. In base e it is rational only as 1/n, which is representable or, below
// the smallest number of a narrow format, a midpoint.
Standing ExactSoftmax::probability(const RowPlace& place, const TermGroups& groups, std::size_t term,
                                   const Rational& t) const {
  const std::size_t terms = place.visible.size() + (has_column() ? 1 : 0);
  std::vector<Rational> excess(terms, Rational(-t));
  excess[term] += Rational(1);
  return weighted_sum(groups, excess);
}

// One term: lse is its score. More: it is larger than every score, which decides a dominant score that stands on a
// boundary itself.
//  - base e for both: it never equals a rational t with two terms or more if the scores are algebraic: e^t = sum e^x
//    would, by Lindemann-Weierstrass, need all x = t and then one term only.
//  - base two for both: of the scores that differ from t by whole numbers the sum of 2^(x - t) is rational and compares
//    with 1. Rational scores that do not are independent of 2^t, and being positive cannot cancel: no equality.
//  - different bases: t = 0 is the same in both. For any other t one side would be a power of e, the other (for
//    rational scores) algebraic: no equality. Scores of other kinds: a conjecture.
Standing ExactSoftmax::lse(const RowPlace& place, std::uint32_t largest, const TermGroups& groups,
                           const TermDistances& distances, const Rational& t) {
  const qkcts_softmax& terms = values_.terms.softmax;
  if (terms.base != terms.lse_base && t.sign() != 0) return Standing::unknown;
  const Standing of_largest = scores_.score(QKCTS_STAGE_MASKED, place, largest, t);
  if (place.visible.size() == 1 && !has_column()) return of_largest;
  if (of_largest == Standing::equal || of_largest == Standing::above) return Standing::above;
  if (has_column() && Rational(values_.sink(place.h)) >= t) return Standing::above;
  if (terms.base == QKCTS_BASE_E) return Standing::unknown;
  const std::size_t count = place.visible.size() + (has_column() ? 1 : 0);
  std::vector<Rational> sums(groups.first.size(), Rational(0));
  std::size_t used = 0;  // groups with a term that counts
  for (std::size_t i = 0; i < count; ++i) {
    if (sums[groups.group[i]].sign() == 0) ++used;
    sums[groups.group[i]] += groups.weight[i];
  }
  for (std::size_t g = 0; g < sums.size(); ++g) {
    const std::optional<std::int64_t> n = distances.from(groups.first[g], t);
    if (sums[g].sign() == 0 || !n || std::abs(*n) > largest_exponent) continue;
    const std::int64_t key = key_of(place, groups.first[g]);
    const bool whole = key < 0 ? Rational(values_.sink(place.h)) == Rational(t + Rational(*n))
                               : scores_.score(QKCTS_STAGE_MASKED, place, key, t + Rational(*n)) == Standing::equal;
    if (!whole) continue;
    const Rational sum = sums[g] * power_of_two(*n);  // sum of 2^(x - t) over the group
    if (used == 1) return standing(Rational(sum - Rational(1)).sign());
    if (sum >= Rational(1)) return Standing::above;
  }
  return Standing::unknown;
}

const Rational& ExactSoftmax::column_mean(std::int64_t b, std::int64_t kv_head, std::int64_t d) {
  const qkcts_shape& shape = values_.shape;
  const std::int64_t plane = b * shape.kv_heads + kv_head;
  const auto [place, is_new] = means_.try_emplace(plane * shape.v_head_dim + d);
  if (is_new) {
    Rational sum(0);
    for (std::int64_t key = 0; key < shape.k_len; ++key) {
      const double entry = values_.v.row(plane * shape.k_len + key)[static_cast<std::size_t>(d)];
      if (!std::isfinite(entry))
        throw InputError(fmt::format("case {}: mask.empty_row uniform takes the mean of all v, but v of key {} is {}",
                                     values_.input.slug, key, entry));
      sum += Rational(entry);
    }
    place->second = sum / Rational(shape.k_len);
  }
  return place->second;
}

}  // namespace qkcts
