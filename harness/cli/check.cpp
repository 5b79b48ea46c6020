// SPDX-License-Identifier: Apache-2.0
// Results that were computed elsewhere, judged here.
#include <CLI/CLI.hpp>

#include <memory>

#include "harness/cli/arguments.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/demand_options.hpp"
#include "harness/cli/report_files.hpp"
#include "harness/cli/run.hpp"
#include "harness/file_kind.hpp"

namespace qkcts::cli {
namespace {

struct CheckArguments {
  std::string corpus, results, profile, case_glob = "*", stages, output;
  DemandArguments demands;
  bool some_stages = false;
  bool relations_only = false;
  bool strict_protocol = false;
  bool github = false, no_plain = false;
};

int check(const CheckArguments& given) {
  require_kind(given.corpus, FileKind::corpus);
  require_kind(given.results, FileKind::results);
  RunRequest request;
  request.adapter = {given.results, given.results, "", AdapterKind::results,
                     given.strict_protocol ? Strictness::everything : Strictness::what_matters};
  request.corpus_path = given.corpus;
  request.case_glob = given.case_glob;
  if (!given.profile.empty()) request.options.profile = given.profile;
  if (given.some_stages) request.options.stages = stages_from_text(given.stages);
  apply_demands(given.demands, request);
  if (given.relations_only) request.options.judging = Judging::relations_alone;
  request.plain = !given.output.empty() && !given.no_plain;
  request.command = command_line();
  request.suite_version = QKCTS_VERSION;
  return run_and_report(request, {given.output, given.github});
}

}  // namespace

void add_check(CLI::App& app, Command& command) {
  CLI::App* const sub = app.add_subcommand("check", "Judge results that were computed from exported requests");
  auto given = std::make_shared<CheckArguments>();
  sub->add_option("FILE", given->corpus, "Corpus that the requests were made of")->required();
  sub->add_option("RESULTS", given->results, "What `qkcts answer` or a program of your own made of the requests")
      ->required();
  sub->add_option("--profile", given->profile, "Judge by this machine profile, not by the one the results name");
  sub->add_option("--case", given->case_glob, "Only cases whose name matches this glob; others need no result")
      ->type_name("GLOB");
  CLI::Option* const stages = sub->add_option("--stages", given->stages, "Only these stages, comma-separated");
  stages->type_name("LIST");
  sub->add_flag("--relations-only", given->relations_only, "Judge relations alone, as `qkcts run` does");
  sub->add_flag("--strict-protocol", given->strict_protocol, "Stages that were not asked for are faults");
  add_demand_options(*sub, given->demands);
  sub->add_option("-o,--output", given->output, "Folder for run.json and all reports")->type_name("DIR");
  add_report_flags(*sub, given->github, given->no_plain);
  sub->footer(
      "Example: qkcts export core.h5 -o requests.h5; qkcts answer ./libmine.so requests.h5 -o results.h5\n"
      "         qkcts check core.h5 results.h5 -o report\n"
      "Exit code: 0 conforming, 1 not conforming or results are missing, 3 the results are not those of FILE, 5 "
      "nothing "
      "was judged");
  sub->callback([given, stages, &command] {
    given->some_stages = stages->count() > 0;
    command = [given] { return check(*given); };
  });
}

}  // namespace qkcts::cli
