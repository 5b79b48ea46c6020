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

  // Rows come in order, and blocks of a row, not the elements of a block; `row` counts the stored rows.
  void add(const JudgedElement& element, std::size_t row);
  // One that fails nothing, and that no figure speaks of.
  void count(ElementRule rule, Trust trust);

  // What measure_within() adds to, and then the blocks: all judged by Delta, where no limit of the user's asks for
  // more.
  UlpSums& sums() { return sums_; }
  // True if the worst of all elements so far may be among them. Then those blocks of which may_be_worst() says so, too,
  // are owed to offer_worst(), in their order.
  bool add_within(std::size_t row, std::size_t column, const WithinDelta& within, std::size_t count);
  bool may_be_worst(double largest_ratio) const { return !worst_ || largest_ratio >= result_.max_ratio; }
  void offer_worst(std::size_t row, std::size_t column, const EachDistance& each, std::size_t count);

  // The same for the elements of a block that are not put aside. Those beyond Delta are owed to fail().
  void add_each(std::size_t row, std::size_t column, const EachDistance& each, std::size_t count);
  void fail() { ++result_.counts.failed; }
  bool keeps_more_failures() const { return result_.failures.size() < failures_kept; }
  void keep_failure(const JudgedElement& element) { result_.failures.push_back(element); }

  // Means, quantiles, histogram and heat map, when all have passed.
  void finish();
  // By ratio, by ulps where that is the same, the first of equal ones.
  struct Worst {
    double ratio = 0, ulps = 0;
    std::size_t row = 0, column = 0;
  };
  const std::optional<Worst>& worst() const { return worst_; }

 private:
  void measure(const JudgedElement& element);
  void offer(const Worst& other);

  StageJudgement& result_;
  HeatColumns heat_;
  UlpCounts ulps_;
  UlpSums sums_;
  std::optional<Worst> worst_;
};

// What the elements of a block are that something else judges.
void put_aside(EachDistance& each, std::size_t i);

}  // namespace qkcts
