// SPDX-License-Identifier: Apache-2.0
#include "reference/declared_norm.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "reference/exact_vector.hpp"
#include "reference/point_overflow.hpp"
#include "reference/refusal.hpp"

namespace qkcts {
namespace {

RootSum clamped(const RootSum& x, double c) {
  if (c == 0) return x;
  const Rational bound(c);
  if ((x - RootSum(bound)).sign() > 0) return RootSum(bound);
  if ((x + RootSum(bound)).sign() < 0) return RootSum(Rational(-bound));
  return x;
}

}  // namespace

// Beside computed angles the entries that really turned are open, but a rotation keeps the sum of squares: it is that
// of the numbers before, unless a clamp or a mean comes between.
ExactNorm exact_norm(const CaseValues& values, Side which, std::int64_t group) {
  const SideValues& side = values.side(which);
  std::vector<ExactVector> heads;
  bool open = false, rigid = true;
  for (std::int64_t member = 0; member < side.heads_in_group(); ++member) {
    const ExactVector& x =
        heads.emplace_back(exact_vector(values, which, side.row_of(group, member), Upto::rotation_before_norm));
    open = open || std::find(x.open.begin(), x.open.end(), true) != x.open.end();
    rigid = rigid && x.rigid;
  }
  ExactNorm result;
  for (const ExactVector& x : heads)
    for (std::size_t lane = 0; lane < x.size(); ++lane) {
      const bool unknown = x.is_open(lane);
      result.entries.push_back(unknown ? std::nullopt : std::optional(clamped(x.entry(lane), side.range.clip_before)));
    }
  if (side.norm.applied == 0) {
    result.inverse = RootSum(Rational(1));
    return result;
  }
  if (open && (!rigid || side.norm.center != 0 || side.range.clip_before != 0)) {
    result.entries.assign(result.entries.size(), std::nullopt);
    return result;
  }
  const Rational share = Rational(1) / Rational(result.entries.size());
  RootSum t;
  if (open) {
    for (const ExactVector& x : heads) t = t + dot(x, x);
  } else {
    RootSum mean;
    for (const auto& entry : result.entries) mean = mean + *entry;
    mean = mean * (side.norm.center != 0 ? share : Rational(0));
    for (auto& entry : result.entries) {
      entry = *entry - mean;
      t = t + *entry * *entry;
    }
  }
  if (side.norm.statistic == QKCTS_MEAN_SQUARE) t = t * share;
  result.inverse = inverse_root(
      t, side.norm, fmt::format("case {}: a norm divides 0 by 0 in row {}", values.input.slug, side.row_of(group, 0)));
  return result;
}

DeclaredNorm::DeclaredNorm(const CaseValues& values, Side which, std::int64_t group, const VectorPoints& points)
    : values_(values),
      which_(which),
      side_(values.side(which)),
      group_(group),
      norm_(
          values, *points.norm, static_cast<std::size_t>(side_.heads_in_group() * side_.head_dim),
          [this](std::size_t i) { return place(i); },
          [this](std::size_t i, const Rational& t) { return standing(exact_stage(i), t); }) {
  const auto of_group = [this](std::size_t) { return place(0); };
  if (points.root)
    root_.emplace(values, *points.root, 1, of_group, [this](std::size_t, const Rational& t) {
      return exact().inverse ? standing(exact().inverse->inverse(), t) : Standing::unknown;
    });
  if (points.reciprocal)
    reciprocal_.emplace(values, *points.reciprocal, 1, of_group, [this](std::size_t, const Rational& t) {
      if (root_) return standing(RootSum(Rational(Rational(1) / Rational(root_->at(0).after))), t);
      return standing(exact().inverse, t);
    });
  if (points.unit)
    unit_.emplace(
        values, *points.unit, static_cast<std::size_t>(side_.heads_in_group() * side_.head_dim),
        [this](std::size_t i) { return place(i); },
        [this](std::size_t i, const Rational& t) { return standing(exact_unit(i), t); });
}

ElementPlace DeclaredNorm::place(std::size_t i) const {
  const auto lane = static_cast<std::int64_t>(i);
  return {norm_stage(which_), side_.row_of(group_, lane / side_.head_dim), lane % side_.head_dim};
}

const ExactNorm& DeclaredNorm::exact() {
  if (!exact_) exact_ = exact_norm(values_, which_, group_);
  return *exact_;
}

std::optional<RootSum> DeclaredNorm::exact_unit(std::size_t i) {
  const std::optional<RootSum>& entry = exact().entries[i];
  if (!entry) return std::nullopt;
  if (reciprocal_) return *entry * Rational(reciprocal_->at(0).after);
  if (root_) return *entry * Rational(Rational(1) / Rational(root_->at(0).after));
  if (!exact().inverse) return std::nullopt;
  return *entry * *exact().inverse;
}

std::optional<RootSum> DeclaredNorm::exact_stage(std::size_t i) {
  const std::optional<RootSum> unit = unit_ ? RootSum(Rational(unit_->at(i).after)) : exact_unit(i);
  if (!unit) return std::nullopt;
  RootSum y = *unit;
  if (side_.norm.applied != 0) {
    const NormParameters<Rational> parameters = norm_parameters<Rational>(side_, group_);
    if (!parameters.factor.empty()) y = y * parameters.factor[i];
    if (!parameters.offset.empty()) y = y + RootSum(parameters.offset[i]);
  }
  if (side_.range.multiplier != 0) y = y * Rational(side_.range.multiplier);
  return clamped(y, side_.range.clip_after);
}

void DeclaredNorm::require_positive_root() const {
  const AtPoint& root = root_->at(0);
  if (root.after > 0) return;
  throw PointOverflow(fmt::format(
      "case {}: the root {:.3g} of {} becomes 0 at its rounding point; give larger values or another format",
      values_.input.slug, root.before, place_text(values_, place(0))));
}

void DeclaredNorm::refuse(long bits) const {
  for (const std::optional<PointDecision>* point : {&root_, &reciprocal_, &unit_})
    if (*point && !(*point)->is_complete()) (*point)->refuse(bits);
  norm_.refuse(bits);
}

}  // namespace qkcts
