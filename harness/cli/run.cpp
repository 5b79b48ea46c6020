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
#include "harness/cli/arguments.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/run.hpp"
#include "harness/failure_text.hpp"
#include "harness/interruption.hpp"
#include "harness/relation_report.hpp"
#include "harness/report_html.hpp"
#include "harness/report_junit.hpp"
#include "harness/report_text.hpp"
#include "harness/value_text.hpp"

namespace qkcts::cli {
namespace {

constexpr int failures_printed_in_full = 10;

struct RunArguments {
  std::string adapter, corpus, profile, case_glob = "*", stages, limits, output;
  bool some_stages = false;  // whatever the list holds
  double timeout = 60;
  int memory_mib = 0;
  int repeat = 1;
  bool in_process = false;
  bool relations_only = false;
  bool strict_protocol = false;
  bool diagnose = false;
  int diagnosed = DiagnoseOptions{}.cases;
  std::string bundle;
  std::vector<std::string> gtest;
};

// One line on a terminal that is drawn over; otherwise a line every few seconds.
class Progress {
 public:
  void start(std::size_t cases) { cases_ = cases; }

  void after_case(const RunRecord& record, const CaseResult& result) {
    print_failure(failure_text(record, result), result.slug, result.verdict);
    const auto now = std::chrono::steady_clock::now();
    const auto pause = terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(5000);
    if (now - last_ < pause && record.cases.size() != cases_) return;
    if (!terminal_ && now - start_ < pause) return;
    last_ = now;
    const double passed = std::chrono::duration<double>(now - start_).count();
    const auto done = static_cast<double>(record.cases.size());
    const double rest = passed / done * (static_cast<double>(cases_) - done);
    fmt::print(stderr, "{}{} of {}, {:.0f} s passed, about {:.0f} s to go{}", terminal_ ? "\r" : "",
               record.cases.size(), counted(cases_, "case", "cases"), passed, rest, terminal_ ? "  " : "\n");
  }

  // Nothing for an empty text.
  void print_failure(const std::string& text, const std::string& slug, Verdict verdict) {
    if (text.empty()) return;
    clear();
    if (++failures_ <= failures_printed_in_full) {
      fmt::print("{}\n", text);
    } else {
      fmt::print("FAIL  {}  {}\n", slug, verdict_name(verdict));
    }
    std::fflush(stdout);
  }

