// SPDX-License-Identifier: Apache-2.0
// Reports as files: of `run`, `check` and `report`.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/destination.hpp"
#include "harness/report_html.hpp"
#include "harness/run_record.hpp"

namespace CLI {
class App;
}

namespace qkcts::cli {

// run.json, report.html, report.md, junit.xml, ctrf.json and codequality.json.
std::vector<Destination> report_destinations(const std::string& folder);

// All of them, but for run.json where that is `source`, the file that the record was read from. Throws WriteError.
void write_reports(const RunRecord& record, const std::string& folder, const HtmlExtras& extras = {},
                   const std::string& source = {});

// --github and --no-plain, as `run` and `check` take them.
void add_report_flags(CLI::App& sub, bool& github, bool& no_plain);

// Annotations on the standard output, which GitHub's runner reads, and the summary appended to the file that
// GITHUB_STEP_SUMMARY names, if it does. Throws WriteError.
void report_to_github(const RunRecord& record);

}  // namespace qkcts::cli
