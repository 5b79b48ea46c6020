// SPDX-License-Identifier: Apache-2.0
// QK-SPECIAL: what NaN and infinities in the inputs make of every element of every stage, and the case without them
// that gives all elements which they do not reach.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/budget.hpp"
#include "conformance/case.hpp"
#include "conformance/evidence.hpp"
#include "conformance/outcome.hpp"

namespace qkcts {

// Does the case hold a NaN or an infinity that takes part? -inf in an additive bias hides a key and does not; nor does,
// under hidden_values `excluded`, what stands at keys that no query sees.
bool has_special_values(const Case& c);

// The first NaN or infinity that may not stand where it stands, as one line; empty if none. Inputs have their shapes.
std::string special_value_fault(const Case& c);

class SpecialValues {
 public:
  // `c` must have special values, and no case_fault().
  explicit SpecialValues(const Case& c);

  // The case with a number in the place of each special value. No element that is a number in at() depends on it: the
  // sets of outcomes are made without looking at the numbers that stand in.
  const Case& stand_in() const { return stand_in_; }

  Outcomes at(qkcts_stage stage, std::int64_t row, std::int64_t column) const {
    return outcomes_[stage][static_cast<std::size_t>(row * lengths_[stage] + column)];
  }
  // The position is hidden, and what stands there is not judged by its class.
  bool is_hidden(qkcts_stage stage, std::int64_t row, std::int64_t column) const;
  // A row of [B,Hq,Lq] whose weights are not all numbers.
  bool is_special_row(std::int64_t row) const { return special_rows_[static_cast<std::size_t>(row)]; }

 private:
  friend class SpecialRows;

  Case stand_in_;
  std::array<std::vector<Outcomes>, QKCTS_STAGE_COUNT> outcomes_;  // whole stages
  std::array<std::int64_t, QKCTS_STAGE_COUNT> lengths_{};
  std::vector<bool> hidden_;  // [B,Hq,Lq,Lk]
  std::vector<bool> special_rows_;
};

// How an element is judged that is not a number in every conforming implementation, and the value that stands for it.
struct SpecialJudgement {
  ElementRule rule = ElementRule::free;
  double value = 0;
};
SpecialJudgement special_judgement(Outcomes outcomes);

// Overwrites what `rows` of the stand-in have at elements that special values reach.
void put_special_budgets(const SpecialValues& special, const StageRows& rows,
                         std::array<StageBudget, QKCTS_STAGE_COUNT>& budgets);

}  // namespace qkcts
