// SPDX-License-Identifier: Apache-2.0
// `run --jobs N`: what is found, written and printed is what one job finds, whatever happens to the workers.
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/json_schema.hpp"
#include "harness/program_output.hpp"
#include "harness/test_adapters/test_adapters.hpp"

namespace qkcts {
namespace {

namespace fs = std::filesystem;

class JobsCli : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    setenv(mark, folder.c_str(), 1);
    corpus = path("cases.h5");
    std::string shapes;
    for (const int length : {3, 4, 5, 6, 7, 8}) shapes += fmt::format(" --shape 1,2,1,{},5,8,6", length);
    ASSERT_EQ(qkcts("generate --contract plain_sdpa" + shapes + " --format binary32 -o " + corpus).code, 0);
    written("plan.json", R"({"schema": "qkcts-plan/1", "suite": "pairs", "seed": 1, "groups": [
      {"contracts": ["qwen3_rmsnorm"], "families": ["eps_edge"], "formats": ["binary32"],
       "shapes": ["1,2,1,3,6,8,6", "1,2,1,4,6,8,6"], "relations": ["P2", "value_sign"]}]})");
    ASSERT_EQ(qkcts("generate " + path("plan.json") + " -o " + path("pairs.h5")).code, 0);
  }
  static void TearDownTestSuite() {
    unsetenv(mark);
    ProgramTest::TearDownTestSuite();
  }

  // Everything that comes out of a test inherits the mark.
  static constexpr const char* mark = "QKCTS_JOBS_TEST";

  static std::string lying(const std::string& fault) {
    return fmt::format("'{}?fault={}' {}", test_adapter("lying"), fault, corpus);
  }

  // The lines of the journal, without times and begin.
  static std::vector<Json> journal(const std::string& reports) {
    std::ifstream file(path(reports + "/run.part"));
    std::vector<Json> lines;
    for (std::string line; std::getline(file, line);) {
      Json parsed = parse_json(line, "run.part");
      parsed.erase("seconds");
      parsed.erase("started");
      parsed.erase("run");  // as in run.json, with the command
      if (parsed.contains("case")) parsed["case"].erase("seconds");
      lines.push_back(std::move(parsed));
    }
    return lines;
  }

  static std::int64_t worker_memory(const std::string& reports) {
    const Json record = parse_json(read_text_file(path(reports + "/run.json")), "run.json");
    return record["machine"]["worker_memory_mib"].get<std::int64_t>();
  }

  // Runs it with one job and with three, and expects the same of both. The findings.
  static Json same(const std::string& arguments, const std::string& behind = "") {
    fs::remove_all(path("one"));
    fs::remove_all(path("three"));
    const ProgramOutput one = qkcts(fmt::format("run {} -o {} {}", arguments, path("one"), behind));
    const ProgramOutput three = qkcts(fmt::format("run {} --jobs 3 -o {} {}", arguments, path("three"), behind));
    EXPECT_EQ(one.code, three.code) << arguments << three.err;
    Json found = findings("three");
    EXPECT_EQ(findings("one"), found) << arguments;
    EXPECT_EQ(journal("one"), journal("three")) << arguments;
    return found;
  }

  // A run of two jobs in the background; what it says on stderr goes to the file `said`.
  static pid_t started(const std::string& more) {
    const std::string command =
        fmt::format("exec {} run '{}?fault=slow' {} --variants none --jobs 2 {} >/dev/null 2>{}", QKCTS_PROGRAM,
                    test_adapter("lying"), corpus, more, path("said"));
    const pid_t child = fork();
    if (child != 0) return child;
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }

  static std::string content(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  // Processes that came out of the tests, workers and what they left included; zombies, which have no environment, are
  // not. With `parent`: its children among them.
  static std::vector<pid_t> processes(pid_t parent = 0) {
    std::vector<pid_t> found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      if (content(entry.path() / "environ").find(fmt::format("{}={}", mark, folder)) == std::string::npos) continue;
      if (parent != 0 &&
          content(entry.path() / "status").find(fmt::format("\nPPid:\t{}\n", parent)) == std::string::npos)
        continue;
      found.push_back(std::stoi(entry.path().filename().string()));
    }
    return found;
  }

  static inline std::string corpus;
};

