// SPDX-License-Identifier: Apache-2.0
// A whole run: corpus, adapter and options in, RunRecord out.
#pragma once

#include <functional>
#include <optional>

#include "harness/run_request.hpp"
#include "harness/usage_error.hpp"

namespace qkcts {

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
