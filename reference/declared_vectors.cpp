// SPDX-License-Identifier: Apache-2.0
#include "reference/declared_vectors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "reference/declared_norm.hpp"
#include "reference/declared_rotation.hpp"
#include "reference/refusal.hpp"

namespace qkcts {
namespace {

using Ask = PointDecision::Ask;

template <std::size_t L>
constexpr Ask ask = L == 0 ? Ask::enclosure_only : Ask::rule_too;

constexpr qkcts_stage no_stage = QKCTS_STAGE_COUNT;

}  // namespace

void DeclaredVectors::decide(std::span<const Side> known) {
  const auto is_known = [&](Side which) { return std::find(known.begin(), known.end(), which) != known.end(); };
  for (const Side which : all_sides)
    if (!is_known(which)) decide_side(which);
  const std::optional<DeclaredPoint> point = row_points(values_).scaled_q;
  if (point && !is_known(Side::query)) decide_scaled_q(*point);
}

void DeclaredVectors::decide_side(Side which) {
  const VectorPoints points = vector_points(values_, which);
  if (const VectorPoints input = input_norm_points(values_, which); input.norm) decide_input_norm(which, input);
  const bool rope_first = values_.side(which).rope_order == QKCTS_ROPE_THEN_NORM;
  if (points.projection) decide_projection(which, *points.projection);
  if (points.rope && rope_first) decide_rotation(which, points);
  if (points.norm) decide_norm(which, points);
  if (points.rope && !rope_first) decide_rotation(which, points);
}

// The k and v of a key that no query sees may hold anything; but a mean over all v may want its v, if it is finite.
bool DeclaredVectors::is_excluded(Side which, std::int64_t group) const {
  if (which == Side::query) return false;
  const SideValues& side = values_.side(which);
  const std::int64_t token = side.token_of(side.row_of(group, 0));
  if (!values_.is_excluded(token / side.length, token % side.length)) return false;
  if (which == Side::key || !values_.means_normed_values()) return true;
  for (std::int64_t member = 0; member < side.heads_in_group(); ++member)
    for (const double entry : side.row(side.row_of(group, member)))
      if (!std::isfinite(entry)) return true;
  return false;
}

std::vector<double> DeclaredVectors::no_numbers(Side which) const {
  const SideValues& side = values_.side(which);
  return std::vector<double>(static_cast<std::size_t>(side.batch * side.heads * side.length * side.head_dim),
                             std::numeric_limits<double>::quiet_NaN());
}

qkcts_stage DeclaredVectors::stage_before(Side which, qkcts_stage stage) const {
  qkcts_stage order[] = {proj_stage(which), norm_stage(which), rope_stage(which), no_stage};
  if (values_.side(which).rope_order == QKCTS_ROPE_THEN_NORM) std::swap(order[1], order[2]);
  qkcts_stage before = no_stage;
  for (const qkcts_stage each : order) {
    if (each == stage) return before;
    if (each != no_stage && values_.exists(each)) before = each;
  }
  return before;
}

template <std::size_t L>
std::optional<std::vector<Enclosure<level_digits[L]>>> DeclaredVectors::entries(Side which, std::int64_t group,
                                                                                qkcts_stage after) {
  using Number = Enclosure<level_digits[L]>;
  const SideValues& side = values_.side(which);
  std::vector<Number> x;
  if (after == no_stage) {
    for (std::int64_t member = 0; member < side.heads_in_group(); ++member)
      for (const double entry : side.row(side.row_of(group, member))) x.emplace_back(entry);
    return x;
  }
  GroupEnclosures<level_digits[L]> found = levels_.at<L>().evaluate_group(which, group);
  x = after == proj_stage(which)   ? std::move(found.projected)
      : after == norm_stage(which) ? std::move(found.normed)
                                   : std::move(found.roped);
  if (!x.empty()) return x;
  // Throws if a root on the way is exactly 0.
  if (L > 0) static_cast<void>(exact_vector(values_, which, side.row_of(group, 0), upto_stage(side, which, after)));
  return std::nullopt;
}

// x^ of every token whose vectors are wanted.
void DeclaredVectors::decide_input_norm(Side which, const VectorPoints& points) {
  SideValues& source = values_.projection(which)->source;
  const auto width = static_cast<std::size_t>(source.head_dim);
  std::vector<double> numbers(static_cast<std::size_t>(source.batch * source.length) * width,
                              std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t token = 0; token < source.batch * source.length; ++token) {
    if (which == Side::key && values_.is_excluded(token / source.length, token % source.length)) continue;
    DeclaredNorm norm(values_, input_row(values_, which, token), points);
    const std::span<const double> row = source.row(token);
    const bool done = levels_.until([&]<std::size_t L>() {
      return norm.walk(std::vector<Enclosure<level_digits[L]>>(row.begin(), row.end()), ask<L>);
    });
    if (!done) norm.refuse(levels_.highest_bits());
    for (std::size_t e = 0; e < width; ++e)
      numbers[static_cast<std::size_t>(token) * width + e] = norm.stage().at(e).after;
  }
  source.given.normed = std::move(numbers);
  levels_.forget();
}

void DeclaredVectors::decide_projection(Side which, const DeclaredPoint& point) {
  SideValues& side = values_.side(which);
  const qkcts_stage stage = proj_stage(which);
  std::vector<double> numbers = no_numbers(which);
  for (std::int64_t group = 0; group < side.group_count(); ++group) {
    if (is_excluded(which, group)) continue;
    const auto place = [&](std::size_t i) {
      const auto lane = static_cast<std::int64_t>(i);
      return ElementPlace{stage, side.row_of(group, lane / side.head_dim), lane % side.head_dim};
    };
    const auto where = [&](std::size_t i) { return place_text(values_, place(i)); };
    PointDecision decision(values_, point, static_cast<std::size_t>(side.heads_in_group() * side.head_dim), where,
                           [&](std::size_t i, const Rational& t) {
                             const ElementPlace at = place(i);
                             const ExactVector x = exact_vector(values_, which, at.row, Upto::projection);
                             return standing((x.entry(static_cast<std::size_t>(at.column)) - RootSum(t)).sign());
                           });
    const bool done = levels_.until([&]<std::size_t L>() {
      auto x = entries<L>(which, group, stage);
      return x && decision.apply(std::span(*x), ask<L>);
    });
    if (!done) decision.refuse(levels_.highest_bits());
    for (std::size_t i = 0; i < static_cast<std::size_t>(side.heads_in_group() * side.head_dim); ++i) {
      const auto element = static_cast<std::size_t>(place(i).row * side.head_dim + place(i).column);
      numbers[element] = decision.at(i).after;
      exact_.before[stage][element] = decision.at(i).before;
    }
  }
  side.given.projected = std::move(numbers);
  levels_.forget();
}

void DeclaredVectors::decide_norm(Side which, const VectorPoints& points) {
  SideValues& side = values_.side(which);
  const qkcts_stage stage = norm_stage(which);
  const qkcts_stage before = stage_before(which, stage);
  std::vector<double> numbers = no_numbers(which);
  for (std::int64_t group = 0; group < side.group_count(); ++group) {
    if (is_excluded(which, group)) continue;
    DeclaredNorm norm(values_, group_of_side(values_, which, group), points);
    const bool done = levels_.until([&]<std::size_t L>() {
      auto x = entries<L>(which, group, before);
      return x && norm.walk(std::move(*x), ask<L>);
    });
    if (!done) norm.refuse(levels_.highest_bits());
    for (std::int64_t i = 0; i < side.heads_in_group() * side.head_dim; ++i) {
      const auto element =
          static_cast<std::size_t>(side.row_of(group, i / side.head_dim) * side.head_dim + i % side.head_dim);
      const AtPoint& at = norm.stage().at(static_cast<std::size_t>(i));
      numbers[element] = at.after;
      exact_.before[stage][element] = at.before;
    }
  }
  side.given.normed = std::move(numbers);
  levels_.forget();
}

void DeclaredVectors::decide_rotation(Side which, const VectorPoints& points) {
  SideValues& side = values_.side(which);
  const qkcts_stage stage = rope_stage(which);
  const qkcts_stage before = stage_before(which, stage);
  const std::int64_t pairs = rotated_lanes(values_.terms.rope, side.head_dim) / 2;
  const auto width = static_cast<std::size_t>(side.head_dim);
  std::vector<double> numbers = no_numbers(which);
  for (std::int64_t group = 0; group < side.group_count(); ++group) {
    if (is_excluded(which, group)) continue;
    std::vector<std::unique_ptr<DeclaredRotation>> heads;
    for (std::int64_t member = 0; member < side.heads_in_group(); ++member)
      heads.push_back(std::make_unique<DeclaredRotation>(values_, which, side.row_of(group, member), points));
    const bool done = levels_.until([&]<std::size_t L>() {
      const auto x = entries<L>(which, group, before);
      bool complete = x.has_value();
      for (std::size_t h = 0; h < heads.size() && x; ++h) {
        const auto waves = levels_.at<L>().waves_of(which, side.row_of(group, static_cast<std::int64_t>(h)));
        complete = heads[h]->template walk<level_digits[L]>(std::span(*x).subspan(h * width, width), waves, ask<L>) &&
                   complete;
      }
      return complete;
    });
    for (std::size_t h = 0; h < heads.size(); ++h) {
      if (!done && !heads[h]->is_complete()) heads[h]->refuse(levels_.highest_bits());
      const auto first = static_cast<std::size_t>(side.row_of(group, static_cast<std::int64_t>(h))) * width;
      for (std::int64_t pair = 0; done && pair < pairs; ++pair) {
        const auto [a, b] = left_lanes(values_.terms, side.head_dim, pair);
        for (const auto& [lane, at] : {std::pair(a, heads[h]->sum(pair, 0)), std::pair(b, heads[h]->sum(pair, 1))}) {
          numbers[first + lane] = at.after;
          exact_.before[stage][first + lane] = at.before;
        }
      }
    }
  }
  side.given.turned = std::move(numbers);
  levels_.forget();
}

void DeclaredVectors::decide_scaled_q(const DeclaredPoint& point) {
  const qkcts_stage last = stage_before(Side::query, no_stage);
  SideValues& side = values_.q;
  ExactCases exact(values_);
  std::vector<double> numbers = no_numbers(Side::query);
  for (std::int64_t group = 0; group < side.group_count(); ++group) {
    const auto place = [&](std::size_t i) {
      const auto lane = static_cast<std::int64_t>(i);
      return ElementPlace{QKCTS_STAGE_Q_NORM, side.row_of(group, lane / side.head_dim), lane % side.head_dim};
    };
    const auto where = [&](std::size_t i) { return place_text(values_, place(i)); };
    PointDecision decision(values_, point, static_cast<std::size_t>(side.heads_in_group() * side.head_dim), where,
                           [&](std::size_t i, const Rational& t) {
                             const ElementPlace at = place(i);
                             return exact.scaled_q(rows_.without_keys(static_cast<std::size_t>(at.row)), at.column, t);
                           });
    const bool done = levels_.until([&]<std::size_t L>() {
      auto x = entries<L>(Side::query, group, last);
      if (!x) return false;
      for (std::size_t i = 0; i < x->size(); ++i)
        (*x)[i] *= levels_.at<L>().factor(rows_.without_keys(static_cast<std::size_t>(place(i).row)));
      return decision.apply(std::span(*x), ask<L>);
    });
    if (!done) decision.refuse(levels_.highest_bits());
    for (std::size_t i = 0; i < static_cast<std::size_t>(side.heads_in_group() * side.head_dim); ++i)
      numbers[static_cast<std::size_t>(place(i).row * side.head_dim + place(i).column)] = decision.at(i).after;
  }
  side.given.scaled = std::move(numbers);
  levels_.forget();
}

}  // namespace qkcts
