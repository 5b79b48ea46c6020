// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>

#include "conformance/file.hpp"
#include "harness/baseline.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/destination.hpp"
#include "harness/value_text.hpp"
#include "harness/wrapped_text.hpp"

namespace qkcts::cli {
namespace {

struct UpdateArguments {
  std::string baseline;
  std::vector<std::string> runs;
  std::string machine;
};

int update(const UpdateArguments& given) {
  require_destination(given.baseline, FileKind::baseline, given.runs);
  Baseline baseline;
  std::error_code error;
  if (std::filesystem::exists(given.baseline, error) && std::filesystem::file_size(given.baseline, error) != 0)
    baseline = read_baseline(given.baseline);
  std::size_t entries = 0;
  std::string changes;  // said once they are written
  for (const std::string& path : given.runs) {
    require_kind(path, FileKind::run);
    const RunRecord record = read_run_record(path);
    const std::string machine = given.machine.empty() ? machine_class(record) : given.machine;
    const BaselineChange change = update_baseline(baseline, record, machine);
    entries += change.entries;
    changes += wrapped(path + ": ",
                       fmt::format("{} of {} on {}, suite {}: {} new, {} changed, {} gone",
                                   counted(change.entries, "case stage", "case stages"), record.description.name,
                                   machine, record.corpus_suite, change.added, change.changed, change.removed),
                       2);
    std::size_t failing = 0;
    for (const CaseResult& result : record.cases) failing += violates(result.verdict) ? 1 : 0;
    if (failing > 0)
      changes += wrapped(path + ": ",
                         fmt::format("{}, and failing stages are no measure: they are left out",
                                     counted(failing, "case fails", "cases fail")),
                         2);
  }
  if (entries == 0) {
    fmt::print(stderr, "qkcts: {}: nothing was judged in these runs; nothing was written\n", given.baseline);
    return 5;
  }
  write_file_atomically(given.baseline, baseline_json_text(baseline));
  fmt::print("{}", changes);
  return 0;
}

}  // namespace

void add_baseline(CLI::App& app, Command& command) {
  CLI::App* const baseline = app.add_subcommand("baseline", "Keep what an adapter reached, for `qkcts gate`");
  baseline->require_subcommand(1);
  baseline->footer("Example: qkcts baseline update baseline.json report/run.json");
  auto given = std::make_shared<UpdateArguments>();
  CLI::App* const sub = baseline->add_subcommand("update", "Take figures of a run into a baseline");
  sub->add_option("BASELINE", given->baseline, "JSON file to write; what it says of other runs stays")->required();
  sub->add_option("RUN", given->runs, "run.json of `qkcts run -o`; several, of several machines or suites")->required();
  sub->add_option("--machine-class", given->machine,
                  "Name of the class of machines (default: processor and device of the run)")
      ->type_name("NAME");
  sub->footer(
      "Example: qkcts baseline update baseline.json report/run.json\n"
      "Exit code: 0 written, 2 BASELINE is no baseline or one of the runs, 3 a file cannot be read, 5 nothing was "
      "judged in the runs, 6 it cannot be written");
  sub->callback([given, &command] { command = [given] { return update(*given); }; });
}

}  // namespace qkcts::cli
