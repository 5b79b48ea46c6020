// SPDX-License-Identifier: Apache-2.0
// A run rendered again. run.json is the source; nothing is run.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>
#include <system_error>

#include "conformance/file.hpp"
#include "harness/cli/arguments.hpp"
#include "harness/cli/colour.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/destination.hpp"
#include "harness/cli/report_files.hpp"
#include "harness/cli/run.hpp"
#include "harness/report_ctrf.hpp"
#include "harness/report_gitlab.hpp"
#include "harness/report_html.hpp"
#include "harness/report_junit.hpp"
#include "harness/report_markdown.hpp"
#include "harness/report_text.hpp"
#include "harness/run_journal.hpp"
#include "harness/usage_error.hpp"

namespace qkcts::cli {
namespace {

struct ReportArguments {
  std::string run, html, markdown, junit, ctrf, gitlab, folder, adequacy, against;
  bool github = false, text = false;
};

HtmlExtras extras_from(const ReportArguments& given) {
  HtmlExtras extras;
  if (!given.adequacy.empty()) extras.adequacy = kill_matrix_from_json(read_text_file(given.adequacy), given.adequacy);
  if (!given.against.empty()) extras.against = contract_from_argument(given.against);
  return extras;
}

void require_places(const ReportArguments& given) {
  std::vector<Destination> outputs;
  const auto add = [&outputs](const std::string& path, FileKind kind) {
    if (!path.empty()) outputs.push_back({path, kind});
  };
  add(given.html, FileKind::page);
  add(given.markdown, FileKind::markdown);
  add(given.junit, FileKind::junit);
  add(given.ctrf, FileKind::ctrf);
  add(given.gitlab, FileKind::code_quality);
  if (!given.folder.empty())
    for (Destination& output : report_destinations(given.folder))
      if (output.kind != FileKind::run || !is_same_file(output.path, given.run)) outputs.push_back(std::move(output));
  require_destinations(outputs, {given.run, given.adequacy, given.against});
  if (given.html.empty() && given.folder.empty() && !(given.adequacy.empty() && given.against.empty()))
    throw UsageError(fmt::format("{} joins the page, and none is asked for: --html FILE or -o DIR is missing",
                                 given.against.empty() ? "--adequacy" : "--against"));
}

// Reports of a part are not to stand beside the run.json of another run, which a gate would read.
void require_no_other_run(const ReportArguments& given) {
  if (given.folder.empty() || is_same_file(journal_path(given.folder), given.run)) return;
  std::error_code error;
  if (std::filesystem::exists(given.folder + "/run.json", error))
    throw UsageError(
        fmt::format("{}/run.json is of another run than {}: name another folder", given.folder, given.run));
}

int report(const ReportArguments& given) {
  require_places(given);
  const bool is_partial = file_kind(given.run) == FileKind::journal;
  if (is_partial) require_no_other_run(given);
  if (!is_partial) require_kind(given.run, FileKind::run);
  const RunRecord record = is_partial ? read_partial_run(given.run) : read_run_record(given.run);
  const HtmlExtras extras = extras_from(given);
  if (!given.folder.empty()) {
    make_report_folder(given.folder);
    write_reports(record, given.folder, extras, given.run);
  }
  if (!given.html.empty()) write_file_atomically(given.html, report_html(record, extras));
  if (!given.markdown.empty()) write_file_atomically(given.markdown, report_markdown(record));
  if (!given.junit.empty())
    write_file_atomically(given.junit, [&](const TextSink& sink) { write_junit_xml(record, sink); });
  if (!given.ctrf.empty())
    write_file_atomically(given.ctrf, [&](const TextSink& sink) { write_ctrf_json(record, sink); });
  if (!given.gitlab.empty())
    write_file_atomically(given.gitlab, [&](const TextSink& sink) { write_gitlab_code_quality(record, sink); });
  const bool files = !(given.html + given.markdown + given.junit + given.ctrf + given.gitlab + given.folder).empty();
  if (given.text || (!files && !given.github)) print_coloured(run_text(record));
  if (given.github) report_to_github(record);
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Command& command) {
  CLI::App* const sub =
      app.add_subcommand("report", "Render a run again: as text, page, or for a test server (docs/report_format.md)");
  auto given = std::make_shared<ReportArguments>();
  sub->add_option("RUN", given->run, "run.json of `qkcts run -o` or `check -o`; of a run that was killed, its run.part")
      ->required();
  sub->add_flag("--text", given->text, "To the standard output, as `run` prints it; the default without other formats");
  sub->add_option("--html", given->html, "One page without scripts and without anything to fetch")->type_name("FILE");
  sub->add_option("--markdown", given->markdown, "For a merge request or a wiki")->type_name("FILE");
  sub->add_option("--junit", given->junit, "JUnit XML; GitLab, Jenkins and others take it as a test report")
      ->type_name("FILE");
  sub->add_option("--ctrf", given->ctrf, "Common Test Report Format (JSON)")->type_name("FILE");
  sub->add_option("--gitlab", given->gitlab, "GitLab Code Quality (JSON): merge requests show what is new")
      ->type_name("FILE");
  sub->add_flag("--github", given->github,
                "Annotations for GitHub Actions, and a summary in $GITHUB_STEP_SUMMARY if it is set");
  sub->add_option("-o,--output", given->folder, "Folder for all of them")->type_name("DIR");
  sub->add_option("--adequacy", given->adequacy, "`qkcts adequacy --format json`: its kill matrix joins the page")
      ->type_name("FILE");
  sub->add_option("--against", given->against, "Contract that the page compares those of the run with")
      ->type_name("CONTRACT");
  sub->footer(
      "Examples: qkcts report report/run.json\n"
      "          qkcts report report/run.json --html page.html --adequacy adequacy.json --against plain_sdpa\n"
      "          qkcts report report/run.json --github --junit junit.xml\n"
      "Exit code: 0 done, whatever the run found; 2 a report would overwrite something else, or a part stand beside "
      "another run; 3 the file is no "
      "run.json and no run.part, or damaged; 6 a report cannot be written");
  sub->callback([given, &command] { command = [given] { return report(*given); }; });
}

}  // namespace qkcts::cli
