// SPDX-License-Identifier: Apache-2.0
#include "harness/aggregate.hpp"

#include <map>
#include <utility>

namespace qkcts {
namespace {

void add(ElementCounts& sum, const ElementCounts& counts) {
  sum.judged += counts.judged;
  sum.exact += counts.exact;
  sum.mistrusted += counts.mistrusted;
  sum.domain += counts.domain;
  sum.hidden += counts.hidden;
  sum.failed += counts.failed;
}

void add(StageAggregate& sum, const CaseResult& result, const StageResult& stage) {
  sum.verdict = graver(sum.verdict, stage.verdict);
  if (!stage.judgement) {
    ++sum.not_judged;
    return;
  }
  const StageJudgement& j = *stage.judgement;
  ++sum.cases;
  sum.max_ulp = std::max(sum.max_ulp, j.max_ulp);
  if (sum.worst_case.empty() || j.max_ratio > sum.max_ratio) {
    sum.max_ratio = j.max_ratio;
    sum.worst_case = result.slug;
  }
  add(sum.counts, j.counts);
  for (std::size_t i = 0; i < sum.histogram.size(); ++i) sum.histogram[i] += j.histogram[i];
  if (!j.limit) return;
  ++sum.limits;
  sum.limits_exceeded += j.limit->violations > 0 ? 1 : 0;
}

}  // namespace

std::vector<StageAggregate> aggregate(const RunRecord& record) {
  std::map<std::pair<std::string, int>, StageAggregate> folded;
  for (const CaseResult& result : record.cases) {
    for (const StageResult& stage : result.stages) {
      StageAggregate& sum = folded[{result.contract, stage.stage}];
      sum.contract = result.contract;
      sum.stage = stage.stage;
      add(sum, result, stage);
    }
  }
  std::vector<StageAggregate> list;
  for (auto& [key, sum] : folded) list.push_back(std::move(sum));
  return list;
}

}  // namespace qkcts
