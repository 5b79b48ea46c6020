// SPDX-License-Identifier: Apache-2.0
// What `run` and `check` share: judge, print, write the reports.
#pragma once

#include <string>

#include "harness/diagnose.hpp"
#include "harness/run_session.hpp"

namespace qkcts::cli {

struct ReportRequest {
  std::string folder;   // for all reports as files; empty: none
  bool github = false;  // report_to_github()
};

// Returns the exit code. Without a folder nothing is written. With `diagnosis` failing cases are diagnosed, which
// changes no verdict.
int run_and_report(const RunRequest& request, const ReportRequest& reports, const DiagnoseOptions* diagnosis = nullptr);

// The failing cases of the record, printed as they come; the result stands in the record.
void diagnose_and_print(const RunRequest& request, RunRecord& record, const DiagnoseOptions& options);

// Not in a judge-only build.
bool can_diagnose();

// Before a run, so that a mistyped folder costs nothing. Throws WriteError.
void make_report_folder(const std::string& folder);

}  // namespace qkcts::cli
