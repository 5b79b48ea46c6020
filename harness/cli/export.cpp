// SPDX-License-Identifier: Apache-2.0
// Requests without answers, for a machine that this program does not reach.
#include <fmt/format.h>
#include <fnmatch.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "harness/cli/arguments.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/destination.hpp"
#include "harness/offline_export.hpp"
#include "harness/value_text.hpp"

namespace qkcts::cli {

void add_export(CLI::App& app, Command& command) {
  CLI::App* const sub = app.add_subcommand("export", "Write inputs and contracts without expected outputs");
  struct Arguments {
    std::string corpus, stages;
    ExportSelection selection;
    std::string output;
  };
  auto given = std::make_shared<Arguments>();
  sub->add_option("FILE", given->corpus, "Corpus of golden vectors (.h5)")->required();
  sub->add_option("--case", given->selection.case_glob, "Only cases whose name matches this glob")->type_name("GLOB");
  sub->add_option("--profile", given->selection.profile, "Only cases that this machine profile can judge");
  CLI::Option* const stages = sub->add_option("--stages", given->stages, "Ask only for these stages, comma-separated");
  stages->type_name("LIST");
  sub->add_option("-o,--output", given->output, "File of requests")->required()->type_name("FILE");
  sub->footer(
      "Example: qkcts export core.h5 -o requests.h5 --case 'qwen3_rmsnorm/*'\n"
      "Exit code: 0 written, 2 -o would overwrite something else, 3 a bad corpus, 5 no case matches");
  sub->callback([given, stages, &command] {
    command = [given, some = stages->count() > 0] {
      if (some) given->selection.stages = stages_from_text(given->stages);
      require_destination(given->output, FileKind::requests, {given->corpus});
      const std::size_t cases = export_requests(given->corpus, given->selection, given->output);
      if (cases == 0) {
        fmt::print(stderr, "qkcts: {}; nothing was written\n", no_case_text(given->corpus, given->selection.case_glob));
        return 5;
      }
      fmt::print("{}: {}\n", given->output, counted(cases, "request", "requests"));
      return 0;
    };
  });
}

}  // namespace qkcts::cli
