// SPDX-License-Identifier: Apache-2.0
#include "reference/exact_vector.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "reference/norm.hpp"
#include "reference/rope.hpp"

namespace qkcts {
namespace {

using Part = ExactVector::Part;

Rational dot(const std::vector<Rational>& x, const std::vector<Rational>& y) {
  Rational sum(0);
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

}  // namespace

// The divisor is sqrt(radicand) + addend, where one of them may be 0.
RootSum inverse_root(const RootSum& t, const qkcts_norm& norm, std::string_view what) {
  const RootSum eps{Rational(norm.eps)};
  RootSum divisor;
  switch (norm.root) {
    case QKCTS_OUTSIDE_ROOT:
      divisor = RootSum::square_root(t) + eps;
      break;
    case QKCTS_MAX_ROOT:  // max(sqrt(t), eps): compare the squares
      divisor = (t - eps * eps).sign() >= 0 ? RootSum::square_root(t) : eps;
      break;
    case QKCTS_MAX_INSIDE:
      divisor = RootSum::square_root((t - eps).sign() >= 0 ? t : eps);
      break;
    default:
      divisor = RootSum::square_root(t + eps);
  }
  if (divisor.sign() == 0)
    throw InputError(fmt::format("{} (vector without spread, eps 0); give eps > 0 or other values", what));
  return divisor.inverse();
}

namespace {

class Construction {
 public:
  Construction(const CaseValues& values, Side which, std::int64_t row)
      : values_(values),
        which_(which),
        side_(values.side(which)),
        row_(row),
        width_(static_cast<std::size_t>(side_.head_dim)) {}

  ExactVector make(Upto upto);

 private:
  template <class Numbers>
  void turn(Numbers numbers, std::int64_t row) const;
  std::vector<bool> turning_lanes(std::uint32_t position) const;
  void close_zero_pairs(std::size_t first);
  ExactVector projected(const Projection& projection) const;
  void load_group();
  void turn_group();
  void take_normed();
  void take_turned(std::size_t first, std::int64_t row);
  void keep_own();
  void normalise(ExactVector& x, const SideValues& side, std::int64_t group, std::string_view name) const;
  void multiply(const Rational& factor);
  void clamp_before(double c);
  void clamp_after(double c);
  static void lose_all(ExactVector& x) {
    x.open.assign(x.size(), true);
    x.rigid = false;
  }
  static bool any_open(const ExactVector& x) { return std::find(x.open.begin(), x.open.end(), true) != x.open.end(); }

