// SPDX-License-Identifier: Apache-2.0
#include "harness/baseline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace qkcts {
namespace {

auto place(const BaselineEntry& entry) {
  return std::tuple(entry.slug, std::find(all_stages.begin(), all_stages.end(), entry.stage) - all_stages.begin());
}

auto figures(const BaselineEntry& entry) {
  return std::tie(entry.contract, entry.profile, entry.implementation, entry.max_ulp, entry.max_ratio,
                  entry.output_sha256);
}

// Of the others a baseline keeps what it says.
std::set<std::string> cases_that_ended(const RunRecord& record) {
  std::set<std::string> slugs;
  for (const CaseResult& result : record.cases)
    if (result.verdict != Verdict::not_run && result.verdict != Verdict::skipped) slugs.insert(result.slug);
  return slugs;
}

}  // namespace

bool operator==(const BaselineScope& a, const BaselineScope& b) {
  return std::tie(a.adapter, a.machine_class, a.suite, a.corpus_digest) ==
         std::tie(b.adapter, b.machine_class, b.suite, b.corpus_digest);
}

std::string machine_class(const RunRecord& record) {
  const std::string& processor = record.machine.processor;
  const std::string& device = record.description.device;
  return fmt::format("{}{}{}{}{}", record.machine.architecture, processor.empty() ? "" : ", ", processor,
                     device.empty() ? "" : ", ", device);
}

BaselineRun baseline_of(const RunRecord& record, const std::string& machine_class) {
  BaselineRun run;
  run.scope = {record.description.name, machine_class, record.corpus_suite, record.corpus_digest};
  for (const CaseResult& result : record.cases)
    for (const StageResult& stage : result.stages) {
      if (!stage.judgement || violates(stage.verdict) || stage.verdict == Verdict::xfail) continue;
      run.entries.push_back({result.contract, result.slug, stage.stage, result.profile, result.implementation,
                             stage.judgement->max_ulp, stage.judgement->max_ratio, stage.output_sha256});
    }
  std::sort(run.entries.begin(), run.entries.end(),
            [](const BaselineEntry& a, const BaselineEntry& b) { return place(a) < place(b); });
  return run;
}

BaselineChange update_baseline(Baseline& baseline, const RunRecord& record, const std::string& machine_class) {
  const BaselineRun fresh = baseline_of(record, machine_class);
  auto old = std::find_if(baseline.runs.begin(), baseline.runs.end(),
                          [&](const BaselineRun& run) { return run.scope == fresh.scope; });
  if (old == baseline.runs.end()) old = baseline.runs.insert(old, {fresh.scope, {}});
  std::map<decltype(place(BaselineEntry())), BaselineEntry> entries;
  const std::set<std::string> ended = cases_that_ended(record);
  BaselineChange change;
  std::map<decltype(place(BaselineEntry())), BaselineEntry> replaced;
  for (BaselineEntry& entry : old->entries)
    (ended.contains(entry.slug) ? replaced : entries).emplace(place(entry), std::move(entry));
  for (const BaselineEntry& entry : fresh.entries) {
    const auto before = replaced.find(place(entry));
    if (before == replaced.end()) {
      ++change.added;
    } else {
      change.changed += figures(before->second) == figures(entry) ? 0 : 1;
      replaced.erase(before);
    }
    entries.insert_or_assign(place(entry), entry);
  }
  change.removed = replaced.size();
  old->entries.clear();
  for (auto& [key, entry] : entries) old->entries.push_back(std::move(entry));
  change.entries = old->entries.size();
  if (old->entries.empty()) baseline.runs.erase(old);
  return change;
}

}  // namespace qkcts
