// SPDX-License-Identifier: Apache-2.0
// What a run looks like in a terminal of 80 columns.
#pragma once

#include <string>

#include "harness/run_record.hpp"

namespace qkcts {

// One line per contract and stage, over all cases: how many were judged, the largest errors, the verdict. Contracts
// that vary one clause each and conform stand together.
std::string result_table(const RunRecord& record);

// Counts of verdicts, what the exit code is and why.
std::string summary_text(const RunRecord& record);

}  // namespace qkcts
