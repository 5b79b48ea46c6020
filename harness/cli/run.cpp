// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/file.hpp"
#include "harness/adapter_error.hpp"
#include "harness/cli/arguments.hpp"
#include "harness/cli/colour.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/demand_options.hpp"
#include "harness/cli/isolation_options.hpp"
#include "harness/cli/progress.hpp"
#include "harness/cli/released_corpus.hpp"
#include "harness/cli/report_files.hpp"
#include "harness/cli/run.hpp"
#include "harness/failure_text.hpp"
#include "harness/interruption.hpp"
#include "harness/relation_report.hpp"
#include "harness/report_text.hpp"
#include "harness/run_journal.hpp"
#include "harness/value_text.hpp"
#include "harness/wrapped_text.hpp"

namespace qkcts::cli {
namespace {

struct RunArguments {
  std::string adapter, corpus, suite, profile, case_glob = "*", stages, output;
  DemandArguments demands;
  bool some_stages = false;  // whatever the list holds
  IsolationArguments isolation;
  bool resume = false;
  bool relations_only = false;
  bool strict_protocol = false;
  bool github = false, no_plain = false;
  bool diagnose = false;
  int diagnosed = DiagnoseOptions{}.cases;
  std::string bundle;
  std::vector<std::string> gtest;
};

RunRequest request_from(const RunArguments& given) {
  RunRequest request;
  if (given.suite.empty()) require_corpus_argument(given.corpus, given.adapter);
  request.adapter = resolve_adapter(given.adapter);
  if (given.strict_protocol) request.adapter.strictness = Strictness::everything;
  request.corpus_path = given.corpus;
  if (!given.suite.empty()) {
    const ReleasedSuite suite = suite_from_argument(given.suite);
    request.corpus_path = require_released_corpus(suite);
    request.corpus_digest = suite.digest;
  }
  request.case_glob = given.case_glob;
  if (!given.profile.empty()) request.options.profile = given.profile;
  if (given.some_stages) request.options.stages = stages_from_text(given.stages);
  apply_demands(given.demands, request);
  apply_isolation(given.isolation, request);
  request.journal_folder = given.output;
  request.resume = given.resume;
  if (given.resume)
    for (const std::string& argument : given.gtest)
      if (argument.starts_with("--gtest_repeat"))
        throw UsageError("--resume: rounds of --gtest_repeat are not told apart; leave one of the two out");
  if (given.relations_only) request.options.judging = Judging::relations_alone;
  if (const double most = given.demands.demands.max_seconds; most > 0)
    request.limits.stop_at =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(most * 1000));
  request.gtest_arguments = given.gtest;
  request.plain = !given.output.empty() && !given.no_plain;
  request.command = command_line();
  request.suite_version = QKCTS_VERSION;
  return request;
}

int run(const RunArguments& given) {
  const DiagnoseOptions diagnosis = {given.diagnosed, "*", given.bundle};
  if (given.diagnose && !can_diagnose())
    throw UsageError("--diagnose asks the reference, which this build leaves out (QKCTS_REFERENCE=OFF)");
  if (!given.bundle.empty()) make_report_folder(given.bundle);
  try {
    return run_and_report(request_from(given), {given.output, given.github}, given.diagnose ? &diagnosis : nullptr);
  } catch (const AdapterError&) {
    if (interruption() == 0) throw;
    fmt::print(stderr, "qkcts: interrupted by signal {} before the first case\n", interruption());
    return 128 + interruption();
  }
}

// An adapter in this process may end it with any exit status, also after the run. So the run is a child that says what
// its exit code is; without that word the status counts for nothing. Debuggers: set follow-fork-mode child.
int run_supervised(const RunArguments& given) {
  std::array<int, 2> word{};
  if (pipe2(word.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe for the supervising process");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no supervising process");
  if (child == 0) {
    const int code = run(given);  // exceptions end in main(), with codes of their own
    std::fflush(nullptr);
    const auto said = static_cast<char>(code);
    static_cast<void>(!::write(word[1], &said, 1));
    return code;
  }
  std::signal(SIGINT, SIG_IGN);
  close(word[1]);
  char said = 0;
  const bool ended = ::read(word[0], &said, 1) == 1;
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    fmt::print(stderr, "qkcts: error(crash): the adapter ended this process by signal {}\n", WTERMSIG(status));
    return 128 + WTERMSIG(status);
  }
  if (ended) return static_cast<unsigned char>(said);
  const int code = WEXITSTATUS(status);
  if (code >= 2 && code <= 6 && code != 5) return code;
  fmt::print(stderr, "qkcts: error(crash): the adapter ended this process with status {}\n", code);
  return 1;
}

}  // namespace

void make_report_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw WriteError(fmt::format("{}: cannot be created: {}", folder, error.message()));
  if (!std::filesystem::is_directory(folder, error)) throw WriteError(fmt::format("{}: is no folder", folder));
}

