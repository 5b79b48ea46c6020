// SPDX-License-Identifier: Apache-2.0
// A norm with rounding points: one group of vectors on its way from entry to end, first as enclosures and, where they
// leave a single boundary, exactly. What is decided at a point is exact from there on, whatever the precision.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/norm.hpp"
#include "reference/rounding_point.hpp"

namespace qkcts {

// Entries of a group after the first clamp and the centring, and the inverse of the root, as algebraic numbers.
struct ExactNorm {
  std::vector<std::optional<RootSum>> entries;  // nothing where a computed rotation left no such number
  std::optional<RootSum> inverse;               // of d; 1 where no norm is applied
};

// What a norm acts on: a group of a side, or the row that is projected to one token.
struct NormedGroup {
  const SideValues& side;  // whose norm, range and parameters count
  std::int64_t group;
  std::function<std::string(std::size_t)> where;  // an entry, for messages
  std::function<ExactNorm()> exact;               // throws InputError if the root is exactly 0
};
NormedGroup group_of_side(const CaseValues& values, Side side, std::int64_t group);
NormedGroup input_row(const CaseValues& values, Side side, std::int64_t token);

class DeclaredNorm {
 public:
  using Ask = PointDecision::Ask;

  DeclaredNorm(const CaseValues& values, NormedGroup normed, const VectorPoints& points);
  DeclaredNorm(const DeclaredNorm&) = delete;  // the rules refer to it
  DeclaredNorm& operator=(const DeclaredNorm&) = delete;

  // Walks at one precision from the entries `x` of the group to their end; true once everything is decided.
  template <unsigned Digits>
  bool walk(std::vector<Enclosure<Digits>> x, Ask ask);

  const PointDecision& stage() const { return norm_; }
  [[noreturn]] void refuse(long bits) const;

 private:
  template <unsigned Digits>
  bool divide(std::vector<Enclosure<Digits>>& x, Ask ask);
  const ExactNorm& exact();
  std::optional<RootSum> exact_unit(std::size_t i);
  std::optional<RootSum> exact_stage(std::size_t i);
  void require_positive_root() const;

  const CaseValues& values_;
  NormedGroup normed_;
  const SideValues& side_;
  std::optional<ExactNorm> exact_;
  std::optional<PointDecision> root_, reciprocal_, unit_;  // those that are points
  PointDecision norm_;
};

// The centred entries become those after the division and its points.
template <unsigned Digits>
bool DeclaredNorm::divide(std::vector<Enclosure<Digits>>& x, Ask ask) {
  using Number = Enclosure<Digits>;
  Number d = root(statistic(x, side_.norm), side_.norm);
  if (!is_surely_positive(d)) {
    if (ask == Ask::rule_too) exact();  // throws if it is exactly 0
    return false;
  }
  if (root_ && !root_->apply(std::span(&d, 1), ask)) return false;
  if (root_) require_positive_root();
  if (reciprocal_) {
    Number inverse = Number(1) / d;
    if (!reciprocal_->apply(std::span(&inverse, 1), ask)) return false;
    for (Number& entry : x) entry *= inverse;
  } else {
    for (Number& entry : x) entry /= d;
  }
  return !unit_ || unit_->apply(std::span(x), ask);
}

template <unsigned Digits>
bool DeclaredNorm::walk(std::vector<Enclosure<Digits>> x, Ask ask) {
  using Number = Enclosure<Digits>;
  const qkcts_norm_range& range = side_.range;
  if (range.clip_before != 0)
    for (Number& entry : x) clamp(entry, range.clip_before);
  if (side_.norm.applied != 0) {
    center(x, side_.norm);
    if (!divide(x, ask)) return false;
    const NormParameters<Number> parameters = norm_parameters<Number>(side_, normed_.group);
    for (std::size_t i = 0; i < parameters.factor.size(); ++i) x[i] *= parameters.factor[i];
    for (std::size_t i = 0; i < parameters.offset.size(); ++i) x[i] += parameters.offset[i];
  }
  if (range.multiplier != 0)
    for (Number& entry : x) entry *= Number(range.multiplier);
  if (range.clip_after != 0)
    for (Number& entry : x) clamp(entry, range.clip_after);
  return norm_.apply(std::span(x), ask);
}

}  // namespace qkcts
