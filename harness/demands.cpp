// SPDX-License-Identifier: Apache-2.0
#include "harness/demands.hpp"

#include <fmt/format.h>

#include <map>

#include <fnmatch.h>

#include "harness/run_record.hpp"
#include "harness/value_text.hpp"

namespace qkcts {
namespace {

// "2 cases ran 'scalar fallback'", for each implementation that is none of those demanded.
void other_implementations(const RunRecord& record, std::vector<std::string>& lines) {
  if (record.demands.implementation.empty()) return;
  std::map<std::string, std::size_t> others;
  for (const CaseResult& result : record.cases)
    if (result.calls > 0 && fnmatch(record.demands.implementation.c_str(), result.implementation.c_str(), 0) != 0)
      ++others[result.implementation];
  for (const auto& [name, cases] : others)
    lines.push_back(fmt::format("{} ran '{}', where '{}' is required", counted(cases, "case", "cases"), name,
                                record.demands.implementation));
}

}  // namespace

Json demands_json(const Demands& demands) {
  return {{"require_full", demands.everything},
          {"allow_not_run", demands.allow_not_run},
          {"require_implementation", demands.implementation.empty() ? Json() : Json(demands.implementation)},
          {"max_seconds", demands.max_seconds}};
}

Demands demands_from_json(const JsonAt& at) {
  const JsonAt implementation = at["require_implementation"];
  return {at["require_full"].get<bool>(), at["allow_not_run"].get<bool>(),
          implementation.is_null() ? std::string() : implementation.text(), at["max_seconds"].get<double>()};
}

std::vector<std::string> unmet_demands(const RunRecord& record) {
  std::vector<std::string> lines = known_failure_faults(record.known_failures);
  if (record.planned_cases)
    lines.push_back(
        fmt::format("the run did not end: this is its journal, which holds {} of {}, and nothing is known "
                    "of the others",
                    record.cases.size(), counted(*record.planned_cases, "case", "cases")));
  other_implementations(record, lines);
  if (!record.demands.everything) return lines;
  std::size_t unsupported = 0;
  for (const CaseResult& result : record.cases) unsupported += result.verdict == Verdict::unsupported ? 1 : 0;
  if (unsupported > 0)
    lines.push_back(
        fmt::format("{} declared unsupported, where all are required", counted(unsupported, "case is", "cases are")));
  return lines;
}

}  // namespace qkcts
