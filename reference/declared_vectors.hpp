// SPDX-License-Identifier: Apache-2.0
// The rounding points of q, k and v (QK-ROUND), decided in the order of evaluation. Their numbers become `given` in the
// values of the case, from where everything after them is computed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reference/attention.hpp"
#include "reference/levels.hpp"
#include "reference/rounding_point.hpp"

namespace qkcts {

class DeclaredVectors {
 public:
  // `before` of `exact` has its size wherever a stage has a point.
  DeclaredVectors(CaseValues& values, const RowPlaces& rows, Levels& levels, ExactStages& exact)
      : values_(values), rows_(rows), levels_(levels), exact_(exact) {}

  // But for the points of `known` sides, of q with that of q times the scale. Throws InputError where a value
  // overflows, UndecidedError where one is not decided.
  void decide(std::span<const Side> known);

 private:
  void decide_side(Side which);
  void decide_input_norm(Side which, const VectorPoints& points);
  void decide_projection(Side which, const DeclaredPoint& point);
  void decide_norm(Side which, const VectorPoints& points);
  void decide_rotation(Side which, const VectorPoints& points);
  void decide_scaled_q(const DeclaredPoint& point);

  bool is_excluded(Side which, std::int64_t group) const;
  std::vector<double> no_numbers(Side which) const;  // of every entry of a side: NaN, until decided
  qkcts_stage stage_before(Side which, qkcts_stage stage) const;
  // Entries of a group after a stage, or as they are in the inputs; nothing if a root may be 0 at this precision.
  template <std::size_t L>
  std::optional<std::vector<Enclosure<level_digits[L]>>> entries(Side which, std::int64_t group, qkcts_stage after);

  CaseValues& values_;
  const RowPlaces& rows_;
  Levels& levels_;
  ExactStages& exact_;
};

}  // namespace qkcts