TEST_F(JobsCli, FindsWhatOneJobFinds) {
  const Json found = same("scalar " + path("pairs.h5"));
  EXPECT_EQ(found["summary"]["relations"]["pass"], 4);
  EXPECT_GT(worker_memory("three"), 0);
  EXPECT_NEAR(static_cast<double>(worker_memory("one")), 3.0 * static_cast<double>(worker_memory("three")), 3);
  EXPECT_FALSE(found["heat_maps"].empty());
  EXPECT_FALSE(found["cases"][0]["stages"][0]["plain"].is_null());
  EXPECT_EQ(same("'mutants?mutant=eps_class_default' " + path("pairs.h5"))["exit_code"], 1);
  EXPECT_EQ(same("scalar " + path("pairs.h5") + " --relations-only")["exit_code"], 0);
  // Cases that only their relation needs.
  same("scalar " + path("pairs.h5") + " --case '*value_sign*'");
  same(lying("none") + " --profile f32_ftz --stages output --shard 2/3");
}

TEST_F(JobsCli, ErrorsAreThoseOfOneJob) {
  EXPECT_EQ(same(lying("abort"))["summary"]["cases"]["error(crash)"], 6);
  EXPECT_EQ(same(lying("force_input"))["summary"]["cases"]["error(input_modified)"], 6);
  EXPECT_EQ(same(lying("daemon_hang") + " --variants none --timeout 0.6")["summary"]["cases"]["error(timeout)"], 6);
  EXPECT_TRUE(processes().empty()) << "also what moved to a session of its own is ended";
}

// Restarts are counted as one worker would have made them, whatever was run ahead of them.
TEST_F(JobsCli, TheBudgetOfRespawnsIsThatOfOneJob) {
  for (const int respawns : {0, 2}) {
    const Json found = same(lying("abort") + fmt::format(" --respawns {}", respawns));
    EXPECT_EQ(found["summary"]["cases"]["error(crash)"], respawns + 1);
    EXPECT_EQ(found["summary"]["cases"]["not_run"], 5 - respawns);
  }
}

TEST_F(JobsCli, FiltersRepetitionsAndOrdersOfGoogleTestHold) {
  same("scalar " + path("pairs.h5"), "-- '--gtest_filter=*.output:*.relation'");
  same("scalar " + path("pairs.h5"), "-- --gtest_repeat=2");
  same("scalar " + path("pairs.h5"), "-- --gtest_shuffle --gtest_random_seed=7");
  const ProgramOutput list = qkcts("run scalar " + corpus + " --jobs 2 -- --gtest_list_tests");
  EXPECT_EQ(list.code, 0);
  EXPECT_EQ(list.out, qkcts("run scalar " + corpus + " -- --gtest_list_tests").out);
}

TEST_F(JobsCli, ATimeThatIsOverEndsAllOfThem) {
  const ProgramOutput over =
      qkcts(fmt::format("run {} --jobs 3 --variants none --max-time 0.5 -o {}", lying("hang"), path("over")));
  EXPECT_EQ(over.code, 5) << over.out << over.err;
  EXPECT_EQ(findings("over")["summary"]["cases"]["not_run"], 6);
  EXPECT_TRUE(processes().empty());
}

// The first case hangs to the end; what the other lane ran meanwhile is judged all the same.
TEST_F(JobsCli, WhatIsReadyAtTheEndIsJudged) {
  const std::string run =
      fmt::format("run {} --jobs 2 --variants none --no-plain -o {}", lying("hang_short"), path("ready"));
  qkcts(run + " --max-time 1.5");
  const Json cases = findings("ready")["summary"]["cases"];
  EXPECT_GE(cases["pass"].get<int>(), 1) << cases.dump();
  EXPECT_EQ(cases["pass"].get<int>() + cases["not_run"].get<int>(), 6) << cases.dump();
  EXPECT_GE(cases["not_run"].get<int>(), 1) << cases.dump();
  const std::string part = content(path("ready/run.part"));
  EXPECT_EQ(parse_json(part.substr(0, part.find('\n')), "run.part")["run"]["machine"]["worker_memory_mib"],
            worker_memory("ready"))
      << "what the first line says before any case was run";
}

