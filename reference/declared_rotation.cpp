// SPDX-License-Identifier: Apache-2.0
#include "reference/declared_rotation.hpp"

#include "reference/refusal.hpp"

namespace qkcts {
DeclaredRotation::DeclaredRotation(const CaseValues& values, Side which, std::int64_t row, const VectorPoints& points)
    : values_(values),
      which_(which),
      row_(row),
      pairs_(rotated_lanes(values.terms.rope, values.shape.head_dim) / 2),
      negative_(values.terms.rotation.sense == QKCTS_SENSE_NEGATIVE),
      sums_(
          values, *points.rope, static_cast<std::size_t>(2 * pairs_),
          [this](std::size_t i) { return where(static_cast<std::int64_t>(i / 2), i % 2); },
          [this](std::size_t i, const Rational& t) { return standing(exact_sum(i), t); }) {
  if (points.product)
    products_.emplace(
        values, *points.product, static_cast<std::size_t>(4 * pairs_),
        [this](std::size_t i) { return where(static_cast<std::int64_t>(i / 4), i % 4 / 2); },
        [this](std::size_t i, const Rational& t) { return standing(exact_product(i), t); });
}

std::string DeclaredRotation::where(std::int64_t pair, std::size_t lane) const {
  const auto [a, b] = left_lanes(values_.terms, values_.shape.head_dim, pair);
  return place_text(values_, {rope_stage(which_), row_, static_cast<std::int64_t>(lane == 0 ? a : b)});
}

// Nothing where a computed angle is not 0: its cosine and sine are transcendental (or so conjectured, where pi or
// logarithms enter the frequency), and so are their products with algebraic numbers that are not 0.
std::optional<std::pair<Rational, Rational>> DeclaredRotation::exact_wave(std::int64_t pair) const {
  const SideValues& side = values_.side(which_);
  const std::uint32_t position = side.position_of(row_);
  if (!values_.frequencies) return TableWaves<Rational>(values_, side.head_of(row_), position)(pair);
  if (position != 0 && !values_.frequencies->is_zero(pair)) return std::nullopt;
  return std::pair(Rational(values_.frequencies->attention_factor()), Rational(0));
}

std::optional<RootSum> DeclaredRotation::exact_product(std::size_t i) {
  if (!exact_) {
    const bool norm_first = values_.side(which_).rope_order == QKCTS_NORM_THEN_ROPE;
    exact_ = exact_vector(values_, which_, row_, norm_first ? Upto::norm : Upto::projection);
  }
  const auto pair = static_cast<std::int64_t>(i / 4);
  const auto [a, b] = pair_lanes(values_.terms.rope, values_.shape.head_dim, pair);
  const std::size_t lane = i % 4 == 0 || i % 4 == 3 ? a : b;
  if (exact_->is_zero(lane)) return RootSum();
  const std::optional<std::pair<Rational, Rational>> wave = exact_wave(pair);
  if (!wave) return std::nullopt;
  return exact_->entry(lane) * (i % 2 == 0 ? wave->first : wave->second);
}

std::optional<RootSum> DeclaredRotation::exact_sum(std::size_t i) {
  std::optional<RootSum> parts[2];
  for (const std::size_t j : {0, 1}) {
    const std::size_t product = 2 * i + j;
    parts[j] = products_ ? RootSum(Rational(products_->at(product).after)) : exact_product(product);
    if (!parts[j]) return std::nullopt;
  }
  const bool subtracts = (i % 2 == 0) != negative_;
  return subtracts ? *parts[0] - *parts[1] : *parts[0] + *parts[1];
}

void DeclaredRotation::refuse(long bits) const {
  if (products_ && !products_->is_complete()) products_->refuse(bits);
  sums_.refuse(bits);
}

}  // namespace qkcts
