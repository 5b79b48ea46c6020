// SPDX-License-Identifier: Apache-2.0
#include "reference/exact_cases.hpp"

#include <fmt/format.h>

#include "reference/norm.hpp"
#include "reference/rope.hpp"

namespace qkcts {
namespace {

Standing standing(int sign_of_difference) {
  if (sign_of_difference == 0) return Standing::equal;
  return sign_of_difference < 0 ? Standing::below : Standing::above;
}

Rational dot(const std::vector<Rational>& x, const std::vector<Rational>& y) {
  Rational sum(0);
  for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// 1 / T, and scale as (rational factor) * sqrt(radicand).
RootSum exact_factor(const CaseValues& values) {
  const qkcts_score& score = values.terms.score;
  const Rational inverse_temperature = score.temperature == 0 ? Rational(1) : Rational(1) / Rational(score.temperature);
  const auto inverse_root = [&](const Rational& n) { return RootSum::square_root(n) * (inverse_temperature / n); };
  switch (score.scale_form) {
    case QKCTS_SCALE_CONSTANT:
      return RootSum(Rational(score.scale_value) * inverse_temperature);
    case QKCTS_SCALE_INV_SQRT_SCALAR:
      return inverse_root(Rational(score.scale_value));
    case QKCTS_SCALE_LEARNED_SCALAR:
      return RootSum(Rational(values.learned_scale) * inverse_temperature);
    default:
      return inverse_root(Rational(values.shape.head_dim));
  }
}

}  // namespace

// The divisor is rational, sqrt(a), or sqrt(a) + eps. Its inverse, with the root made rational:
//   1/sqrt(a) = sqrt(a)/a;   1/(sqrt(a) + eps) = (sqrt(a) - eps)/(a - eps^2), or 1/(2 eps) where a = eps^2.
void ExactCases::divide_by_root(ExactVector& x, const Rational& t, const qkcts_norm& norm, std::int64_t row) const {
  const Rational eps(norm.eps);
  x.addend = 0;
  switch (norm.root) {
    case QKCTS_OUTSIDE_ROOT:
      x.radicand = t;
      x.addend = eps;
      break;
    case QKCTS_MAX_ROOT:  // max(sqrt(t), eps): compare the squares
      x.radicand = t >= Rational(eps * eps) ? t : Rational(0);
      if (x.radicand.sign() == 0) x.addend = eps;
      break;
    case QKCTS_MAX_INSIDE:
      x.radicand = t >= eps ? t : eps;
      break;
    default:
      x.radicand = t + eps;
  }
  if (x.radicand.sign() == 0 && x.addend.sign() == 0) {
    throw InputError(
        fmt::format("case {}: a norm divides 0 by 0 in row {} (vector without spread, eps 0); give eps > 0 "
                    "or other values",
                    values_.input.slug, row));
  }
  const Rational difference = x.radicand - x.addend * x.addend;
  if (x.radicand.sign() == 0) {
    x.inverse = RootSum(Rational(1) / x.addend);
  } else if (difference.sign() == 0) {
    x.inverse = RootSum(Rational(1) / Rational(x.addend * Rational(2)));
  } else {
    x.inverse = (RootSum::square_root(x.radicand) - RootSum(x.addend)) * Rational(Rational(1) / difference);
  }
}

ExactCases::ExactVector ExactCases::make(Side which, std::int64_t row, Upto upto) const {
  const SideValues& side = values_.side(which);
  const qkcts_rope& rope = values_.terms.rope;
  const auto width = static_cast<std::size_t>(side.head_dim);
  const std::int64_t group = side.group_of(row);
  std::size_t own = 0;  // where this row stands in its group
  ExactVector x;
  for (std::int64_t member = 0; member < side.heads_in_group(); ++member) {
    const std::int64_t member_row = side.row_of(group, member);
    if (member_row == row) own = x.numerator.size();
    for (const double entry : side.row(member_row)) x.numerator.emplace_back(entry);
    if (rope.order == QKCTS_ROPE_THEN_NORM)
      rotate(std::span(x.numerator).last(width), values_, side.position_of(member_row));
  }
  x.inverse = RootSum(Rational(1));
  const bool normed = side.norm.applied != 0 && upto != Upto::rotation_before_norm;
  if (normed) {
    center(x.numerator, side.norm);
    divide_by_root(x, statistic(x.numerator, side.norm), side.norm, row);
    NormParameters<Rational> parameters = norm_parameters<Rational>(side, group);
    for (std::size_t i = 0; i < parameters.factor.size(); ++i) x.numerator[i] *= parameters.factor[i];
    x.offset = std::move(parameters.offset);
  }
  const auto keep_own = [&](std::vector<Rational>& all) {
    if (!all.empty())
      all = std::vector<Rational>(all.begin() + static_cast<std::ptrdiff_t>(own),
                                  all.begin() + static_cast<std::ptrdiff_t>(own + width));
  };
  keep_own(x.numerator);
  keep_own(x.offset);
  if (rope.order == QKCTS_NORM_THEN_ROPE && upto == Upto::last) {
    rotate(std::span(x.numerator), values_, side.position_of(row));
    if (!x.offset.empty()) rotate(std::span(x.offset), values_, side.position_of(row));
  }
  return x;
}

const ExactCases::ExactVector& ExactCases::operand(Side side, std::int64_t row) {
  std::map<std::int64_t, ExactVector>& cache = operands_[static_cast<int>(side)];
  const auto found = cache.find(row);
  if (found != cache.end()) return found->second;
  return cache.emplace(row, make(side, row, Upto::last)).first->second;
}

// z - t = numerator / divisor + (offset - t), a RootSum.
Standing ExactCases::group_entry(Side side, qkcts_stage stage, std::int64_t row, std::int64_t lane, const Rational& t) {
  const bool is_norm = stage == QKCTS_STAGE_Q_NORM || stage == QKCTS_STAGE_K_NORM;
  const bool norm_last = values_.terms.rope.order != QKCTS_NORM_THEN_ROPE;
  ExactVector made;
  const ExactVector* x = nullptr;
  if (is_norm == norm_last) {
    x = &operand(side, row);
  } else {
    made = make(side, row, is_norm ? Upto::norm : Upto::rotation_before_norm);
    x = &made;
  }
  const auto i = static_cast<std::size_t>(lane);
  const Rational rest = (x->offset.empty() ? Rational(0) : x->offset[i]) - t;
  return standing((x->inverse * x->numerator[i] + RootSum(rest)).sign());
}

// <N/d + B, M/e + C> = <N,M>/(d e) + <N,C>/d + <B,M>/e + <B,C>.
RootSum ExactCases::product(const RowPlace& place, std::int64_t key) {
  const qkcts_shape& shape = values_.shape;
  const ExactVector& q = operand(Side::query, (place.b * shape.q_heads + place.h) * shape.q_len + place.qq);
  const ExactVector& k = operand(Side::key, values_.k_row(place.b, place.h, key));
  return q.inverse * k.inverse * dot(q.numerator, k.numerator) + q.inverse * dot(q.numerator, k.offset) +
         k.inverse * dot(q.offset, k.numerator) + RootSum(dot(q.offset, k.offset));
}

double ExactCases::finite_bias(const RowPlace& place, std::int64_t key) const {
  return values_.has_bias() ? values_.bias(place.b, place.h, place.qq, key) : 0.0;
}

RootSum ExactCases::argument(const RowPlace& place, std::int64_t key) {
  RootSum s = exact_factor(values_) * product(place, key);
  const qkcts_score& terms = values_.terms.score;
  const bool inside = terms.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP ||
                      (terms.bias_order == QKCTS_BIAS_AFTER_SOFTCAP && terms.softcap == 0);
  return inside ? s + RootSum(Rational(finite_bias(place, key))) : s;
}

// Without a soft-cap the value is a RootSum. With one it is z = c tanh(x/c) + b for a RootSum x:
//  - x = 0: z = b.
//  - x != 0: tanh of a non-zero algebraic number is transcendental (Lindemann-Weierstrass), so z is no boundary at all;
//    and 0 < |z - b| < c with the sign of x, which places z where tanh is so close to 1 that no precision would.
Standing ExactCases::score(qkcts_stage stage, const RowPlace& place, std::int64_t key, const Rational& t) {
  const qkcts_score& terms = values_.terms.score;
  if (stage == QKCTS_STAGE_SCORES || !values_.exists(QKCTS_STAGE_CAPPED))
    return standing((exact_factor(values_) * product(place, key) - RootSum(t)).sign());
  const RootSum x = argument(place, key);
  if (terms.softcap == 0) return standing((x - RootSum(t)).sign());
  const Rational b(terms.bias_order == QKCTS_BIAS_AFTER_SOFTCAP ? finite_bias(place, key) : 0.0);
  const Rational cap(terms.softcap);
  const Rational rest = t - b;
  const int sign = x.sign();
  if (sign == 0) return standing(-rest.sign());
  if (sign > 0 && rest >= cap) return Standing::below;
  if (sign > 0 && rest.sign() <= 0) return Standing::above;
  if (sign < 0 && rest <= Rational(-cap)) return Standing::above;
  if (sign < 0 && rest.sign() >= 0) return Standing::below;
  return Standing::unknown;
}

// One visible key: lse is its score. More: log sum e^{s_j} > s_j for each j, which decides a dominant score that stands
// on a boundary itself. It never equals a rational t with two keys or more if the scores are algebraic: e^t = sum
// e^{s_j} would, by Lindemann-Weierstrass, need all s_j = t and then one key only.
Standing ExactCases::lse(const RowPlace& place, std::uint32_t largest, const Rational& t) {
  const Standing of_largest = score(QKCTS_STAGE_MASKED, place, largest, t);
  if (place.visible.size() == 1) return of_largest;
  const bool at_least = of_largest == Standing::equal || of_largest == Standing::above;
  return at_least ? Standing::above : Standing::unknown;
}

bool ExactCases::same_score(const RowPlace& place, std::int64_t key, std::int64_t other) {
  const bool outer_bias = values_.terms.score.bias_order == QKCTS_BIAS_AFTER_SOFTCAP && values_.terms.score.softcap > 0;
  if (outer_bias && finite_bias(place, key) != finite_bias(place, other)) return false;
  const ExactVector& x = operand(Side::key, values_.k_row(place.b, place.h, key));
  const ExactVector& y = operand(Side::key, values_.k_row(place.b, place.h, other));
  if (finite_bias(place, key) == finite_bias(place, other) && x.numerator == y.numerator && x.offset == y.offset &&
      x.radicand == y.radicand && x.addend == y.addend)
    return true;
  return (argument(place, key) - argument(place, other)).sign() == 0;
}

std::vector<std::uint32_t> ExactCases::equal_groups(const RowPlace& place,
                                                    const std::function<bool(std::size_t, std::size_t)>& may_be_equal) {
  std::vector<std::uint32_t> groups(place.visible.size());
  std::vector<std::size_t> first;  // of each group
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::size_t g = 0;
    while (g < first.size() &&
           !(may_be_equal(i, first[g]) && same_score(place, place.visible[i], place.visible[first[g]])))
      ++g;
    if (g == first.size()) first.push_back(i);
    groups[i] = static_cast<std::uint32_t>(g);
  }
  return groups;
}

// o - t = sum_j e^{s_j} (v_j - t) / sum_j e^{s_j}. It is 0 if every group of equal scores has the mean t. For algebraic
// scores (no soft-cap) it is 0 only then, because exponentials of distinct algebraic numbers are linearly independent
// over the algebraic numbers (Lindemann-Weierstrass); so refinement ends where this rule says no. With a soft-cap that
// last step is a conjecture, and refinement may reach its cap.
Standing ExactCases::output(const RowPlace& place, std::span<const std::uint32_t> groups, std::int64_t d,
                            const Rational& t) {
  const qkcts_shape& shape = values_.shape;
  const std::int64_t plane = (place.b * shape.kv_heads + values_.kv_head(place.h)) * shape.k_len;
  std::vector<Rational> excess(groups.size(), Rational(0));  // sum over a group of v - t; groups are at most the keys
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::int64_t entry = (plane + place.visible[i]) * shape.v_head_dim + d;
    excess[groups[i]] += Rational(values_.v[static_cast<std::size_t>(entry)]) - t;
  }
  for (const Rational& e : excess)
    if (e.sign() != 0) return Standing::unknown;
  return Standing::equal;
}

const Rational& ExactCases::column_mean(std::int64_t b, std::int64_t kv_head, std::int64_t d) {
  const qkcts_shape& shape = values_.shape;
  const std::int64_t plane = b * shape.kv_heads + kv_head;
  const auto [place, is_new] = means_.try_emplace(plane * shape.v_head_dim + d);
  if (is_new) {
    Rational sum(0);
    for (std::int64_t key = 0; key < shape.k_len; ++key)
      sum += Rational(values_.v[static_cast<std::size_t>((plane * shape.k_len + key) * shape.v_head_dim + d)]);
    place->second = sum / Rational(shape.k_len);
  }
  return place->second;
}

}  // namespace qkcts
