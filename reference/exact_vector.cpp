// SPDX-License-Identifier: Apache-2.0
#include "reference/exact_vector.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "reference/norm.hpp"
#include "reference/rope.hpp"

namespace qkcts {
namespace {

class Construction {
 public:
  Construction(const CaseValues& values, Side which, std::int64_t row)
      : values_(values), side_(values.side(which)), row_(row), width_(static_cast<std::size_t>(side_.head_dim)) {
    x_.inverse = RootSum(Rational(1));
  }

  ExactVector make(Upto upto);

 private:
  void turn(std::span<Rational> numbers, std::uint32_t position) const;
  std::vector<bool> turning_lanes(std::uint32_t position) const;
  void close_zero_pairs(std::size_t first);
  void load_group(bool turned);
  void keep_own();
  void normalise();
  void divide_by_root(const Rational& t);
  void multiply(const Rational& factor);
  void clamp_after(double c);
  void lose_all() {
    x_.open.assign(x_.numerator.size(), true);
    x_.rigid = false;
  }
  bool any_open() const { return std::find(x_.open.begin(), x_.open.end(), true) != x_.open.end(); }

  const CaseValues& values_;
  const SideValues& side_;
  std::int64_t row_;
  std::size_t width_;
  std::size_t own_ = 0;  // where this row stands in its group
  ExactVector x_;
};

// One head. Under computed angles: by the angle 0, which is right for the lanes that do not stay open.
void Construction::turn(std::span<Rational> numbers, std::uint32_t position) const {
  if (!values_.frequencies) return rotate(numbers, values_, TableWaves<Rational>{values_, position});
  const Rational factor(values_.frequencies->attention_factor());
  rotate(numbers, values_, [&factor](std::int64_t) { return std::pair(factor, Rational(0)); });
}

// Lanes, after the rotation, of the pairs whose angle is not 0.
std::vector<bool> Construction::turning_lanes(std::uint32_t position) const {
  std::vector<bool> lanes(width_, false);
  if (!values_.frequencies || position == 0) return lanes;
  for (std::int64_t i = 0; i < values_.frequencies->pairs(); ++i) {
    if (values_.frequencies->is_zero(i)) continue;
    const auto [a, b] = left_lanes(values_.terms, side_.head_dim, i);
    lanes[a] = lanes[b] = true;
  }
  return lanes;
}

// Of the head whose lanes begin at `first`. A pair of zeros stays zero however it turns, and so do both of its lanes.
// (Otherwise both of them are open.)
void Construction::close_zero_pairs(std::size_t first) {
  for (std::int64_t i = 0; values_.frequencies && i < values_.frequencies->pairs(); ++i) {
    const auto [a, b] = left_lanes(values_.terms, side_.head_dim, i);
    if (x_.is_zero(first + a) && x_.is_zero(first + b)) x_.open[first + a] = x_.open[first + b] = false;
  }
}

void Construction::load_group(bool turned) {
  const std::int64_t group = side_.group_of(row_);
  for (std::int64_t member = 0; member < side_.heads_in_group(); ++member) {
    const std::int64_t member_row = side_.row_of(group, member);
    const std::size_t first = x_.numerator.size();
    if (member_row == row_) own_ = first;
    for (const double entry : side_.row(member_row)) x_.numerator.emplace_back(entry);
    if (!turned) continue;
    const std::uint32_t position = side_.position_of(member_row);
    turn(std::span(x_.numerator).last(width_), position);
    const std::vector<bool> turning = turning_lanes(position);
    x_.open.insert(x_.open.end(), turning.begin(), turning.end());
    close_zero_pairs(first);
  }
}

// The divisor is sqrt(radicand) + addend, where one of them may be 0: rational, sqrt(a), or sqrt(a) + eps. Its inverse,
// with the root made rational:
//   1/sqrt(a) = sqrt(a)/a;   1/(sqrt(a) + eps) = (sqrt(a) - eps)/(a - eps^2), or 1/(2 eps) where a = eps^2.
void Construction::divide_by_root(const Rational& t) {
  const Rational eps(side_.norm.eps);
  Rational radicand(0), addend(0);
  switch (side_.norm.root) {
    case QKCTS_OUTSIDE_ROOT:
      radicand = t;
      addend = eps;
      break;
    case QKCTS_MAX_ROOT:  // max(sqrt(t), eps): compare the squares
      radicand = t >= Rational(eps * eps) ? t : Rational(0);
      if (radicand.sign() == 0) addend = eps;
      break;
    case QKCTS_MAX_INSIDE:
      radicand = t >= eps ? t : eps;
      break;
    default:
      radicand = t + eps;
  }
  if (radicand.sign() == 0 && addend.sign() == 0) {
    throw InputError(
        fmt::format("case {}: a norm divides 0 by 0 in row {} (vector without spread, eps 0); give eps > 0 "
                    "or other values",
                    values_.input.slug, row_));
  }
  const Rational difference = radicand - addend * addend;
  if (radicand.sign() == 0) {
    x_.inverse = RootSum(Rational(1) / addend);
  } else if (difference.sign() == 0) {
    x_.inverse = RootSum(Rational(1) / Rational(addend * Rational(2)));
  } else {
    x_.inverse = (RootSum::square_root(radicand) - RootSum(addend)) * Rational(Rational(1) / difference);
  }
}

// With open lanes the sum of squares is still rational, since a rotation keeps that of every pair; a mean is not.
void Construction::normalise() {
  const bool open = any_open();
  if (open && (!x_.rigid || side_.norm.center != 0)) return lose_all();
  center(x_.numerator, side_.norm);
  divide_by_root(statistic(x_.numerator, side_.norm));
  NormParameters<Rational> parameters = norm_parameters<Rational>(side_, side_.group_of(row_));
  for (std::size_t i = 0; i < parameters.factor.size(); ++i) x_.numerator[i] *= parameters.factor[i];
  x_.offset = std::move(parameters.offset);
  if (open && (!parameters.factor.empty() || !x_.offset.empty())) x_.rigid = false;
}

void Construction::keep_own() {
  const auto keep = [&](auto& all) {
    if (!all.empty())
      all = {all.begin() + static_cast<std::ptrdiff_t>(own_), all.begin() + static_cast<std::ptrdiff_t>(own_ + width_)};
  };
  keep(x_.numerator);
  keep(x_.offset);
  keep(x_.open);
}

void Construction::multiply(const Rational& factor) {
  for (Rational& entry : x_.numerator) entry *= factor;
  for (Rational& entry : x_.offset) entry *= factor;
}

// Exactly: the sign of entry - c says whether the entry becomes the rational c, so the form is kept.
void Construction::clamp_after(double c) {
  if (any_open()) x_.rigid = false;
  for (std::size_t lane = 0; lane < width_; ++lane) {
    if (x_.is_open(lane)) continue;
    const RootSum y = x_.entry(lane);
    const bool above = (y - RootSum(Rational(c))).sign() > 0;
    const bool below = (y + RootSum(Rational(c))).sign() < 0;
    if (!above && !below) continue;
    x_.offset.resize(width_, Rational(0));
    x_.numerator[lane] = 0;
    x_.offset[lane] = Rational(above ? c : -c);
  }
}

ExactVector Construction::make(Upto upto) {
  const std::uint32_t order = values_.terms.rope.order;
  const qkcts_norm_range& range = side_.range;
  load_group(order == QKCTS_ROPE_THEN_NORM);
  const bool transforms = side_.transforms() && upto != Upto::rotation_before_norm;
  if (transforms && range.clip_before != 0) {
    if (any_open()) lose_all();
    for (Rational& entry : x_.numerator) clamp(entry, range.clip_before);
  }
  if (transforms && side_.norm.applied != 0) normalise();
  keep_own();
  if (transforms && range.multiplier != 0) multiply(Rational(range.multiplier));
  if (transforms && range.clip_after != 0) clamp_after(range.clip_after);
  if (order == QKCTS_NORM_THEN_ROPE && upto == Upto::last) {
    const std::uint32_t position = side_.position_of(row_);
    turn(std::span(x_.numerator), position);
    if (!x_.offset.empty()) turn(std::span(x_.offset), position);
    x_.open = turning_lanes(position);
    close_zero_pairs(0);
  }
  return std::move(x_);
}

}  // namespace

ExactVector exact_vector(const CaseValues& values, Side side, std::int64_t row, Upto upto) {
  return Construction(values, side, row).make(upto);
}

}  // namespace qkcts
