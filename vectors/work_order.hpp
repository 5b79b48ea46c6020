// SPDX-License-Identifier: Apache-2.0
// Which case of a plan is worked on next, so that a corpus of any size is made in the same memory.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "vectors/plan.hpp"

namespace qkcts {

// Outcomes are taken in order of the plan; meanwhile later cases are worked on, as far as they fit. Not thread-safe.
class WorkOrder {
 public:
  explicit WorkOrder(const Plan& plan);  // which outlives this

  // The first case not started that fits beside those in work; one with a long cache lets smaller ones pass. Never
  // empty while nothing is in work, all finished cases are taken and some are left.
  std::optional<std::size_t> start();
  void finish(std::size_t index);  // its outcome waits now
  void take(std::size_t index);    // each index once, in order

  bool all_started() const { return first_open_ == plan_.cases.size(); }

 private:
  bool fits(std::size_t index) const;
  bool may_wait(std::size_t index) const;  // its outcome, for those before it

  const Plan& plan_;
  std::vector<bool> started_;
  std::size_t first_open_ = 0, taken_ = 0, in_work_ = 0;
  double working_bytes_ = 0;  // of the cases in work
  double bytes_ahead_ = 0;    // of outcomes, of the cases in work or waiting
};

}  // namespace qkcts
