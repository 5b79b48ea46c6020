// SPDX-License-Identifier: Apache-2.0
// A whole run: corpus, adapter and options in, RunRecord out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/run_record.hpp"
#include "harness/usage_error.hpp"

namespace qkcts {

enum class Isolation { worker_process, in_process };

struct RunRequest {
  AdapterSpec adapter;
  std::string corpus_path;
  std::string case_glob = "*";  // of slugs; * matches slashes too
  RunOptions options;
  WorkerLimits limits;
  Isolation isolation = Isolation::worker_process;
  std::vector<std::string> gtest_arguments;
  std::vector<std::string> command;  // as typed, for the record
  std::string suite_version;
};

// What answers the request: a worker, this process, or a file of results.
std::unique_ptr<AdapterRunner> adapter_runner(const RunRequest& request);

// Called after every case, in the order in which they run.
struct RunProgress {
  std::function<void(std::size_t cases)> start;
  std::function<void(const RunRecord&, const CaseResult&)> after_case;
  std::function<void(const RunRecord&, const RelationResult&)> after_relation;  // may be empty
};

// Nothing if GoogleTest was only asked to list the tests. Throws InputError (corpus), UsageError (profile),
// AdapterError. Ctrl-C ends the run early: the remaining cases are not_run.
std::optional<RunRecord> run_corpus(const RunRequest& request, const RunProgress& progress);

}  // namespace qkcts
