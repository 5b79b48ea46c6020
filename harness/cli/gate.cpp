// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "harness/cli/commands.hpp"
#include "harness/failure_text.hpp"
#include "harness/file_kind.hpp"
#include "harness/gate.hpp"

namespace qkcts::cli {
namespace {

struct GateArguments {
  std::string baseline, current;
  GateOptions options;
  bool github = false;
};

std::string accepting_command(const GateArguments& given) {
  std::string command =
      fmt::format("qkcts baseline update {} {}", shell_quoted(given.baseline), shell_quoted(given.current));
  if (!given.options.machine_class.empty())
    command += fmt::format(" --machine-class {}", shell_quoted(given.options.machine_class));
  return command;
}

int run_gate(const GateArguments& given) {
  if (file_kind(given.baseline) != FileKind::run) require_kind(given.baseline, FileKind::baseline);
  require_kind(given.current, FileKind::run);
  const Baseline baseline = read_baseline(given.baseline);
  const GateResult result = gate(baseline, read_run_record(given.current), given.options);
  fmt::print("{}", gate_text(result, given.options, accepting_command(given)));
  if (given.github) fmt::print("{}", gate_annotations(result, given.options));
  return result.exit_code(given.options);
}

}  // namespace

void add_gate(CLI::App& app, Command& command) {
  CLI::App* const sub =
      app.add_subcommand("gate", "Compare a run with a baseline: errors that grew, in the budget too");
  auto given = std::make_shared<GateArguments>();
  sub->add_option("BASELINE", given->baseline, "What `qkcts baseline update` wrote, or an earlier run.json")
      ->required();
  sub->add_option("CURRENT", given->current, "run.json of `qkcts run -o`")->required();
  sub->add_option("--machine-class", given->options.machine_class,
                  "Compare with this class of machines (default: processor and device of the run)")
      ->type_name("NAME");
  sub->add_flag("--allow-not-run", given->options.allow_not_run,
                "What the run left out or did not come to does not fail the gate");
  sub->add_flag("--same-bits", given->options.same_bits,
                "Where the adapter claims bitwise_repeatable, other bits than before fail the gate");
  sub->add_flag("--github", given->github, "Annotations for GitHub's runner");
  sub->footer(
      "Example: qkcts run ./libmine.so core.h5 -o report; qkcts gate baseline.json report/run.json\n"
      "Exit code: 0 nothing became worse, 1 something did or fails, 3 a file cannot be read, 5 nothing to compare "
      "with");
  sub->callback([given, &command] { command = [given] { return run_gate(*given); }; });
}

}  // namespace qkcts::cli