  const CaseValues& values_;
  Side which_;
  const SideValues& side_;
  std::int64_t row_;
  std::size_t width_;
  std::size_t own_ = 0;  // where this row stands in its group
  ExactVector x_;
};

// One head. Under computed angles: by the angle 0, which is right for the lanes that do not stay open.
template <class Numbers>
void Construction::turn(Numbers numbers, std::int64_t row) const {
  if (!values_.frequencies)
    return rotate(numbers, values_, TableWaves<Rational>(values_, side_.head_of(row), side_.position_of(row)));
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

// The heads of the group side by side: x^ W + bias, part by part.
ExactVector Construction::projected(const Projection& projection) const {
  const SideValues& source = projection.source;
  const std::int64_t token = side_.token_of(row_);
  ExactVector x;
  x.parts = {{RootSum(Rational(1)), {}}};
  const bool given = !source.given.normed.empty();
  for (const double entry : given ? source.row_in(source.given.normed, token) : source.row(token))
    x.parts[0].numbers.emplace_back(entry);
  if (source.norm.applied != 0 && !given) normalise(x, source, token, which_ == Side::query ? "q_x" : "k_x");
  const std::int64_t group = side_.group_of(row_);
  const auto first = static_cast<std::size_t>(side_.first_head(group)) * width_;
  const auto count = static_cast<std::size_t>(side_.heads_in_group()) * width_;
  const auto columns = static_cast<std::size_t>(side_.heads) * width_;
  for (Part& part : x.parts) {
    std::vector<Rational> sums(count, Rational(0));
    for (std::size_t e = 0; e < part.numbers.size(); ++e)
      for (std::size_t i = 0; i < count && part.numbers[e].sign() != 0; ++i)
        sums[i] += part.numbers[e] * Rational(projection.weight[e * columns + first + i]);
    part.numbers = std::move(sums);
  }
  if (!projection.bias.empty()) {
    std::vector<Rational>& offsets = x.offsets();
    for (std::size_t i = 0; i < count; ++i) offsets[i] += Rational(projection.bias[first + i]);
  }
  return x;
}

void Construction::load_group() {
  const std::int64_t group = side_.group_of(row_);
  const bool given = !side_.given.projected.empty();
  const Projection* projection = given ? nullptr : values_.projection(which_);
  if (projection != nullptr) x_ = projected(*projection);
  if (projection == nullptr) x_.parts = {{RootSum(Rational(1)), {}}};
  for (std::int64_t member = 0; member < side_.heads_in_group(); ++member) {
    const std::int64_t member_row = side_.row_of(group, member);
    if (member_row == row_) own_ = static_cast<std::size_t>(member) * width_;
    if (projection != nullptr) continue;
    for (const double entry : side_.row_in(given ? side_.given.projected : side_.x, member_row))
      x_.parts[0].numbers.emplace_back(entry);
  }
}

void Construction::turn_group() {
  const std::int64_t group = side_.group_of(row_);
  for (std::int64_t member = 0; member < side_.heads_in_group(); ++member) {
    const std::int64_t row = side_.row_of(group, member);
    const std::size_t first = static_cast<std::size_t>(member) * width_;
    for (Part& part : x_.parts) turn(std::span(part.numbers).subspan(first, width_), row);
    const std::vector<bool> turning = turning_lanes(side_.position_of(row));
    x_.open.insert(x_.open.end(), turning.begin(), turning.end());
    close_zero_pairs(first);
    take_turned(first, row);
  }
}

// Numbers from rounding points take the place of what is computed.
void Construction::take_normed() {
  const std::span<const double> given = side_.row_in(side_.given.normed, row_);
  x_ = ExactVector::rational({given.begin(), given.end()});
  x_.rigid = side_.rope_order != QKCTS_ROPE_THEN_NORM;  // these come after the rotation: nothing turns them back
}

void Construction::take_turned(std::size_t first, std::int64_t row) {
  if (side_.given.turned.empty()) return;
  const std::span<const double> given = side_.row_in(side_.given.turned, row);
  std::vector<Rational>& offsets = x_.offsets();
  for (const std::size_t lane : turned_lanes(values_.terms, side_.head_dim)) {
    for (Part& part : x_.parts) part.numbers[first + lane] = 0;
    offsets[first + lane] = Rational(given[lane]);
    x_.open[first + lane] = false;
  }
  x_.rigid = false;
}

// With open lanes the sum of squares is still algebraic, since a rotation keeps that of every pair; a mean is not.
void Construction::normalise(ExactVector& x, const SideValues& side, std::int64_t group, std::string_view name) const {
  const bool open = any_open(x);
  if (open && (!x.rigid || side.norm.center != 0)) return lose_all(x);
  for (Part& part : x.parts) center(part.numbers, side.norm);
  RootSum t = dot(x, x);
  if (side.norm.statistic == QKCTS_MEAN_SQUARE) t = t * Rational(Rational(1) / Rational(x.size()));
  const RootSum inverse = inverse_root(
      t, side.norm, fmt::format("case {}: the norm of {} divides 0 by 0 in row {}", values_.input.slug, name, row_));
  const NormParameters<Rational> parameters = norm_parameters<Rational>(side, group);
  for (Part& part : x.parts) {
    part.factor = part.factor * inverse;
    for (std::size_t i = 0; i < parameters.factor.size(); ++i) part.numbers[i] *= parameters.factor[i];
  }
  for (std::size_t i = 0; i < parameters.offset.size(); ++i) x.offsets()[i] += parameters.offset[i];
  // Behind a rotation, lanes that it left at 0 may hold something now that never turned.
  const bool alike = side.norm.center == 0 && parameters.factor.empty() && parameters.offset.empty();
  if (!alike && (open || side.rope_order == QKCTS_ROPE_THEN_NORM)) x.rigid = false;
}

void Construction::keep_own() {
  const auto keep = [&](auto& all) {
    if (!all.empty())
      all = {all.begin() + static_cast<std::ptrdiff_t>(own_), all.begin() + static_cast<std::ptrdiff_t>(own_ + width_)};
  };
  for (Part& part : x_.parts) keep(part.numbers);
  keep(x_.open);
}

void Construction::multiply(const Rational& factor) {
  for (Part& part : x_.parts)
    for (Rational& entry : part.numbers) entry *= factor;
}

// Exactly: the sign of entry - c says whether the entry becomes the rational c, so the form is kept.
void Construction::clamp_after(double c) {
  if (any_open(x_)) x_.rigid = false;
  for (std::size_t lane = 0; lane < x_.size(); ++lane) {
    if (x_.is_open(lane)) continue;
    const RootSum y = x_.entry(lane);
    const bool above = (y - RootSum(Rational(c))).sign() > 0;
    const bool below = (y + RootSum(Rational(c))).sign() < 0;
    if (!above && !below) continue;
    std::vector<Rational>& offsets = x_.offsets();
    for (Part& part : x_.parts) part.numbers[lane] = 0;
    offsets[lane] = Rational(above ? c : -c);
  }
}

void Construction::clamp_before(double c) {
  if (any_open(x_)) return lose_all(x_);
  clamp_after(c);
}

ExactVector Construction::make(Upto upto) {
  const std::uint32_t order = side_.rope_order;
  const qkcts_norm_range& range = side_.range;
  if (upto == Upto::last && !side_.given.scaled.empty()) {
    const std::span<const double> given = side_.row_in(side_.given.scaled, row_);
    x_ = ExactVector::rational({given.begin(), given.end()});
    x_.rigid = false;
    return std::move(x_);
  }
  load_group();
  if (order == QKCTS_ROPE_THEN_NORM && upto != Upto::projection) turn_group();
  const bool has_norm = side_.transforms() && (upto == Upto::norm || upto == Upto::last);
  const bool transforms = has_norm && side_.given.normed.empty();
  if (transforms && range.clip_before != 0) clamp_before(range.clip_before);
  if (transforms && side_.norm.applied != 0) {
    constexpr std::string_view names[] = {"q", "k", "v"};
    normalise(x_, side_, side_.group_of(row_), names[static_cast<int>(which_)]);
  }
  keep_own();
  if (has_norm && !transforms) take_normed();
  if (transforms && range.multiplier != 0) multiply(Rational(range.multiplier));
  if (transforms && range.clip_after != 0) clamp_after(range.clip_after);
  if (order == QKCTS_NORM_THEN_ROPE && upto == Upto::last) {
    for (Part& part : x_.parts) turn(std::span(part.numbers), row_);
    x_.open = turning_lanes(side_.position_of(row_));
    close_zero_pairs(0);
    take_turned(0, row_);
  }
  return std::move(x_);
}

}  // namespace

ExactVector ExactVector::rational(std::vector<Rational> numbers) {
  ExactVector x;
  x.parts.push_back({RootSum(Rational(1)), std::move(numbers)});
  return x;
}

bool ExactVector::is_zero(std::size_t lane) const {
  const auto is_nothing = [lane](const Part& part) { return part.numbers[lane].sign() == 0; };
  if (std::all_of(parts.begin(), parts.end(), is_nothing)) return true;
  return parts.size() > 1 && entry(lane).sign() == 0;
}

RootSum ExactVector::entry(std::size_t lane) const {
  RootSum sum;
  for (const Part& part : parts) sum = sum + part.factor * part.numbers[lane];
  return sum;
}

std::vector<Rational>& ExactVector::offsets() {
  for (Part& part : parts)
    if (part.factor.rational() == Rational(1)) return part.numbers;
  return parts.emplace_back(Part{RootSum(Rational(1)), std::vector<Rational>(size(), Rational(0))}).numbers;
}

RootSum dot(const ExactVector& x, const ExactVector& y) {
  RootSum sum;
  for (const Part& p : x.parts)
    for (const Part& q : y.parts) sum = sum + p.factor * q.factor * dot(p.numbers, q.numbers);
  return sum;
}

Upto upto_stage(const SideValues& side, Side which, qkcts_stage stage) {
  const bool norm_first = side.rope_order == QKCTS_NORM_THEN_ROPE;
  if (stage == norm_stage(which)) return norm_first ? Upto::norm : Upto::last;
  if (stage == rope_stage(which)) return norm_first ? Upto::last : Upto::rotation_before_norm;
  return Upto::projection;
}

ExactVector exact_vector(const CaseValues& values, Side side, std::int64_t row, Upto upto) {
  return Construction(values, side, row).make(upto);
}

}  // namespace qkcts
