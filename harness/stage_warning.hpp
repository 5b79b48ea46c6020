// SPDX-License-Identifier: Apache-2.0
// What is unusual about a stage and legal all the same. Warnings are reported and decide nothing: the law behind them
// holds for random rounding errors only. docs/report_format.md, "Warning level".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "harness/case_run.hpp"

namespace qkcts {

enum class StageWarning : std::uint8_t {
  large,   // error/Delta above the square-root law, and far above that of the plain evaluation
  biased,  // the errors lean to one side: a constant offset, or truncation
};
std::string_view warning_name(StageWarning warning);
std::string_view warning_meaning(StageWarning warning);

// The longest sum through which an element of the stage passes: of D lanes, of the visible keys, or 1.
std::int64_t longest_sum(qkcts_stage stage, const qkcts_shape& shape);

// min(1, 6/sqrt(n)): the share of Delta that n independent roundings of mean zero stay within, but for one element in
// ten million, if all of Delta comes from a sum of n terms.
double square_root_level(std::int64_t n);

std::vector<StageWarning> stage_warnings(const StageResult& stage, const CaseResult& owner);

}  // namespace qkcts
