// SPDX-License-Identifier: Apache-2.0
// What GitHub Actions shows of a run: https://docs.github.com/actions, "Workflow commands".
#pragma once

#include <string>

#include "harness/run_record.hpp"

namespace qkcts {

// Its runner keeps ten annotations of a step, whatever printed them.
inline constexpr std::size_t most_annotations = 9;

// One workflow command; no character of either text ends it early or begins another.
std::string github_error(const std::string& title, const std::string& message);

// Workflow commands for the standard output: one error per failing case, and where they are more than fit, the last one
// says how many more.
std::string github_annotations(const RunRecord& record);

// Markdown of less than a MiB, which is what a step may write to $GITHUB_STEP_SUMMARY.
std::string github_summary(const RunRecord& record);

}  // namespace qkcts
