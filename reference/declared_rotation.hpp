// SPDX-License-Identifier: Apache-2.0
// A rotation with rounding points: one row, its four products per pair and its two sums. Lanes that are not rotated
// have no point.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/exact_vector.hpp"
#include "reference/rope.hpp"
#include "reference/rounding_point.hpp"

namespace qkcts {

class DeclaredRotation {
 public:
  using Ask = PointDecision::Ask;
  template <unsigned Digits>
  using Waves = std::span<const std::pair<Enclosure<Digits>, Enclosure<Digits>>>;  // cosine and sine of every pair

  DeclaredRotation(const CaseValues& values, Side which, std::int64_t row, const VectorPoints& points);
  DeclaredRotation(const DeclaredRotation&) = delete;  // the rules refer to it
  DeclaredRotation& operator=(const DeclaredRotation&) = delete;

  // At one precision, from the lanes before the rotation; true once everything is decided.
  template <unsigned Digits>
  bool walk(std::span<const Enclosure<Digits>> head, Waves<Digits> waves, Ask ask);

  // Of pair i < R/2: sum 0 is left in the first lane of left_lanes(), sum 1 in the second.
  const AtPoint& sum(std::int64_t pair, int which) const {
    return sums_.at(static_cast<std::size_t>(2 * pair + which));
  }
  bool is_complete() const { return sums_.is_complete(); }
  [[noreturn]] void refuse(long bits) const;

 private:
  // The products of a pair (a, b): a C, b S, b C, a S.
  std::optional<RootSum> exact_product(std::size_t i);
  std::optional<RootSum> exact_sum(std::size_t i);
  std::optional<std::pair<Rational, Rational>> exact_wave(std::int64_t pair) const;
  std::string where(std::int64_t pair, std::size_t lane) const;

  const CaseValues& values_;
  Side which_;
  std::int64_t row_;
  std::int64_t pairs_;
  bool negative_;
  std::optional<ExactVector> exact_;  // the row before the rotation
  std::optional<PointDecision> products_;
  PointDecision sums_;
};

template <unsigned Digits>
bool DeclaredRotation::walk(std::span<const Enclosure<Digits>> head, Waves<Digits> waves, Ask ask) {
  using Number = Enclosure<Digits>;
  std::vector<Number> products;
  for (std::int64_t i = 0; i < pairs_; ++i) {
    const auto [a, b] = pair_lanes(values_.terms.rope, values_.shape.head_dim, i);
    const auto& [cos, sin] = waves[static_cast<std::size_t>(i)];
    for (const Number& product : {head[a] * cos, head[b] * sin, head[b] * cos, head[a] * sin})
      products.push_back(product);
  }
  if (products_ && !products_->apply(std::span(products), ask)) return false;
  std::vector<Number> sums;
  for (std::size_t i = 0; i < products.size(); i += 4) {
    sums.push_back(negative_ ? products[i] + products[i + 1] : products[i] - products[i + 1]);
    sums.push_back(negative_ ? products[i + 2] - products[i + 3] : products[i + 2] + products[i + 3]);
  }
  return sums_.apply(std::span(sums), ask);
}

}  // namespace qkcts
