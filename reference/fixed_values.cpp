// SPDX-License-Identifier: Apache-2.0
#include "reference/fixed_values.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/refusal.hpp"
#include "reference/rounding_point.hpp"
#include "reference/score.hpp"
#include "reference/softmax.hpp"

namespace qkcts {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

std::int64_t visible_index(const RowPlace& place, std::int64_t key) {
  const auto at = std::lower_bound(place.visible.begin(), place.visible.end(), static_cast<std::uint32_t>(key));
  if (at == place.visible.end() || *at != static_cast<std::uint32_t>(key)) return -1;
  return at - place.visible.begin();
}

bool has_minus_infinite_bias(const CaseValues& values, const RowPlace& place, std::int64_t key) {
  return values.has_bias() && std::isinf(values.bias(place.b, place.h, place.qq, key));
}

void FixedValues::fix_excluded_vector(qkcts_stage stage, std::int64_t row) {
  for (std::int64_t lane = 0; lane < row_length(stage, values_.shape); ++lane)
    recorder_.fix({stage, row, lane}, nan_value, ElementRule::hidden);
}

// A rational whose denominator is not a power of two is on no boundary and at least about 2^-2200 of its size away
// from each; any other that can occur here is represented exactly. So the last level decides, at a rounding point too.
void FixedValues::settle_rational(const ElementPlace& place, const Rational& value, ElementRule rule) {
  Enclosure<level_digits.back()> x = enclosure_of<level_digits.back()>(value);
  if (const std::optional<DeclaredPoint> point = row_point(values_, place.stage)) {
    PointDecision decision(
        values_, *point, 1, [&](std::size_t) { return place_text(values_, place); },
        [](std::size_t, const Rational&) { return Standing::unknown; });
    if (!decision.apply(std::span(&x, 1), PointDecision::Ask::enclosure_only))
      decision.refuse(precision_bits<level_digits.back()>());
    recorder_.set_before(place, decision.at(0).before);
  }
  if (!recorder_.settle(place, lower(x), upper(x), rule))
    refuse(values_, place, precision_bits<level_digits.back()>(), bounds_text(x));
}

void FixedValues::fix_capped_at_minus_infinity(const RowPlace& place, std::int64_t row, std::int64_t key) {
  const ElementPlace capped{QKCTS_STAGE_CAPPED, row, key};
  if (!is_bounded_at_minus_infinity(values_.terms.score)) return recorder_.fix(capped, -infinity, ElementRule::hidden);
  Rational z(-values_.terms.score.softcap);
  if (values_.has_linear_bias()) {
    const LinearBias linear = values_.linear_bias(place.b, place.h, place.qq, key);
    z += Rational(linear.slope) * Rational(linear.steps);
  }
  settle_rational(capped, z, ElementRule::hidden);
}

void FixedValues::fix_hidden_key(const RowPlace& place, std::int64_t row, std::int64_t key) {
  if (values_.exists(QKCTS_STAGE_MASKED)) recorder_.fix({QKCTS_STAGE_MASKED, row, key}, -infinity, ElementRule::hidden);
  if (values_.is_excluded(place.b, key)) {
    recorder_.fix({QKCTS_STAGE_SCORES, row, key}, nan_value, ElementRule::hidden);
    if (values_.exists(QKCTS_STAGE_CAPPED))
      recorder_.fix({QKCTS_STAGE_CAPPED, row, key}, nan_value, ElementRule::hidden);
  }
  const bool empty = place.visible.empty() && values_.terms.softmax.sink != QKCTS_SINK_COLUMN;
  const std::uint32_t policy = values_.terms.mask.empty_row;
  if (empty && policy == QKCTS_EMPTY_UNIFORM) {
    settle_rational({QKCTS_STAGE_PROBS, row, key}, Rational(1) / Rational(values_.shape.k_len), ElementRule::budget);
  } else {
    const bool nan = empty && policy == QKCTS_EMPTY_NAN;
    recorder_.fix({QKCTS_STAGE_PROBS, row, key}, nan ? nan_value : 0.0, ElementRule::exact_clause);
  }
}

// The sink is the whole row: lse is the logarithm of its weight. Where the bases differ that is z ln 2 or z / ln 2,
// transcendental unless z = 0.
void FixedValues::fix_sink_alone(const RowPlace& place, std::int64_t row) {
  const SoftmaxTerms terms = softmax_terms(values_.terms.softmax, values_.sink(place.h));
  using Number = Enclosure<level_digits.back()>;
  const Number lse = in_base(terms.base, terms.lse_base, Number(terms.sink_logit));
  const ElementPlace element{QKCTS_STAGE_LSE, row, 0};
  if (!recorder_.settle(element, lower(lse), upper(lse), ElementRule::budget))
    refuse(values_, element, precision_bits<level_digits.back()>(), bounds_text(lse));
  for (std::int64_t d = 0; d < values_.shape.v_head_dim; ++d)
    recorder_.fix({QKCTS_STAGE_OUTPUT, row, d}, 0.0, ElementRule::exact_clause);
}

void FixedValues::fix_empty_row(const RowPlace& place, std::int64_t row) {
  const std::uint32_t policy = values_.terms.mask.empty_row;
  recorder_.fix({QKCTS_STAGE_LSE, row, 0}, policy == QKCTS_EMPTY_NAN ? nan_value : -infinity,
                ElementRule::exact_clause);
  if (values_.means_normed_values()) return;  // the outputs are left open
  for (std::int64_t d = 0; d < values_.shape.v_head_dim; ++d) {
    const ElementPlace output{QKCTS_STAGE_OUTPUT, row, d};
    if (policy == QKCTS_EMPTY_UNIFORM) {
      Rational mean = softmax_.column_mean(place.b, values_.kv_head(place.h), d);
      if (values_.given_uniform) mean *= Rational(*values_.given_uniform) * Rational(values_.shape.k_len);
      settle_rational(output, mean, ElementRule::budget);
    } else {
      recorder_.fix(output, policy == QKCTS_EMPTY_NAN ? nan_value : 0.0, ElementRule::exact_clause);
    }
  }
}

void FixedValues::fix_row(const RowPlace& place, std::int64_t row) {
  for (std::int64_t key = 0; key < values_.shape.k_len; ++key) {
    if (has_minus_infinite_bias(values_, place, key) && values_.exists(QKCTS_STAGE_CAPPED))
      fix_capped_at_minus_infinity(place, row, key);
    if (visible_index(place, key) < 0) fix_hidden_key(place, row, key);
  }
  if (!place.visible.empty()) return;
  values_.terms.softmax.sink == QKCTS_SINK_COLUMN ? fix_sink_alone(place, row) : fix_empty_row(place, row);
}

}  // namespace qkcts
