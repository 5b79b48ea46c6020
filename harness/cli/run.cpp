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
#include "harness/failure_text.hpp"
#include "harness/interruption.hpp"
#include "harness/relation_report.hpp"
#include "harness/report_html.hpp"
#include "harness/report_junit.hpp"
#include "harness/report_text.hpp"
#include "harness/run_session.hpp"
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

// Before the run, so that a mistyped folder costs nothing.
void make_report_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw WriteError(fmt::format("{}: cannot be created: {}", folder, error.message()));
  if (!std::filesystem::is_directory(folder, error)) throw WriteError(fmt::format("{}: is no folder", folder));
}

void write_reports(const RunRecord& record, const std::string& folder) {
  write_file_atomically(folder + "/run.json", run_json_text(record));
  write_file_atomically(folder + "/junit.xml", junit_xml(record));
  write_file_atomically(folder + "/report.html", report_html(record));
  fmt::print("Reports: {0}/report.html  {0}/run.json  {0}/junit.xml\n", folder);
}

RunRequest request_from(const RunArguments& given) {
  RunRequest request;
  request.adapter = resolve_adapter(given.adapter);
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
  const RunRequest request = request_from(given);
  if (!given.output.empty()) make_report_folder(given.output);
  catch_interruption();
  Progress progress;
  const std::optional<RunRecord> record =
      run_corpus(request, {[&](std::size_t cases) { progress.start(cases); },
                           [&](const RunRecord& now, const CaseResult& result) { progress.after_case(now, result); },
                           [&](const RunRecord& now, const RelationResult& result) {
                             progress.print_failure(relation_failure_text(now, result), result.slug, result.verdict);
                           }});
  progress.clear();
  if (!record) return 0;
  fmt::print("{} {} ({}) on {}, suite {} {}\n\n", record->description.name, record->description.version, given.adapter,
             given.corpus, record->corpus_suite, record->corpus_digest.substr(0, 12));
  if (record->cases.empty() && record->relations.empty()) {
    fmt::print("No case matches; `qkcts inspect {} --names` lists them.\n", shell_quoted(given.corpus));
  } else {
    if (!record->cases.empty() && !given.relations_only) fmt::print("{}\n", result_table(*record));
    if (!record->relations.empty()) fmt::print("{}\n", relation_table_text(*record));
  }
  fmt::print("{}", summary_text(*record));
  if (!given.output.empty()) write_reports(*record, given.output);
  return exit_code(*record);
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

void add_run(CLI::App& app, Command& command) {
  CLI::App* const sub = app.add_subcommand("run", "Run an adapter on a corpus and judge what it computes");
  auto given = std::make_shared<RunArguments>();
  sub->add_option("ADAPTER", given->adapter, "Shared library, or scalar, avx2, mutants, template; options follow a '?'")
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
  sub->add_option("--limits", given->limits, "Own tolerances (JSON), judged beside the proven budgets")
      ->type_name("FILE");
  sub->add_option("-o,--output", given->output, "Folder for run.json, junit.xml and report.html")->type_name("DIR");
  sub->footer(
      "Example: qkcts run ./libmine.so core.h5 --case 'qwen3_rmsnorm/*' -o report\n"
      "         qkcts run avx2 core.h5 -- --gtest_list_tests\n"
      "Exit code: 0 conforming, 1 not conforming, 4 the adapter cannot be run, 5 nothing was run");
  sub->callback([given, stages, &command] {
    given->some_stages = stages->count() > 0;
    command = [given] { return given->in_process ? run_supervised(*given) : run(*given); };
  });
}

}  // namespace qkcts::cli
