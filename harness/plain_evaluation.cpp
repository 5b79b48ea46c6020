// SPDX-License-Identifier: Apache-2.0
#include "harness/plain_evaluation.hpp"

#include <algorithm>

namespace qkcts {

PlainEvaluation::PlainEvaluation() : scalar_("scalar") {}

qkcts_rounding stored_stages(qkcts_rounding rounding, Format format) {
  if (format == Format::binary64 || format == Format::binary32) return rounding;
  const auto stored = static_cast<std::uint32_t>(format);
  for (std::uint32_t* const point :
       {&rounding.q.projection, &rounding.k.projection, &rounding.q.norm, &rounding.k.norm, &rounding.v.norm,
        &rounding.q.rope, &rounding.k.rope, &rounding.scores, &rounding.capped, &rounding.probs, &rounding.output,
        &rounding.q_input.norm, &rounding.k_input.norm})
    if (*point == 0) *point = stored;
  return rounding;
}

void PlainEvaluation::add(CaseResult& result, const GoldenCase& golden) const {
  const auto profile = std::find(golden.profiles.begin(), golden.profiles.end(), result.profile);
  const bool judged = std::any_of(result.stages.begin(), result.stages.end(),
                                  [](const StageResult& stage) { return stage.judgement.has_value(); });
  if (!judged || profile == golden.profiles.end()) return;
  Case plain = golden.input;
  plain.contract.terms.rounding = stored_stages(plain.contract.terms.rounding, result.format);
  const std::optional<StageBytes> outputs = scalar_.outputs(plain);
  if (!outputs) return;
  for (StageResult& stage : result.stages) {
    const std::vector<std::byte>& bytes = (*outputs)[stage.stage];
    if (!stage.judgement || bytes.empty()) continue;
    const StageJudgement j =
        judge_stage(golden, stage.stage, static_cast<std::size_t>(profile - golden.profiles.begin()), bytes);
    stage.plain = PlainError{j.max_ulp, j.p99_ulp, j.mean_ulp, j.max_ratio};
  }
}

}  // namespace qkcts
