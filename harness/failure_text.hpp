// SPDX-License-Identifier: Apache-2.0
// A failure as a reproducible finding: what was due, what came, by how much, and the two commands that show it again.
#pragma once

#include <string>

#include "harness/run_record.hpp"

namespace qkcts {

// Empty if the stage neither violates nor exceeds a limit of the user's.
std::string failure_text(const RunRecord& record, const CaseResult& result, const StageResult& stage);

// Of a whole case: its one reason (crash, timeout, ...), or the first failing stage in order of evaluation and how far
// off the later ones are, which often only follow from it.
std::string failure_text(const RunRecord& record, const CaseResult& result);

// "qkcts run ADAPTER CORPUS", or "qkcts check CORPUS RESULTS".
std::string judging_command(const RunRecord& record);

// "qkcts run ./libmine.so core.h5 --case SLUG", with what else was asked for.
std::string rerun_command(const RunRecord& record, const CaseResult& result);
std::string explain_command(const RunRecord& record, const CaseResult& result, qkcts_stage stage,
                            ElementCoordinates place);

// The argument as a POSIX shell needs it.
std::string shell_quoted(const std::string& argument);

}  // namespace qkcts
