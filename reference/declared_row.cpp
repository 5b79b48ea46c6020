// SPDX-License-Identifier: Apache-2.0
#include "reference/declared_row.hpp"

#include <functional>
#include <limits>

#include "reference/refusal.hpp"
#include "reference/row_rules.hpp"

namespace qkcts {

// The points of this row that the contract leaves open: keys that hold nothing and fixed numbers are not among them.
std::vector<ElementPlace> DeclaredRows::elements(qkcts_stage stage, std::size_t row) const {
  const RowPlace& place = rows_[row];
  const auto r = static_cast<std::int64_t>(row);
  std::vector<ElementPlace> result;
  if (stage == QKCTS_STAGE_PROBS)
    for (const std::uint32_t key : place.visible) result.push_back({stage, r, key});
  if (stage == QKCTS_STAGE_OUTPUT && (!place.visible.empty() || values_.means_normed_values()))
    for (std::int64_t d = 0; d < values_.shape.v_head_dim; ++d) result.push_back({stage, r, d});
  if (stage == QKCTS_STAGE_SCORES || stage == QKCTS_STAGE_CAPPED)
    for (std::int64_t key = 0; key < values_.shape.k_len; ++key) {
      if (values_.is_excluded(place.b, key)) continue;
      if (stage == QKCTS_STAGE_CAPPED && has_minus_infinite_bias(values_, place, key)) continue;
      result.push_back({stage, r, key});
    }
  return result;
}

// <q^, k^> of every key that has a score. It is a sum of products of square roots of rationals (ExactCases::product),
// or transcendental where it holds lanes that a computed rotation has turned.
void DeclaredRows::decide_products(const DeclaredPoint& point, std::size_t row) {
  const RowPlace& place = rows_[row];
  const std::vector<ElementPlace> open = elements(QKCTS_STAGE_SCORES, row);
  if (open.empty()) return;
  PointDecision decision(
      values_, point, open.size(), [&](std::size_t i) { return place_text(values_, open[i]); },
      [&](std::size_t i, const Rational& t) { return scores_.dot_product(place, open[i].column, t); });
  const bool done = levels_.until([&]<std::size_t L>() {
    RowEnclosures<level_digits[L]> found;
    levels_.at<L>().evaluate_row(row, KeySet::all, found, RowPart::products);
    if (!found.usable) return false;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const auto& x = found.scores[static_cast<std::size_t>(open[i].column)];
      decision.decide(i, lower(x), upper(x),
                      L == 0 ? PointDecision::Ask::enclosure_only : PointDecision::Ask::rule_too);
    }
    return decision.is_complete();
  });
  if (!done) decision.refuse(levels_.highest_bits());
  std::vector<double> numbers(static_cast<std::size_t>(values_.shape.k_len), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < open.size(); ++i) {
    numbers[static_cast<std::size_t>(open[i].column)] = decision.at(i).after;
    recorder_.set_product(open[i], decision.at(i).before);
  }
  values_.given.products = std::move(numbers);
}

void DeclaredRows::decide_stage(qkcts_stage stage, const DeclaredPoint& point, std::size_t row,
                                std::vector<double>& numbers) {
  const RowPlace& place = rows_[row];
  const std::vector<ElementPlace> open = elements(stage, row);
  if (open.empty()) return;
  std::function<Standing(const ElementPlace&, const Rational&)> rule;  // of the precision at hand
  PointDecision decision(
      values_, point, open.size(), [&](std::size_t i) { return place_text(values_, open[i]); },
      [&](std::size_t i, const Rational& t) { return rule(open[i], t); });
  const bool until_scores = stage == QKCTS_STAGE_SCORES || stage == QKCTS_STAGE_CAPPED;
  const bool done = levels_.until([&]<std::size_t L>() {
    RowEnclosures<level_digits[L]> found;
    levels_.at<L>().evaluate_row(row, until_scores ? KeySet::all : KeySet::visible, found,
                                 until_scores ? RowPart::scores : RowPart::all);
    if (!found.usable) return false;
    RowRules<level_digits[L]> rules(values_, scores_, softmax_, place, found);
    rule = [&rules](const ElementPlace& element, const Rational& t) { return rules.standing(element, t); };
    for (std::size_t i = 0; i < open.size(); ++i) {
      const auto& x = rules.enclosure(open[i]);
      decision.decide(i, lower(x), upper(x),
                      L == 0 ? PointDecision::Ask::enclosure_only : PointDecision::Ask::rule_too);
    }
    return decision.is_complete();
  });
  if (!done) decision.refuse(levels_.highest_bits());

  const std::int64_t length = row_length(stage, values_.shape);
  const bool by_visible_key = stage == QKCTS_STAGE_PROBS;
  numbers.assign(by_visible_key ? open.size() : static_cast<std::size_t>(length),
                 std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < open.size(); ++i) {
    const auto column = static_cast<std::size_t>(open[i].column);
    numbers[by_visible_key ? i : column] = decision.at(i).after;
    recorder_.set_before(open[i], decision.at(i).before);
  }
}

void DeclaredRows::decide_uniform() {
  if (!points_.probs || values_.terms.mask.empty_row != QKCTS_EMPTY_UNIFORM) return;
  using Number = Enclosure<level_digits.back()>;  // 1/Lk is on no boundary, or it is exact
  const Number share = Number(1) / static_cast<unsigned long>(values_.shape.k_len);
  values_.given_uniform = round_at(*points_.probs, lower(share), upper(share)).value().after;
}

void DeclaredRows::decide(std::size_t row) {
  GivenRow& given = values_.given;
  given = {};
  if (points_.product) decide_products(*points_.product, row);
  if (points_.scores) decide_stage(QKCTS_STAGE_SCORES, *points_.scores, row, given.scores);
  if (points_.capped) decide_stage(QKCTS_STAGE_CAPPED, *points_.capped, row, given.capped);
  if (points_.probs) decide_stage(QKCTS_STAGE_PROBS, *points_.probs, row, given.probs);
  if (points_.output) decide_stage(QKCTS_STAGE_OUTPUT, *points_.output, row, given.output);
}

}  // namespace qkcts
