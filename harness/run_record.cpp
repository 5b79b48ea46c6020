// SPDX-License-Identifier: Apache-2.0
#include "harness/run_record.hpp"

#include <algorithm>
#include <fstream>
#include <thread>

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
  const bool something_missing = summary.cases.count(Verdict::not_run) != 0;
  for (const auto* verdicts : {&summary.cases, &summary.relations})
    for (const auto& [verdict, count] : *verdicts) {
      if (violates(verdict)) return 1;
      conforms = conforms || row(verdict).effect == Effect::conforms;
      something_ran = something_ran || row(verdict).effect == Effect::judged;
    }
  if (conforms) return something_missing ? 1 : 0;
  return something_ran ? 1 : 5;  // judged, and nothing of it a pass: not conforming
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
  return code == 0 && summary.limit_violations > 0 ? 1 : code;
}

bool over_own_limits_alone(const RunRecord& record) {
  const RunSummary summary = summarise(record);
  return summary.limit_violations > 0 && proven_code(record, summary) == 0;
}

}  // namespace qkcts
