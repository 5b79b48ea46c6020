// SPDX-License-Identifier: Apache-2.0
// The results of many cases, folded by contract and stage, as the reports show them.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "harness/run_record.hpp"

namespace qkcts {

struct StageAggregate {
  std::string contract;
  qkcts_stage stage = QKCTS_STAGE_OUTPUT;
  int cases = 0;       // in which the stage was judged
  int not_judged = 0;  // unsupported, skipped, not run, or lost with the case
  double max_ulp = 0;
  double max_ratio = 0;
  ElementCounts counts;
  std::array<std::uint64_t, histogram_edges.size() + 1> histogram{};
  Verdict verdict = Verdict::not_run;  // the gravest
  std::map<Verdict, int> verdicts;     // number of cases for each; what was not run or is not declared is left out
  std::string worst_case;              // of max_ratio
  int limits = 0;                      // cases for which the user set a limit
  int limits_exceeded = 0;
};

// In order of contract name, then of evaluation.
std::vector<StageAggregate> aggregate(const RunRecord& record);

// The same for a terminal: contracts named clause_..., which vary one clause each, stand together as "clause_* (N)"
// behind the others, except those in which something violates.
std::vector<StageAggregate> aggregate_briefly(const RunRecord& record);

}  // namespace qkcts
