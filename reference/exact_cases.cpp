// SPDX-License-Identifier: Apache-2.0
#include "reference/exact_cases.hpp"

#include <algorithm>
#include <span>

namespace qkcts {

Standing standing(int sign_of_difference) {
  if (sign_of_difference == 0) return Standing::equal;
  return sign_of_difference < 0 ? Standing::below : Standing::above;
}

// 1 / T, and scale as (rational factor) * sqrt(radicand). Transcendental by Lindemann: exp(r) for a rational r that is
// not 0, and 1 + alpha ln r for a rational r > 1 and alpha > 0. (Of their product it is a conjecture.)
ExactCases::Factor ExactCases::factor(const RowPlace& place) const {
  if (!values_.q.given.scaled.empty() || !values_.given.scores.empty()) return {RootSum(Rational(1)), false};
  const qkcts_score& score = values_.terms.score;
  const qkcts_logits& logits = values_.terms.logits;
  Factor result;
  result.has_transcendental = logits.query_alpha > 0 && !values_.query_ratio(place.b, place.qq).is_one();
  const Rational inverse_temperature = score.temperature == 0 ? Rational(1) : Rational(1) / Rational(score.temperature);
  const auto inverse_root = [&](const Rational& n) { return RootSum::square_root(n) * (inverse_temperature / n); };
  switch (score.scale_form) {
    case QKCTS_SCALE_CONSTANT:
      result.algebraic = RootSum(Rational(score.scale_value) * inverse_temperature);
      break;
    case QKCTS_SCALE_INV_SQRT_SCALAR:
      result.algebraic = inverse_root(Rational(score.scale_value));
      break;
    case QKCTS_SCALE_LEARNED_SCALAR: {
      const double learned = values_.learned_scale(place.h);
      const bool is_logarithm = logits.scale_exp_cap != 0;
      if (is_logarithm && std::min(learned, logits.scale_exp_cap) != 0) result.has_transcendental = true;
      result.algebraic = RootSum((is_logarithm ? Rational(1) : Rational(learned)) * inverse_temperature);
      break;
    }
    default:
      result.algebraic = inverse_root(Rational(values_.shape.head_dim));
  }
  return result;
}

const ExactVector& ExactCases::vector(Side side, std::int64_t row, Upto upto) {
  auto& made = vectors_[static_cast<int>(side)];
  const auto found = made.find({row, upto});
  if (found != made.end()) return found->second;
  return made.emplace(std::pair(row, upto), exact_vector(values_, side, row, upto)).first->second;
}

// z - t is a RootSum. An open lane is a cos(w) + b sin(w) (over a divisor, plus an offset) with algebraic a, b, w, not
// both of a and b and not w being 0: transcendental by Lindemann-Weierstrass, so refinement ends. (Where pi or
// logarithms enter the frequencies, that is a conjecture.)
Standing ExactCases::group_entry(Side side, qkcts_stage stage, std::int64_t row, std::int64_t lane, const Rational& t) {
  const ExactVector& x = vector(side, row, upto_stage(values_.side(side), side, stage));
  const auto i = static_cast<std::size_t>(lane);
  return x.is_open(i) ? Standing::unknown : standing((x.entry(i) - RootSum(t)).sign());
}

// Open lanes drop out where the other vector is 0, and turn back where both vectors turned by the same angles.
// Elsewhere the product is a non-trivial sum of cosines and sines of algebraic numbers, and transcendental.
std::optional<RootSum> ExactCases::product(const RowPlace& place, std::int64_t key) {
  if (!values_.given.scores.empty()) return RootSum(Rational(values_.given.scores[static_cast<std::size_t>(key)]));
  if (!values_.given.products.empty()) return RootSum(Rational(values_.given.products[static_cast<std::size_t>(key)]));
  const qkcts_shape& shape = values_.shape;
  const std::int64_t q_row = (place.b * shape.q_heads + place.h) * shape.q_len + place.qq;
  const std::int64_t k_row = values_.k_row(place.b, place.h, key);
  const ExactVector& q = operand(Side::query, q_row);
  const ExactVector& k = operand(Side::key, k_row);
  if (values_.frequencies) {
    const bool turn_back = q.rigid && k.rigid && values_.q.position_of(q_row) == values_.k.position_of(k_row);
    for (std::size_t i = 0; i < q.size() && !turn_back; ++i)
      if ((q.is_open(i) && (k.is_open(i) || !k.is_zero(i))) || (k.is_open(i) && !q.is_zero(i))) return std::nullopt;
  }
  return dot(q, k);
}

Standing ExactCases::scaled_q(const RowPlace& place, std::int64_t lane, const Rational& t) {
  const ExactVector& q =
      operand(Side::query, (place.b * values_.shape.q_heads + place.h) * values_.shape.q_len + place.qq);
  if (q.is_open(static_cast<std::size_t>(lane))) return Standing::unknown;
  const Factor multiplier = factor(place);
  const RootSum z = multiplier.algebraic * q.entry(static_cast<std::size_t>(lane));
  if (!multiplier.has_transcendental) return standing(z, t);
  return z.sign() == 0 ? standing(-t.sign()) : Standing::unknown;
}

ExactCases::Score ExactCases::seen(const RowPlace& place, std::int64_t key) {
  Score result;
  if (key < 0) {
    result.product.emplace();
    result.outer = Rational(values_.sink(place.h));
    return result;
  }
  if (!values_.given.capped.empty()) {
    result.product.emplace();
    result.outer = Rational(values_.given.capped[static_cast<std::size_t>(key)]);
    return result;
  }
  if (const std::optional<RootSum> plain = product(place, key)) result.product = factor(place).algebraic * *plain;
  const qkcts_score& terms = values_.terms.score;
  if (values_.has_bias()) {
    const bool inside = terms.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP && terms.softcap > 0;
    (inside ? result.inner : result.outer) += Rational(values_.bias(place.b, place.h, place.qq, key));
  }
  if (values_.has_linear_bias()) {
    const LinearBias linear = values_.linear_bias(place.b, place.h, place.qq, key);
    result.outer += Rational(linear.slope) * Rational(linear.steps);
  }
  return result;
}

// With z = cap(g x + inner) + outer, x algebraic:
//  - no soft-cap, g = 1: z is a RootSum. g transcendental: z is outer where x = 0, and else no boundary at all.
//  - soft-cap: z = outer where the argument is 0. Else 0 < |z - outer| < c with the sign of the argument, which places
//    z where tanh is so close to 1 that no precision would; and it is no boundary, because tanh of a non-zero
//    algebraic number is transcendental (Lindemann-Weierstrass; with g in the argument that is a conjecture).
Standing ExactCases::score(qkcts_stage stage, const RowPlace& place, std::int64_t key, const Rational& t) {
  Score z;
  if (stage != QKCTS_STAGE_SCORES && values_.exists(QKCTS_STAGE_CAPPED)) {
    z = seen(place, key);
  } else if (const std::optional<RootSum> plain = product(place, key)) {
    z.product = factor(place).algebraic * *plain;
  }
  if (!z.product) return Standing::unknown;
  const bool open = factor(place).has_transcendental;
  const double cap = stage == QKCTS_STAGE_SCORES ? 0.0 : values_.terms.score.softcap;
  const Rational rest = t - z.outer;
  if (cap == 0) {
    if (!open) return standing((*z.product - RootSum(rest)).sign());
    return z.product->sign() == 0 ? standing(-rest.sign()) : Standing::unknown;
  }
  int sign = open ? z.product->sign() : (*z.product + RootSum(z.inner)).sign();
  if (open && z.inner.sign() != 0) {
    if (sign == -z.inner.sign()) return Standing::unknown;
    sign = z.inner.sign();
  }
  const Rational bound(cap);
  if (sign == 0) return standing(-rest.sign());
  if (sign > 0 && rest >= bound) return Standing::below;
  if (sign > 0 && rest.sign() <= 0) return Standing::above;
  if (sign < 0 && rest <= Rational(-bound)) return Standing::above;
  if (sign < 0 && rest.sign() >= 0) return Standing::below;
  return Standing::unknown;
}

bool ExactCases::same_input(const RowPlace& place, std::int64_t key, std::int64_t other) const {
  const SideValues& k = values_.k;
  const std::int64_t x_row = values_.k_row(place.b, place.h, key);
  const std::int64_t y_row = values_.k_row(place.b, place.h, other);
  if (k.rope_order != QKCTS_ROPE_NONE && k.position_of(x_row) != k.position_of(y_row)) return false;
  const auto same = [](std::span<const double> x, std::span<const double> y) {
    return std::equal(x.begin(), x.end(), y.begin());
  };
  if (const Projection* projection = values_.projection(Side::key))
    return same(projection->source.row(k.token_of(x_row)), projection->source.row(k.token_of(y_row)));
  for (std::int64_t member = 0; member < k.heads_in_group(); ++member)
    if (!same(k.row(k.row_of(k.group_of(x_row), member)), k.row(k.row_of(k.group_of(y_row), member)))) return false;
  return true;
}

// Under a soft-cap, and beside a transcendental factor, only what is outside may differ; elsewhere the difference is a
// RootSum. Completeness is the business of exact_softmax.cpp: what is not proven here counts as different.
bool ExactCases::differ_by(const RowPlace& place, std::int64_t key, std::int64_t other, const Rational& difference) {
  const Score x = seen(place, key);
  const Score y = seen(place, other);
  const Rational outer = x.outer - y.outer - difference;
  const bool both_keys = key >= 0 && other >= 0;
  if (both_keys && outer.sign() == 0 && x.inner == y.inner && same_input(place, key, other)) return true;
  if (!x.product || !y.product) return false;
  const RootSum algebraic = *x.product - *y.product;
  const bool open = factor(place).has_transcendental;
  if (values_.terms.score.softcap == 0)
    return open ? outer.sign() == 0 && algebraic.sign() == 0 : (algebraic + RootSum(outer)).sign() == 0;
  if (outer.sign() != 0) return false;
  return open ? x.inner == y.inner && algebraic.sign() == 0
              : (algebraic + RootSum(Rational(x.inner - y.inner))).sign() == 0;
}

}  // namespace qkcts
