// SPDX-License-Identifier: Apache-2.0
// What a run must fulfil beside the verdicts of its cases, as its user asks for it.
#pragma once

#include <string>
#include <vector>

#include "harness/json_at.hpp"

namespace qkcts {

struct RunRecord;

struct Demands {
  bool everything = false;     // --require full: a case that is declared unsupported makes the run fail
  bool allow_not_run = false;  // --allow-not-run: cases that were not run do not
  std::string implementation;  // --require-implementation: glob that every implementation must match; empty: any
  double max_seconds = 0;      // --max-time: what is not done by then is not_run; 0: no end
};

// As in run.json, which the schema has admitted.
Json demands_json(const Demands& demands);
Demands demands_from_json(const JsonAt& at);

// One line for each demand that the run does not fulfil, stale and expired known failures among them. Any makes the
// exit code 1, where it would have been 0.
std::vector<std::string> unmet_demands(const RunRecord& record);

}  // namespace qkcts
