// SPDX-License-Identifier: Apache-2.0
#include "harness/aggregate.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

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
  if (row(stage.verdict).effect != Effect::neutral) ++sum.verdicts[stage.verdict];
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

std::ptrdiff_t place_in_evaluation(qkcts_stage stage) {
  return std::find(all_stages.begin(), all_stages.end(), stage) - all_stages.begin();
}

std::vector<StageAggregate> fold(const RunRecord& record, const std::function<std::string(const CaseResult&)>& name) {
  std::map<std::pair<std::string, std::ptrdiff_t>, StageAggregate> folded;
  for (const CaseResult& result : record.cases) {
    const std::string contract = name(result);
    for (const StageResult& stage : result.stages) {
      StageAggregate& sum = folded[{contract, place_in_evaluation(stage.stage)}];
      sum.contract = contract;
      sum.stage = stage.stage;
      add(sum, result, stage);
    }
  }
  std::vector<StageAggregate> list;
  list.reserve(folded.size());
  for (auto& [key, sum] : folded) list.push_back(std::move(sum));
  return list;
}

bool varies_one_clause(const std::string& contract) {
  return contract.rfind("clause_", 0) == 0;
}

}  // namespace

std::vector<StageAggregate> aggregate(const RunRecord& record) {
  return fold(record, [](const CaseResult& result) { return result.contract; });
}

std::vector<StageAggregate> aggregate_briefly(const RunRecord& record) {
  std::set<std::string> violated, together;
  for (const CaseResult& result : record.cases) {
    if (violates(result.verdict)) violated.insert(result.contract);
  }
  for (const CaseResult& result : record.cases) {
    if (varies_one_clause(result.contract) && !violated.contains(result.contract)) together.insert(result.contract);
  }
  const std::string group = fmt::format("clause_* ({})", together.size());
  std::vector<StageAggregate> lines = fold(
      record, [&](const CaseResult& result) { return together.contains(result.contract) ? group : result.contract; });
  std::stable_partition(lines.begin(), lines.end(),
                        [](const StageAggregate& line) { return !varies_one_clause(line.contract); });
  return lines;
}

}  // namespace qkcts
