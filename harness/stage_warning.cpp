// SPDX-License-Identifier: Apache-2.0
#include "harness/stage_warning.hpp"

#include <algorithm>
#include <cmath>

namespace qkcts {
namespace {

constexpr double lambda = 6;           // standard deviations
constexpr double beyond_plain = 4;     // times the error/Delta of the plain evaluation
constexpr std::uint64_t enough = 256;  // elements of which a mean says something
// Measured (docs/report_format.md, "Warning level"): between 8 and 32, and from 0.5 on, sound kernels and truncating
// ones are told apart alike.
constexpr double compact = 16;              // of the largest error in the mean one
constexpr double leaning = 0.5;             // of |mean of signed errors| in the mean error
constexpr double smallest_mean_ulp = 0.05;  // below it nearly every element is correctly rounded

// Half an ulp of storage does not grow with n: a bfloat16 output may come near Delta however long its row is. The plain
// evaluation stores in the same format, so what it attains as well is no finding.
bool is_large(const StageResult& stage, const CaseResult& owner) {
  const StageJudgement& j = *stage.judgement;
  if (!(j.max_ratio > square_root_level(longest_sum(stage.stage, owner.shape)))) return false;
  return stage.plain && j.max_ratio > beyond_plain * stage.plain->max_ratio;
}

// Where single elements near 0 are off by very many ulp, the means are theirs and say nothing of the others.
bool is_biased(const StageJudgement& j) {
  if (j.counts.judged + j.counts.mistrusted < enough || !(j.mean_ulp > smallest_mean_ulp)) return false;
  if (!(j.max_ulp <= compact * j.mean_ulp)) return false;
  return std::max(std::fabs(j.signed_mean_ulp), std::fabs(j.outward_mean_ulp)) > leaning * j.mean_ulp;
}

}  // namespace

std::string_view warning_name(StageWarning warning) {
  return warning == StageWarning::large ? "large" : "biased";
}

std::string_view warning_meaning(StageWarning warning) {
  return warning == StageWarning::large ? "errors above the square-root law, and 4 x plain"
                                        : "errors have one sign (an offset, or truncation)";
}

std::int64_t longest_sum(qkcts_stage stage, const qkcts_shape& shape) {
  switch (stage) {
    case QKCTS_STAGE_PROBS:
    case QKCTS_STAGE_LSE:
    case QKCTS_STAGE_OUTPUT:
      return std::max(shape.k_len, shape.head_dim);
    case QKCTS_STAGE_V_NORM:
      return shape.v_head_dim;
    default:
      return shape.head_dim;
  }
}

double square_root_level(std::int64_t n) {
  return std::min(1.0, lambda / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, n))));
}

std::vector<StageWarning> stage_warnings(const StageResult& stage, const CaseResult& owner) {
  std::vector<StageWarning> warnings;
  if (!stage.judgement || violates(stage.verdict)) return warnings;
  if (is_large(stage, owner)) warnings.push_back(StageWarning::large);
  if (is_biased(*stage.judgement)) warnings.push_back(StageWarning::biased);
  return warnings;
}

}  // namespace qkcts
