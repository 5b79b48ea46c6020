// SPDX-License-Identifier: Apache-2.0
// A row of q, k or v after projection, norm, clamps and rotation as exact numbers.
//
// Projections, means, gains and rotations are rational and linear; only norms bring in roots, one for all lanes each.
// So a row is the sum of a few parts, rational numbers times one algebraic factor: numerators over the divisor of the
// norm, offsets with factor 1, and one more part where a normed row is projected with a bias and normed again.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "reference/case_values.hpp"
#include "reference/root_sum.hpp"

namespace qkcts {

struct ExactVector {
  struct Part {
    RootSum factor;  // not 0
    std::vector<Rational> numbers;
  };
  std::vector<Part> parts;  // at least one, all of one length

  static ExactVector rational(std::vector<Rational> numbers);

  // Under computed angles a pair that really turns (angle and vector not 0) has no such entries: both lanes are open.
  // Their numbers are then those of the pair before it turned, times the attention factor, so that two vectors turned
  // by the same angles have the dot product of these numbers, as long as `rigid` holds: whatever came after the
  // rotation scaled all lanes alike.
  std::vector<bool> open;  // empty: none
  bool rigid = true;

  std::size_t size() const { return parts.front().numbers.size(); }
  bool is_open(std::size_t lane) const { return !open.empty() && open[lane]; }
  bool is_zero(std::size_t lane) const;
  RootSum entry(std::size_t lane) const;
  // The numbers of the part with factor 1; adds one if there is none.
  std::vector<Rational>& offsets();
};

// Of what the numbers say, open or not.
RootSum dot(const ExactVector& x, const ExactVector& y);

enum class Upto : std::uint8_t { projection, rotation_before_norm, norm, last };
// How far a vector has come after a stage of its side.
Upto upto_stage(const SideValues& side, Side which, qkcts_stage stage);

// 1/d(t, eps). Throws InputError, beginning with `what`, if d is exactly 0 (0/0: a vector without spread under eps =
// 0).
RootSum inverse_root(const RootSum& t, const qkcts_norm& norm, std::string_view what);

// Throws InputError if the root is exactly 0 (0/0: a zero vector under eps = 0).
ExactVector exact_vector(const CaseValues& values, Side side, std::int64_t row, Upto upto);

}  // namespace qkcts
