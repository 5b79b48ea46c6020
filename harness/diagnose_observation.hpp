// SPDX-License-Identifier: Apache-2.0
// What an adapter wrote for one case, held against the contract that was asked for: which elements fail, and which rows
// tell other contracts apart soonest.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "harness/case_run.hpp"

namespace qkcts {

class Observation {
 public:
  // The stages that were written, of `golden`, judged by `profile`, an index into golden.profiles. `golden` must
  // outlive the object.
  Observation(const GoldenCase& golden, std::size_t profile, StageBytes outputs);

  const GoldenCase& golden() const { return golden_; }
  std::size_t profile() const { return profile_; }
  StageSet stages() const { return stages_; }  // observed ones
  std::uint64_t judged() const { return judged_; }
  std::uint64_t failing() const { return failing_; }

  std::uint64_t got(qkcts_stage stage, std::size_t row, std::size_t column) const;
  // Of an element of a stored row, `stored` counting the stored elements.
  bool fails(qkcts_stage stage, std::size_t stored) const { return ratios_[stage][stored] > 0; }
  // Its error/Delta if it fails, else 0.
  double ratio(qkcts_stage stage, std::size_t stored) const { return ratios_[stage][stored]; }
  // The largest error of an element that fails, in units of the largest value of its row; infinite where classes
  // differ.
  double coarseness() const;
  // In order of evaluation; QKCTS_STAGE_COUNT if none fails.
  qkcts_stage first_failing() const;

  StageRows every_stored_row() const;
  // A few of them: failing and passing ones of every stage.
  StageRows telling_rows() const;

 private:
  std::set<std::uint32_t> telling_rows_of(qkcts_stage stage) const;

  const GoldenCase& golden_;
  std::size_t profile_;
  StageBytes outputs_;
  StageSet stages_ = 0;
  std::array<std::vector<double>, QKCTS_STAGE_COUNT> ratios_;      // finite, also where classes differ
  std::array<std::vector<double>, QKCTS_STAGE_COUNT> row_ratios_;  // of stored rows; 0: none of it fails
  std::uint64_t judged_ = 0, failing_ = 0;
};

}  // namespace qkcts
