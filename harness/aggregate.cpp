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

std::uint64_t measured(const ElementCounts& counts) {
  return counts.judged + counts.mistrusted;
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
  // Means so far, weighed by the elements behind them.
  const auto before = static_cast<double>(measured(sum.counts)), now = static_cast<double>(measured(j.counts));
  const auto join = [&](double& mean, double further) {
    if (now > 0) mean = (mean * before + further * now) / (before + now);
  };
  join(sum.mean_ulp, j.mean_ulp);
  join(sum.signed_mean_ulp, j.signed_mean_ulp);
  join(sum.outward_mean_ulp, j.outward_mean_ulp);
  sum.p99_ulp = std::max(sum.p99_ulp, j.p99_ulp);
  add(sum.counts, j.counts);
  if (stage.plain) {
    ++sum.plain_cases;
    sum.plain_max_ulp = std::max(sum.plain_max_ulp, stage.plain->max_ulp);
    sum.plain_max_ratio = std::max(sum.plain_max_ratio, stage.plain->max_ratio);
  }
  for (const StageWarning warning : stage_warnings(stage, result)) ++sum.warnings[warning];
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

std::map<StageWarning, int> notable_warnings(const StageAggregate& line) {
  std::map<StageWarning, int> notable = line.warnings;
  std::erase_if(notable, [&](const auto& entry) {
    return entry.first == StageWarning::biased && (entry.second < 4 || 2 * entry.second <= line.cases);
  });
  return notable;
}

std::vector<StageAggregate> aggregate_stages(const RunRecord& record) {
  return fold(record, [](const CaseResult&) { return std::string(); });
}

std::vector<FamilyAggregate> aggregate_families(const RunRecord& record) {
  std::map<std::string, FamilyAggregate> folded;
  for (const CaseResult& result : record.cases) {
    FamilyAggregate& sum = folded[result.family];
    sum.family = result.family;
    ++sum.verdicts[result.verdict];
    sum.verdict = graver(sum.verdict, result.verdict);
    for (const StageResult& stage : result.stages) {
      if (!stage.judgement) continue;
      sum.max_ulp = std::max(sum.max_ulp, stage.judgement->max_ulp);
      if (sum.measured && stage.judgement->max_ratio <= sum.max_ratio) continue;
      sum.max_ratio = stage.judgement->max_ratio;
      sum.worst_case = result.slug;
      sum.worst_stage = stage.stage;
      sum.measured = true;
    }
  }
  std::vector<FamilyAggregate> list;
  for (auto& [name, sum] : folded) list.push_back(std::move(sum));
  std::stable_partition(list.begin(), list.end(), [](const FamilyAggregate& f) { return violates(f.verdict); });
  return list;
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
