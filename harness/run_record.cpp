// SPDX-License-Identifier: Apache-2.0
#include "harness/run_record.hpp"

#include <algorithm>
#include <fstream>
#include <thread>
#include <utility>

#include <sys/utsname.h>

namespace qkcts {
namespace {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

// By the proven budgets alone.
int proven_code(const RunRecord& record, const RunSummary& summary) {
  if (record.interrupted_by != 0) return 128 + record.interrupted_by;
  bool conforms = false;
  bool something_ran = false;
  const bool something_missing =
      summary.cases.contains(Verdict::not_run) || summary.relations.contains(Verdict::not_run);
  const bool may_be_missing = something_missing && record.demands.allow_not_run;
  for (const auto* verdicts : {&summary.cases, &summary.relations})
    for (const auto& [verdict, count] : *verdicts) {
      if (violates(verdict)) return 1;
      conforms = conforms || row(verdict).effect == Effect::conforms;
      something_ran = something_ran || row(verdict).effect == Effect::judged;
    }
  if (conforms) return something_missing && !may_be_missing ? 1 : 0;
  if (something_ran) return 1;  // judged, and nothing of it a pass: not conforming
  return may_be_missing ? 0 : 5;
}

}  // namespace

Machine this_machine() {
  Machine machine;
  utsname name{};
  uname(&name);
  machine.system = name.sysname;
  machine.release = name.release;
  machine.architecture = name.machine;
  machine.processor = processor_name();
  machine.logical_processors = static_cast<int>(std::thread::hardware_concurrency());
  return machine;
}

void keep_worst_heat(RunRecord& record, CaseResult& result) {
  const auto order = [](qkcts_stage stage) { return std::find(all_stages.begin(), all_stages.end(), stage); };
  for (StageResult& stage : result.stages) {
    if (!stage.judgement) continue;
    HeatMap map = std::exchange(stage.judgement->heat, HeatMap());
    const double ratio = stage.judgement->max_ratio;
    auto place = std::find_if(record.heat_maps.begin(), record.heat_maps.end(),
                              [&](const StageHeat& heat) { return order(heat.stage) >= order(stage.stage); });
    const bool known = place != record.heat_maps.end() && place->stage == stage.stage;
    if (map.rows() == 0 || (known && ratio <= place->max_ratio)) continue;
    if (!known) place = record.heat_maps.emplace(place);
    *place = {stage.stage, result.slug, ratio, std::move(map)};
  }
}

RunSummary summarise(const RunRecord& record) {
  RunSummary summary;
  for (const RelationResult& result : record.relations) ++summary.relations[result.verdict];
  for (const CaseResult& result : record.cases) {
    ++summary.cases[result.verdict];
    for (const StageResult& stage : result.stages) {
      ++summary.stages[stage.verdict];
      if (stage.judgement && stage.judgement->limit && stage.judgement->limit->violations > 0) {
        ++summary.limit_violations;
      }
    }
  }
  return summary;
}

int exit_code(const RunRecord& record) {
  const RunSummary summary = summarise(record);
  const int code = proven_code(record, summary);
  const bool asked_for_more = summary.limit_violations > 0 || !unmet_demands(record).empty();
  return code == 0 && asked_for_more ? 1 : code;
}

bool over_own_limits_alone(const RunRecord& record) {
  const RunSummary summary = summarise(record);
  return summary.limit_violations > 0 && unmet_demands(record).empty() && proven_code(record, summary) == 0;
}

}  // namespace qkcts
