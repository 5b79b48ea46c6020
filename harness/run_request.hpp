// SPDX-License-Identifier: Apache-2.0
// What a run is asked for: adapter, corpus, selection, limits, and what becomes of its findings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/run_record.hpp"

namespace qkcts {

enum class Isolation { worker_process, in_process };

// One of `count` runs that together are one: every count-th case. A relation goes with the last of its cases.
struct CaseShare {
  std::uint32_t index = 1, count = 1;  // index from 1
};

struct RunRequest {
  AdapterSpec adapter;
  std::string corpus_path;
  std::string corpus_digest;    // that it must have; empty: any
  std::string case_glob = "*";  // of slugs; * matches slashes too
  CaseShare share;              // of what the glob selects
  RunOptions options;
  WorkerLimits limits;
  Isolation isolation = Isolation::worker_process;
  int jobs = 1;        // workers side by side, each for one case; more than one only in worker processes
  bool plain = false;  // also measure a plain evaluation of each case (plain_evaluation.hpp)
  std::vector<std::string> gtest_arguments;
  std::vector<std::string> command;  // as typed, for the record
  std::string suite_version;
  std::string journal_folder;  // for run.part (run_journal.hpp); empty: none
  bool resume = false;         // go on with what stands there
  Demands demands;
  std::vector<KnownFailure> known_failures;
  std::string known_failures_day;             // YYYY-MM-DD on which they are held; empty: that of the run
  std::optional<std::set<std::string>> only;  // cases by name, beside the glob
  // Outputs of each case that was run, as far as they were judged, or how its calls ended instead. May be empty.
  std::function<void(const Case& asked, const Execution& execution)> keep_outputs;
};

// What answers the request: a worker, this process, or a file of results.
std::unique_ptr<AdapterRunner> adapter_runner(const RunRequest& request);

// What a run says of its adapter, from the text of describe(). Throws AdapterError.
AdapterDescription described(const RunRequest& request, const std::string& description);

}  // namespace qkcts