// By an adapter that replaces it when it is started, between the opening here and that in the lanes.
TEST_F(JobsCli, AllLanesReadTheCorpusOfTheRun) {
  const std::string mine = path("swapped.h5"), second = path("second.h5");
  const std::string generate = "generate --contract plain_sdpa --shape 1,2,1,3,5,8,6 --format binary32 --seed {} -o {}";
  ASSERT_EQ(qkcts(fmt::format(fmt::runtime(generate), 1, mine)).code, 0);
  ASSERT_EQ(qkcts(fmt::format(fmt::runtime(generate), 2, second)).code, 0);
  written("swap.sh", fmt::format("mv {} {} 2>/dev/null; exec {}", second, mine, QKCTS_LYING_COMMAND));
  const ProgramOutput run = qkcts(fmt::format("run 'cmd:sh {}' {} --jobs 2", path("swap.sh"), mine));
  EXPECT_EQ(run.code, 3) << run.out << run.err;
  EXPECT_EQ(run.err, fmt::format("qkcts: {}: was changed while the run began\n", mine));
}

TEST_F(JobsCli, ALaneThatIsKilledEndsTheRunWithOneError) {
  for (const bool with_journal : {false, true}) {
    const pid_t child = started(with_journal ? "-o " + path("lane") : std::string());
    for (int i = 0; i < 2000 && processes().size() < 5; ++i)  // the run, two lanes and a worker of each
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::vector<pid_t> lanes = processes(child);
    EXPECT_GE(lanes.size(), 2u);
    for (const pid_t lane : lanes) kill(lane, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 6);
    const std::string said = read_text_file(path("said"));
    EXPECT_TRUE(is_one_line(said)) << said;
    EXPECT_NE(said.find("the process that ran it for --jobs was killed"), std::string::npos) << said;
    EXPECT_EQ(said.find("internal error"), std::string::npos) << said;
    EXPECT_EQ(said.find("journal: go on with --resume") != std::string::npos, with_journal) << said;
    EXPECT_TRUE(processes().empty());
  }
}

TEST_F(JobsCli, SignalsLeaveAReportThatIsGoneOnWithByAnyNumberOfJobs) {
  const auto journaled = [](const std::string& reports) {
    const std::string file = path(reports + "/run.part");
    const std::string text = fs::exists(file) ? read_text_file(file) : std::string();
    std::size_t cases = 0;
    for (std::size_t at = 0; (at = text.find("\"implementation\"", at)) != std::string::npos; ++at) ++cases;
    return cases;
  };
  const std::string run = fmt::format("run {} --variants none", lying("slow"));
  ASSERT_EQ(qkcts(run + " -o " + path("whole")).code, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    const std::string reports = fmt::format("signal{}", signal);
    const pid_t child = started("-o " + path(reports));
    for (int i = 0; i < 2000 && journaled(reports) < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_GE(processes().size(), 3u) << "the run and two lanes";
    kill(child, signal);
    int status = 0;
    waitpid(child, &status, 0);
    if (signal == SIGKILL) {
      EXPECT_TRUE(WIFSIGNALED(status));
      for (int i = 0; i < 400 && !processes().empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    } else {
      ASSERT_TRUE(WIFEXITED(status));
      EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
      EXPECT_GE(findings(reports)["summary"]["cases"]["pass"].get<int>(), 2);
    }
    EXPECT_TRUE(processes().empty()) << signal;
    const ProgramOutput rest = qkcts(run + " --resume --jobs 3 -o " + path(reports));
    EXPECT_EQ(rest.code, 0) << rest.out << rest.err;
    EXPECT_EQ(findings(reports), findings("whole"));
  }
}

TEST_F(JobsCli, UsageIsChecked) {
  const ProgramOutput both = qkcts("run scalar " + corpus + " --jobs 2 --in-process");
  EXPECT_EQ(both.code, 2);
  EXPECT_TRUE(is_one_line(both.err)) << both.err;
  EXPECT_NE(both.err.find("--in-process"), std::string::npos) << both.err;
  EXPECT_EQ(qkcts("run scalar " + corpus + " --jobs 0").code, 2);
  EXPECT_EQ(qkcts("run scalar " + corpus + " --jobs 1 --in-process").code, 0);
}

}  // namespace
}  // namespace qkcts
