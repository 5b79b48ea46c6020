// SPDX-License-Identifier: Apache-2.0
// What a stage's report says of all its elements, collected while they pass by.
#pragma once

#include <cstddef>
#include <optional>

#include "harness/heat_columns.hpp"
#include "harness/judgement.hpp"
#include "harness/quick_distance.hpp"
#include "harness/ulp_counts.hpp"

namespace qkcts {

class StageTally {
 public:
  // `result` outlives the object; `rows` and `length` are those of the stored elements.
  StageTally(StageJudgement& result, const std::optional<Limit>& limit, std::size_t rows, std::size_t length);

  // Elements come in order; `row` counts the stored rows.
  void add(const JudgedElement& element, std::size_t row);

  // The same for the elements from..to (one at least) of `distances`, whose first stands in column `column`: all judged
  // by Delta and within it, where no limit of the user's asks for more. What comes back is the place among `distances`
  // of the worst of them, if it may be the worst of all so far: that element is owed to offer_worst().
  std::optional<std::size_t> add_within(std::size_t row, std::size_t column, const QuickDistances& distances,
                                        std::size_t from, std::size_t to);
  // The same for all of them, where measure_quickly() has added them to sums().
  const UlpSums& sums() const { return sums_; }
  std::optional<std::size_t> add_block(std::size_t row, std::size_t column, const QuickDistances& distances,
                                       std::size_t count, const UlpSums& sums);
  void offer_worst(const JudgedElement& element);

  // Means, quantiles, histogram and heat map, when all have passed.
  void finish();

 private:
  void count(const JudgedElement& element);
  void measure(double ulps, double ratio, double signed_ulps, double outward_ulps);
  std::optional<std::size_t> add_figures(std::size_t row, std::size_t column, const QuickDistances& distances,
                                         std::size_t from, std::size_t to, double largest_ratio);

  StageJudgement& result_;
  HeatColumns heat_;
  UlpCounts ulps_;
  UlpSums sums_;
};

}  // namespace qkcts
