// SPDX-License-Identifier: Apache-2.0
// The rounding points of one row of attention (QK-ROUND): product, scores, capped, probs, output, each decided for the
// whole row before the next is computed from its numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/attention.hpp"
#include "reference/exact_softmax.hpp"
#include "reference/levels.hpp"
#include "reference/recorder.hpp"
#include "reference/rounding_point.hpp"

namespace qkcts {

class DeclaredRows {
 public:
  // `values` has the numbers of the points of q, k and v.
  DeclaredRows(CaseValues& values, const RowPlaces& rows, Levels& levels, ExactCases& scores, ExactSoftmax& softmax,
               Recorder& recorder)
      : values_(values),
        rows_(rows),
        points_(row_points(values)),
        levels_(levels),
        scores_(scores),
        softmax_(softmax),
        recorder_(recorder) {}

  // Of an empty row under `uniform`: 1/Lk at the point `probs`.
  void decide_uniform();

  // Puts the numbers of a row that is held into values.given, and drops those of the row before.
  void decide(std::size_t row);

 private:
  std::vector<ElementPlace> elements(qkcts_stage stage, std::size_t row) const;
  void decide_products(const DeclaredPoint& point, std::size_t row);
  void decide_stage(qkcts_stage stage, const DeclaredPoint& point, std::size_t row, std::vector<double>& numbers);

  CaseValues& values_;
  const RowPlaces& rows_;
  RowPoints points_;
  Levels& levels_;
  ExactCases& scores_;
  ExactSoftmax& softmax_;
  Recorder& recorder_;
};

}  // namespace qkcts
