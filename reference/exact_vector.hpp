// SPDX-License-Identifier: Apache-2.0
// A row of q or k after norm, clamps and rotation as exact numbers: entry = numerator / divisor + offset.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/case_values.hpp"
#include "reference/root_sum.hpp"

namespace qkcts {

struct ExactVector {
  std::vector<Rational> numerator;
  std::vector<Rational> offset;  // empty: 0
  RootSum inverse;               // 1 / divisor

  // Under computed angles a pair that really turns (angle and vector not 0) has no such entries: both lanes are open.
  // Their numbers are then those of the pair before it turned, times the attention factor, so that two vectors turned
  // by the same angles have the dot product of these numbers, as long as `rigid` holds: whatever came after the
  // rotation scaled all lanes alike.
  std::vector<bool> open;  // empty: none
  bool rigid = true;

  bool is_open(std::size_t lane) const { return !open.empty() && open[lane]; }
  bool is_zero(std::size_t lane) const {
    return numerator[lane].sign() == 0 && (offset.empty() || offset[lane].sign() == 0);
  }
  RootSum entry(std::size_t lane) const {
    return inverse * numerator[lane] + RootSum(offset.empty() ? Rational(0) : offset[lane]);
  }
};

enum class Upto : std::uint8_t { rotation_before_norm, norm, last };

// Throws InputError if the root is exactly 0 (0/0: a zero vector under eps = 0).
ExactVector exact_vector(const CaseValues& values, Side side, std::int64_t row, Upto upto);

}  // namespace qkcts
