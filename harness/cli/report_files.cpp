// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/report_files.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <fstream>

#include "conformance/file.hpp"
#include "harness/report_ctrf.hpp"
#include "harness/report_github.hpp"
#include "harness/report_gitlab.hpp"
#include "harness/report_junit.hpp"
#include "harness/report_markdown.hpp"
#include "harness/wrapped_text.hpp"

namespace qkcts::cli {

std::vector<Destination> report_destinations(const std::string& folder) {
  return {{folder + "/run.json", FileKind::run},       {folder + "/report.html", FileKind::page},
          {folder + "/report.md", FileKind::markdown}, {folder + "/junit.xml", FileKind::junit},
          {folder + "/ctrf.json", FileKind::ctrf},     {folder + "/codequality.json", FileKind::code_quality}};
}

void write_reports(const RunRecord& record, const std::string& folder, const HtmlExtras& extras,
                   const std::string& source) {
  const bool is_whole = !record.planned_cases;  // nobody is to take a part for the run
  if (is_whole && !is_same_file(folder + "/run.json", source))
    write_file_atomically(folder + "/run.json", [&](const TextSink& sink) { write_run_json(record, sink); });
  write_file_atomically(folder + "/report.html", report_html(record, extras));
  write_file_atomically(folder + "/report.md", report_markdown(record));
  write_file_atomically(folder + "/junit.xml", [&](const TextSink& sink) { write_junit_xml(record, sink); });
  write_file_atomically(folder + "/ctrf.json", [&](const TextSink& sink) { write_ctrf_json(record, sink); });
  write_file_atomically(folder + "/codequality.json",
                        [&](const TextSink& sink) { write_gitlab_code_quality(record, sink); });
  fmt::print("{}",
             wrapped("Reports: ",
                     fmt::format("{}/report.html, and beside it {}report.md, junit.xml, ctrf.json, codequality.json",
                                 folder, is_whole ? "run.json, " : ""),
                     0));
}

void add_report_flags(CLI::App& sub, bool& github, bool& no_plain) {
  sub.add_flag("--github", github,
               "Annotations for GitHub Actions, and a summary in $GITHUB_STEP_SUMMARY if it is set");
  sub.add_flag("--no-plain", no_plain,
               "Without the error of a plain unfused evaluation, which -o measures beside the adapter's");
}

void report_to_github(const RunRecord& record) {
  fmt::print("{}", github_annotations(record));
  const char* const path = std::getenv("GITHUB_STEP_SUMMARY");
  if (path == nullptr || path[0] == '\0') return;
  std::ofstream file(path, std::ios::app);  // steps of a job share it
  file << github_summary(record);
  file.close();
  if (!file) throw WriteError(fmt::format("{}: the summary of GITHUB_STEP_SUMMARY cannot be written", path));
}

}  // namespace qkcts::cli