int run_and_report(const RunRequest& request, const ReportRequest& reports, const DiagnoseOptions* diagnosis) {
  const std::string& folder = reports.folder;
  if (!folder.empty()) {
    make_report_folder(folder);
    std::vector<Destination> outputs = report_destinations(folder);
    // One that the run goes on with is read before anything is written to it.
    if (!request.journal_folder.empty() && !request.resume)
      outputs.push_back({journal_path(folder), FileKind::journal});
    require_destinations(outputs, {request.corpus_path, request.adapter.path});
  }
  catch_interruption();
  RunDisplay display;
  std::optional<RunRecord> record = run_corpus(
      request, {[&](std::size_t cases) { display.start(cases); },
                [&](const RunRecord& now, const CaseResult& result) { display.after_case(now, result); },
                [&](const RunRecord& now, const RelationResult& result) { display.after_relation(now, result); }});
  display.clear();
  if (!record) return 0;
  fmt::print("{}\n", run_headline(*record));
  if (record->cases.empty() && record->relations.empty()) {
    const std::string why = no_case_text(request.corpus_path, request.case_glob);
    fmt::print("{}", wrapped("", fmt::format("N{}.", why.substr(1))));
  } else {
    if (!record->cases.empty() && request.options.judging == Judging::values_and_relations)
      print_coloured(run_tables(*record) + "\n");
    if (!record->relations.empty()) fmt::print("{}\n", relation_table_text(*record));
  }
  if (diagnosis != nullptr) diagnose_and_print(request, *record, *diagnosis);
  print_coloured(summary_text(*record));
  if (!folder.empty()) write_reports(*record, folder);
  if (reports.github) report_to_github(*record);
  if (!request.journal_folder.empty() && nothing_is_left(*record)) remove_journal(request.journal_folder);
  return exit_code(*record);
}

void add_run(CLI::App& app, Command& command) {
  CLI::App* const sub = app.add_subcommand("run", "Run an adapter on a corpus and judge what it computes");
  auto given = std::make_shared<RunArguments>();
  sub->add_option("ADAPTER", given->adapter,
                  "Shared library, scalar, avx2, cuda, cuda_host, mutants or template (options follow a '?'), or "
                  "'cmd:PROGRAM ...'")
      ->required();
  sub->add_option("FILE", given->corpus, "Corpus of golden vectors (.h5)");
  sub->add_option("--suite", given->suite, "In place of FILE: a released suite, e.g. smoke, which this program carries")
      ->type_name("NAME");
  sub->add_option("GTEST", given->gtest, "Behind --: arguments of GoogleTest, e.g. --gtest_filter=*.probs");
  sub->add_option("--profile", given->profile, "Judge by this machine profile, not by the one the adapter names");
  sub->add_option("--case", given->case_glob, "Only cases whose name matches this glob")->type_name("GLOB");
  CLI::Option* const stages = sub->add_option("--stages", given->stages, "Only these stages, comma-separated");
  stages->type_name("LIST");
  add_isolation_options(*sub, given->isolation);
  sub->add_flag("--relations-only", given->relations_only,
                "Judge relations alone (docs/relations.md): no golden value is used, and no machine profile need fit");
  sub->add_flag("--strict-protocol", given->strict_protocol,
                "A command's messages and results must hold nothing that their schema does not know");
  add_demand_options(*sub, given->demands);
  sub->add_option("--max-time", given->demands.demands.max_seconds,
                  "Stop after so many seconds with what was judged; the rest is not_run")
      ->check(CLI::Range(0.001, 1e6));
  sub->add_option("-o,--output", given->output, "Folder for run.json and all reports")->type_name("DIR");
  add_report_flags(*sub, given->github, given->no_plain);
  sub->add_flag("--resume", given->resume, "Go on where the run that wrote to this folder was stopped or killed")
      ->needs("--output");
  CLI::Option* const diagnose =
      sub->add_flag("--diagnose", given->diagnose, "Say what failing cases compute instead (docs/diagnosis.md)");
  sub->add_option("--diagnose-cases", given->diagnosed, "So many of them, different contracts first; 0: all")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str()
      ->needs(diagnose);
  sub->add_option("--bundle", given->bundle, "Folder for a small reproducer of each case that is diagnosed")
      ->type_name("DIR")
      ->needs(diagnose);
  diagnose->excludes("--relations-only");
  sub->footer(
      "Example: qkcts run ./libmine.so core.h5 --case 'qwen3_rmsnorm/*' -o report\n"
      "         qkcts run ./libmine.so --suite smoke --known-failures known.json --max-time 60\n"
      "         qkcts run 'cmd:python3 my_adapter.py' core.h5\n"
      "         qkcts run avx2 core.h5 -- --gtest_list_tests\n"
      "Exit code: 0 conforming, 1 not conforming, 4 the adapter cannot be run, 5 nothing was run");
  sub->callback([given, stages, &command] {
    given->some_stages = stages->count() > 0;
    if (!given->suite.empty() && given->corpus.rfind("--gtest", 0) == 0)  // what stands behind -- follows no FILE
      given->gtest.insert(given->gtest.begin(), std::exchange(given->corpus, {}));
    if (given->suite.empty() && given->corpus.empty()) throw CLI::RequiredError("FILE");
    if (!given->suite.empty() && !given->corpus.empty()) throw UsageError("--suite stands in the place of FILE");
    command = [given] { return given->isolation.in_process ? run_supervised(*given) : run(*given); };
  });
}

}  // namespace qkcts::cli