  void clear() const {
    if (terminal_) fmt::print(stderr, "\r{:70}\r", "");
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::size_t cases_ = 0;
  int failures_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), last_ = start_;
};

void write_reports(const RunRecord& record, const std::string& folder) {
  write_file_atomically(folder + "/run.json", run_json_text(record));
  write_file_atomically(folder + "/junit.xml", junit_xml(record));
  write_file_atomically(folder + "/report.html", report_html(record));
  fmt::print("Reports: {0}/report.html  {0}/run.json  {0}/junit.xml\n", folder);
}

RunRequest request_from(const RunArguments& given) {
  RunRequest request;
  request.adapter = resolve_adapter(given.adapter);
  if (given.strict_protocol) request.adapter.strictness = Strictness::everything;
  request.corpus_path = given.corpus;
  request.case_glob = given.case_glob;
  if (!given.profile.empty()) request.options.profile = given.profile;
  if (given.some_stages) request.options.stages = stages_from_text(given.stages);
  if (!given.limits.empty()) request.options.limits = limits_from_json(read_text_file(given.limits), given.limits);
  request.options.repeat = given.repeat;
  if (given.relations_only) request.options.judging = Judging::relations_alone;
  request.limits.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(given.timeout * 1000));
  request.limits.resident_bytes = static_cast<std::size_t>(given.memory_mib) << 20;
  request.isolation = given.in_process ? Isolation::in_process : Isolation::worker_process;
  request.gtest_arguments = given.gtest;
  request.command = command_line();
  request.suite_version = QKCTS_VERSION;
  return request;
}

int run(const RunArguments& given) {
  const DiagnoseOptions diagnosis = {given.diagnosed, "*", given.bundle};
  if (!given.bundle.empty()) make_report_folder(given.bundle);
  return run_and_report(request_from(given), given.output, given.diagnose ? &diagnosis : nullptr);
}

// An adapter in this process may end it with any exit status. So the run is a child that says when it has come to its
// end; without that word the status counts for nothing. Debuggers: set follow-fork-mode child.
int run_supervised(const RunArguments& given) {
  std::array<int, 2> word{};
  if (pipe2(word.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe for the supervising process");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no supervising process");
  if (child == 0) {
    const int code = run(given);  // exceptions end in main(), with codes of their own
    std::fflush(nullptr);
    static_cast<void>(!::write(word[1], "x", 1));
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
  const int code = WEXITSTATUS(status);
  if (ended || (code >= 2 && code <= 6 && code != 5)) return code;
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

void diagnose_and_print(const RunRequest& request, RunRecord& record, const DiagnoseOptions& options) {
  record.diagnosis =
      diagnose(request, record, options, [](const CaseDiagnosis& one, std::size_t done, std::size_t all) {
        if (isatty(STDERR_FILENO) == 0) return;
        fmt::print(stderr, "\r{:70}\r", "");
        if (done < all) fmt::print(stderr, "diagnosed {} of {}, last {:.40}", done, all, one.slug);
      });
  fmt::print("{}", diagnosis_text(*record.diagnosis));
}

int run_and_report(const RunRequest& request, const std::string& folder, const DiagnoseOptions* diagnosis) {
  if (!folder.empty()) make_report_folder(folder);
  catch_interruption();
  Progress progress;
  std::optional<RunRecord> record =
      run_corpus(request, {[&](std::size_t cases) { progress.start(cases); },
                           [&](const RunRecord& now, const CaseResult& result) { progress.after_case(now, result); },
                           [&](const RunRecord& now, const RelationResult& result) {
                             progress.print_failure(relation_failure_text(now, result), result.slug, result.verdict);
                           }});
  progress.clear();
  if (!record) return 0;
  fmt::print("{} {} ({}) on {}, suite {} {}\n\n", record->description.name, record->description.version,
             request.adapter.given, request.corpus_path, record->corpus_suite, record->corpus_digest.substr(0, 12));
  if (record->cases.empty() && record->relations.empty()) {
    fmt::print("No case matches; `qkcts inspect {} --names` lists them.\n", shell_quoted(request.corpus_path));
  } else {
    if (!record->cases.empty() && request.options.judging == Judging::values_and_relations)
      fmt::print("{}\n", result_table(*record));
    if (!record->relations.empty()) fmt::print("{}\n", relation_table_text(*record));
  }
  if (diagnosis != nullptr) diagnose_and_print(request, *record, *diagnosis);
  fmt::print("{}", summary_text(*record));
  if (!folder.empty()) write_reports(*record, folder);
  return exit_code(*record);
}

void add_run(CLI::App& app, Command& command) {
  CLI::App* const sub = app.add_subcommand("run", "Run an adapter on a corpus and judge what it computes");
  auto given = std::make_shared<RunArguments>();
  sub->add_option("ADAPTER", given->adapter,
                  "Shared library, or scalar, avx2, mutants, template (options follow a '?'), or 'cmd:PROGRAM ...'")
      ->required();
  sub->add_option("FILE", given->corpus, "Corpus of golden vectors (.h5)")->required();
  sub->add_option("GTEST", given->gtest, "Behind --: arguments of GoogleTest, e.g. --gtest_filter=*.probs");
  sub->add_option("--profile", given->profile, "Judge by this machine profile, not by the one the adapter names");
  sub->add_option("--case", given->case_glob, "Only cases whose name matches this glob")->type_name("GLOB");
  CLI::Option* const stages = sub->add_option("--stages", given->stages, "Only these stages, comma-separated");
  stages->type_name("LIST");
  sub->add_option("--timeout", given->timeout, "Seconds that one case may take in the worker")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  sub->add_option("--memory", given->memory_mib, "MiB that the worker may hold resident (default: 4/5 of the machine)")
      ->check(CLI::Range(1, 1 << 30));
  sub->add_option("--repeat", given->repeat, "Rounds per case; each is one end-aligned and one start-aligned call")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  sub->add_flag("--in-process", given->in_process, "No worker process: for debuggers; a crash ends the program");
  sub->add_flag("--relations-only", given->relations_only,
                "Judge relations alone (docs/relations.md): no golden value is used, and no machine profile need fit");
  sub->add_flag("--strict-protocol", given->strict_protocol,
                "A command's messages and results must hold nothing that their schema does not know");
  sub->add_option("--limits", given->limits, "Own tolerances (JSON), judged beside the proven budgets")
      ->type_name("FILE");
  sub->add_option("-o,--output", given->output, "Folder for run.json, junit.xml and report.html")->type_name("DIR");
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
      "         qkcts run 'cmd:python3 my_adapter.py' core.h5\n"
      "         qkcts run avx2 core.h5 -- --gtest_list_tests\n"
      "Exit code: 0 conforming, 1 not conforming, 4 the adapter cannot be run, 5 nothing was run");
  sub->callback([given, stages, &command] {
    given->some_stages = stages->count() > 0;
    command = [given] { return given->in_process ? run_supervised(*given) : run(*given); };
  });
}

}  // namespace qkcts::cli
