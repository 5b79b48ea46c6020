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

// The entries of a group, and the sum of their squares where it is known though some of them are not.
struct Entries {
  std::vector<std::optional<RootSum>> numbers;
  std::optional<RootSum> squares;
};

// Centres what is known of the entries and inverts the root. `what` begins the message of one that is 0.
ExactNorm normed(Entries entries, const qkcts_norm& norm, const std::string& what) {
  ExactNorm result{std::move(entries.numbers), std::nullopt};
  const Rational share = Rational(1) / Rational(result.entries.size());
  RootSum t;
  if (entries.squares) {
    t = *entries.squares;
  } else {
    RootSum mean;
    for (const auto& entry : result.entries) mean = mean + *entry;
    mean = mean * (norm.center != 0 ? share : Rational(0));
    for (auto& entry : result.entries) {
      entry = *entry - mean;
      t = t + *entry * *entry;
    }
  }
  if (norm.statistic == QKCTS_MEAN_SQUARE) t = t * share;
  result.inverse = inverse_root(t, norm, what);
  return result;
}

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
  Entries entries;
  for (const ExactVector& x : heads)
    for (std::size_t lane = 0; lane < x.size(); ++lane) {
      const bool unknown = x.is_open(lane);
      entries.numbers.push_back(unknown ? std::nullopt : std::optional(clamped(x.entry(lane), side.range.clip_before)));
    }
  if (side.norm.applied == 0) return {std::move(entries.numbers), RootSum(Rational(1))};
  if (open && (!rigid || side.norm.center != 0 || side.range.clip_before != 0))
    return {std::vector<std::optional<RootSum>>(entries.numbers.size()), std::nullopt};
  if (open) {
    entries.squares.emplace();
    for (const ExactVector& x : heads) *entries.squares = *entries.squares + dot(x, x);
  }
  return normed(std::move(entries), side.norm,
                fmt::format("case {}: a norm divides 0 by 0 in row {}", values.input.slug, side.row_of(group, 0)));
}

// "q_x[b0 t2 e3]"
std::string input_text(const SideValues& source, Side which, std::int64_t token, std::size_t e) {
  return fmt::format("{}_x[b{} t{} e{}]", which == Side::query ? 'q' : 'k', token / source.length,
                     token % source.length, e);
}

}  // namespace

NormedGroup group_of_side(const CaseValues& values, Side which, std::int64_t group) {
  const SideValues& side = values.side(which);
  const auto where = [&values, &side, which, group](std::size_t i) {
    const auto lane = static_cast<std::int64_t>(i);
    return place_text(values, {norm_stage(which), side.row_of(group, lane / side.head_dim), lane % side.head_dim});
  };
  return {side, group, where, [&values, which, group] { return exact_norm(values, which, group); }};
}

NormedGroup input_row(const CaseValues& values, Side which, std::int64_t token) {
  const SideValues& source = values.projection(which)->source;
  const auto where = [&source, which, token](std::size_t e) { return input_text(source, which, token, e); };
  const auto exact = [&values, &source, which, token] {
    Entries entries;
    for (const double entry : source.row(token)) entries.numbers.emplace_back(RootSum(Rational(entry)));
    return normed(
        std::move(entries), source.norm,
        fmt::format("case {}: the norm of {} divides 0 by 0", values.input.slug, input_text(source, which, token, 0)));
  };
  return {source, token, where, exact};
}

DeclaredNorm::DeclaredNorm(const CaseValues& values, NormedGroup normed, const VectorPoints& points)
    : values_(values),
      normed_(std::move(normed)),
      side_(normed_.side),
      norm_(values, *points.norm, static_cast<std::size_t>(side_.heads_in_group() * side_.head_dim), normed_.where,
            [this](std::size_t i, const Rational& t) { return standing(exact_stage(i), t); }) {
  const auto of_group = [this](std::size_t) { return normed_.where(0); };
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
    unit_.emplace(values, *points.unit, static_cast<std::size_t>(side_.heads_in_group() * side_.head_dim),
                  normed_.where, [this](std::size_t i, const Rational& t) { return standing(exact_unit(i), t); });
}

const ExactNorm& DeclaredNorm::exact() {
  if (!exact_) exact_ = normed_.exact();
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
    const NormParameters<Rational> parameters = norm_parameters<Rational>(side_, normed_.group);
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
      values_.input.slug, root.before, normed_.where(0)));
}

void DeclaredNorm::refuse(long bits) const {
  for (const std::optional<PointDecision>* point : {&root_, &reciprocal_, &unit_})
    if (*point && !(*point)->is_complete()) (*point)->refuse(bits);
  norm_.refuse(bits);
}

}  // namespace qkcts
