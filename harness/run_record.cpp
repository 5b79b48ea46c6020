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
  if (record.interrupted_by != 0) return 128 + record.interrupted_by;
  const RunSummary summary = summarise(record);
  bool conforms = false;
  bool something_ran = false;
  for (const auto& [verdict, count] : summary.cases) {
    if (violates(verdict)) return 1;
    conforms = conforms || row(verdict).effect == Effect::conforms;
    something_ran = something_ran || row(verdict).effect == Effect::judged;
  }
  if (summary.limit_violations > 0) return 1;
  if (conforms) return 0;
  return something_ran ? 1 : 5;  // judged, and nothing of it a pass: not conforming
}

}  // namespace qkcts
