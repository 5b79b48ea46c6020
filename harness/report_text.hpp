// SPDX-License-Identifier: Apache-2.0
// What a run looks like in a terminal of 80 columns.
#pragma once

#include <string>

#include "harness/run_record.hpp"

namespace qkcts {

// What was run on what.
std::string run_headline(const RunRecord& record);

// One line per stage, over all cases: the largest errors, those of a plain evaluation beside them, the verdict; below
// it what is unusual and legal.
std::string stage_table(const RunRecord& record);

// One line per input family, those with violations first.
std::string family_table(const RunRecord& record);

// One line per contract and stage. Contracts with violations stand first; those that vary one clause each and conform
// stand together.
std::string result_table(const RunRecord& record);

// The three of them.
std::string run_tables(const RunRecord& record);

// run_tables() behind the failures, as many of them in full as are read at a sitting.
std::string run_text(const RunRecord& record);

// Counts of verdicts, what the exit code is and why.
std::string summary_text(const RunRecord& record);

}  // namespace qkcts
