// SPDX-License-Identifier: Apache-2.0
// The results of many cases, folded by contract and stage, as the reports show them.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "harness/run_record.hpp"
#include "harness/stage_warning.hpp"

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
  // Over the elements that were measured; p99 is the largest of the cases. NaN where an error is infinite.
  double p99_ulp = 0, mean_ulp = 0, signed_mean_ulp = 0, outward_mean_ulp = 0;
  int plain_cases = 0;  // of `cases`, with a plain evaluation beside them
  double plain_max_ulp = 0, plain_max_ratio = 0;
  std::map<StageWarning, int> warnings;  // number of cases for each
  int limits = 0;                        // cases for which the user set a limit
  int limits_exceeded = 0;
};

// What is worth saying of so many cases: `large` of any, `biased` of at least four and more than half of them, since
// rows that share a divisor or equal rows of one case have errors of one sign by chance.
std::map<StageWarning, int> notable_warnings(const StageAggregate& line);

// In order of contract name, then of evaluation.
std::vector<StageAggregate> aggregate(const RunRecord& record);

// Over all contracts, in order of evaluation.
std::vector<StageAggregate> aggregate_stages(const RunRecord& record);

struct FamilyAggregate {
  std::string family;
  std::map<Verdict, int> verdicts;     // of its cases
  Verdict verdict = Verdict::not_run;  // the gravest
  double max_ulp = 0, max_ratio = 0;
  std::string worst_case;
  qkcts_stage worst_stage = QKCTS_STAGE_OUTPUT;
  bool measured = false;
};
// Families with violations first, then by name.
std::vector<FamilyAggregate> aggregate_families(const RunRecord& record);

// The same for a terminal: contracts named clause_..., which vary one clause each, stand together as "clause_* (N)"
// behind the others, except those in which something violates.
std::vector<StageAggregate> aggregate_briefly(const RunRecord& record);

}  // namespace qkcts
