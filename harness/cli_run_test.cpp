// SPDX-License-Identifier: Apache-2.0
// `run` as a user meets it: verdicts, exit codes, what is printed and written.
#include <chrono>
#include <csignal>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "conformance/json_schema.hpp"
#include "harness/program_output.hpp"
#include "harness/test_adapters/test_adapters.hpp"

namespace qkcts {
namespace {

namespace fs = std::filesystem;

class RunCli : public ProgramTest {
 protected:
  static std::string lying(const std::string& fault) { return "'" + test_adapter("lying") + "?fault=" + fault + "'"; }

  static inline const std::string corpus = QKCTS_SOURCE_DIR "/vectors/golden/smoke.h5";
};

TEST_F(RunCli, AdapterThatCannotRunIsFour) {
  for (const std::string& adapter :
       {std::string("nonsense"), std::string("/nonexistent.so"), corpus, test_adapter("odd_no_symbol"),
        test_adapter("odd_major"), test_adapter("odd_short"), test_adapter("odd_null_function"),
        test_adapter("odd_null_table"), test_adapter("odd_json"), test_adapter("odd_field"),
        test_adapter("odd_load_crash"), lying("prepare"), std::string("'mutants?mutant=nonsense'")}) {
    const ProgramOutput bad = qkcts(fmt::format("run {} {}", adapter, corpus));
    EXPECT_EQ(bad.code, 4) << adapter << "\n" << bad.err;
    EXPECT_TRUE(is_one_line(bad.err)) << adapter << "\n" << bad.err;
  }
  EXPECT_EQ(qkcts("describe " + test_adapter("odd_json")).code, 4);
}

TEST_F(RunCli, ProfileThatDoesNotExistIsSaidBeforeAnythingRuns) {
  const ProgramOutput invented = qkcts("run " + test_adapter("lying_profile") + " " + corpus);
  EXPECT_EQ(invented.code, 4);
  EXPECT_NE(invented.err.find("names profile 'f32_invented' for binary32"), std::string::npos) << invented.err;
  EXPECT_TRUE(is_one_line(invented.err)) << invented.err;
  for (const char* name : {"nonsense", "f64"}) {  // there are no binary64 cases in this corpus
    const ProgramOutput asked = qkcts("run scalar " + corpus + " --profile " + name);
    EXPECT_EQ(asked.code, 2) << name << asked.err;
    EXPECT_TRUE(is_one_line(asked.err)) << asked.err;
    EXPECT_NE(asked.err.find("f32_ftz"), std::string::npos) << asked.err;
    EXPECT_EQ(asked.err.find(", f64"), std::string::npos) << asked.err;  // of another format
  }
}

// A profile of the user's own: generated, run, explained; one that grants less than the kernel needs makes it fail.
TEST_F(RunCli, ProfileOfOnesOwnJudges) {
  Json mine = parse_json(read_text_file(QKCTS_SOURCE_DIR "/conformance/profiles/f32.json"), "f32.json");
  mine["name"] = "mine";
  written("mine.json", mine.dump());
  mine["name"] = "in_binary64";
  mine["parameters"]["accumulator"]["value"] = "binary64";
  written("in_binary64.json", mine.dump());
  const std::string own = path("own.h5");
  const ProgramOutput made = qkcts("generate --contract plain_sdpa --shape 1,2,1,3,64,64,64 --profile " +
                                   path("mine.json") + " --profile " + path("in_binary64.json") + " -o " + own);
  ASSERT_EQ(made.code, 0) << made.err;
  const ProgramOutput passes = qkcts("run scalar " + own + " --profile mine -o " + path("own"));
  EXPECT_EQ(passes.code, 0) << passes.out << passes.err;
  EXPECT_NE(read_text_file(path("own/run.json")).find("\"mine\""), std::string::npos);
  EXPECT_EQ(qkcts("run scalar " + own).code, 0);
  EXPECT_EQ(qkcts("run scalar " + own + " --profile in_binary64").code, 1);
  EXPECT_EQ(qkcts("explain " + own + " plain_sdpa output 0,0,0,0 --profile in_binary64").code, 0);
  EXPECT_EQ(qkcts("verify " + own + " --all").code, 0);
}

TEST_F(RunCli, NothingRunIsFive) {
  const ProgramOutput undeclared = qkcts("run template " + corpus);
  EXPECT_EQ(undeclared.code, 5);
  EXPECT_NE(undeclared.out.find("unsupported: format binary32"), std::string::npos) << undeclared.out;
  const ProgramOutput absent = qkcts("run " + test_adapter("odd_unavailable") + " " + corpus);
  EXPECT_EQ(absent.code, 5);
  EXPECT_NE(absent.out.find("NOTHING WAS RUN: no such device here"), std::string::npos) << absent.out;
  const ProgramOutput elsewhere = qkcts("run '" + test_adapter("lying") + "?fault=not_here' " + corpus);
  EXPECT_EQ(elsewhere.code, 5);
  EXPECT_NE(elsewhere.out.find("NOTHING WAS RUN: not run: no such device"), std::string::npos) << elsewhere.out;
  const ProgramOutput nothing = qkcts("run scalar " + corpus + " --case 'nonsense*'");
  EXPECT_EQ(nothing.code, 5);
  EXPECT_NE(nothing.out.find("No case matches"), std::string::npos) << nothing.out;
  EXPECT_NE(nothing.out.find("0 cases\nNOTHING WAS RUN"), std::string::npos) << nothing.out;
  EXPECT_EQ(nothing.out.find("contract "), std::string::npos) << nothing.out;  // no head of a table without rows
}

TEST_F(RunCli, ConformingAdapterIsZeroAndWritesItsReports) {
  const ProgramOutput run = qkcts("run scalar " + corpus + " -o " + path("reports"));
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("CONFORMING"), std::string::npos);
  const Json record = parse_json(read_text_file(path("reports/run.json")), "run.json");
  EXPECT_NO_THROW(require_schema(record, "run", "run.json"));
  EXPECT_EQ(record["exit_code"], 0);
  EXPECT_EQ(record["corpus"]["suite"], "smoke");
  EXPECT_TRUE(fs::file_size(path("reports/junit.xml")) > 0);
  EXPECT_TRUE(fs::file_size(path("reports/report.html")) > 0);
}

TEST_F(RunCli, WrongKernelIsOneAndItsCommandsWork) {
  const ProgramOutput run = qkcts("run 'mutants?mutant=eps_outside_sqrt' " + corpus);
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.out.find("NOT CONFORMING"), std::string::npos);
  const auto command_after = [&](const std::string& word) {
    const std::size_t at = run.out.find(word);
    return run.out.substr(at + word.size(), run.out.find('\n', at) - at - word.size());
  };
  const ProgramOutput explained = qkcts(command_after("  explain: qkcts "));
  EXPECT_EQ(explained.code, 0) << explained.err;
  EXPECT_NE(explained.out.find("holds these same bits"), std::string::npos) << explained.out;
  EXPECT_NE(explained.out.find("Delta so far"), std::string::npos) << explained.out;
  const ProgramOutput again = qkcts(command_after("  again:   qkcts "));
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.out.find("1 case: 1 fail"), std::string::npos) << again.out;
}

TEST_F(RunCli, AgainAsksForTheSameStages) {
  const ProgramOutput run = qkcts("run 'mutants?mutant=eps_outside_sqrt' " + corpus + " --stages output,q_norm");
  EXPECT_NE(run.out.find(" --stages q_norm,output\n"), std::string::npos) << run.out;
}

TEST_F(RunCli, UnwrittenElementsAreExplained) {
  const ProgramOutput run = qkcts("run " + lying("unwritten") + " " + corpus + " --case 'plain_sdpa/*'");
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.out.find("1 element was never written, the first is [b"), std::string::npos) << run.out;
  const std::string word = "  explain: qkcts ";
  const std::size_t at = run.out.find(word);
  ASSERT_NE(at, std::string::npos) << run.out;
  const std::string command = run.out.substr(at + word.size(), run.out.find('\n', at) - at - word.size());
  EXPECT_EQ(qkcts(command).code, 0) << command;
}

TEST_F(RunCli, CrashesAreVerdictsAndTheRunGoesOn) {
  const std::string two = path("two.h5");
  const ProgramOutput generated =
      qkcts("generate --contract plain_sdpa --shape 1,2,1,3,5,8,6 --shape 1,2,1,4,5,8,6 -o " + two);
  ASSERT_EQ(generated.code, 0) << generated.out;
  const ProgramOutput run = qkcts("run " + lying("segfault") + " " + two + " -o " + path("crash"));
  EXPECT_EQ(run.code, 1);
  const Json record = parse_json(read_text_file(path("crash/run.json")), "run.json");
  EXPECT_EQ(record["summary"]["cases"]["error(crash)"], 2);
}

TEST_F(RunCli, PrintsOfTheAdapterStayOutOfOurs) {
  const ProgramOutput run = qkcts("run " + lying("stdout") + " " + corpus + " --case 'plain_sdpa/*'");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_EQ(run.out.find("from the library"), std::string::npos) << run.out;
}

TEST_F(RunCli, InProcessRunJudgesAlike) {
  EXPECT_EQ(qkcts("run scalar " + corpus + " --in-process --case 'plain_sdpa/*'").code, 0);
  EXPECT_EQ(qkcts("run " + lying("wrong") + " " + corpus + " --in-process --case 'plain_sdpa/*'").code, 1);
}

TEST_F(RunCli, AdapterCannotEndAnInProcessRunAsSuccess) {
  const std::string rest = " " + corpus + " --in-process --case 'plain_sdpa/*'";
  EXPECT_EQ(qkcts("run " + lying("exit_zero") + rest).code, 1);
  EXPECT_EQ(qkcts("run " + lying("exit") + rest).code, 1);
  EXPECT_EQ(qkcts("run " + lying("throw") + rest).code, 1);
  // Nor once the run is over and its exit code is on the way out.
  EXPECT_EQ(qkcts("run " + lying("wrong_exit_late") + rest).code, 1);
  EXPECT_EQ(qkcts("run " + lying("exit_late") + rest).code, 0);
  EXPECT_EQ(qkcts("run " + lying("abort") + rest).code, 128 + SIGABRT);
}

TEST_F(RunCli, UnwritableReportsAreSix) {
  written("file", "");
  const ProgramOutput run = qkcts("run scalar " + corpus + " --case 'plain_sdpa/*' -o " + path("file/reports"));
  EXPECT_EQ(run.code, 6);
  EXPECT_TRUE(is_one_line(run.err)) << run.err;
}

TEST_F(RunCli, OwnLimitsFailWithoutTouchingTheProvenVerdict) {
  written("strict.json", R"({"schema": "qkcts-limits/1", "limits": [{"stage": "output", "max_ulp": 0}]})");
  written("lax.json", R"({"schema": "qkcts-limits/1", "limits": [{"stage": "*", "atol": 1e9}]})");
  const ProgramOutput strict = qkcts("run scalar " + corpus + " --case 'plain_sdpa/*' --limits " + path("strict.json"));
  EXPECT_EQ(strict.code, 1);
  EXPECT_NE(strict.out.find("OVER YOUR LIMIT"), std::string::npos) << strict.out;
  EXPECT_NE(strict.out.find("over    pass"), std::string::npos) << strict.out;
  EXPECT_EQ(qkcts("run scalar " + corpus + " --case 'plain_sdpa/*' --limits " + path("lax.json")).code, 0);
  EXPECT_EQ(qkcts("run " + lying("wrong") + " " + corpus + " --case 'plain_sdpa/*' --limits " + path("lax.json")).code,
            1);
}

TEST_F(RunCli, GoogleTestListsFiltersRepeatsAndShards) {
  const ProgramOutput list = qkcts("run scalar " + corpus + " -- --gtest_list_tests");
  EXPECT_EQ(list.code, 0);
  EXPECT_NE(list.out.find("plain_sdpa/"), std::string::npos);
  EXPECT_EQ(list.out.find_first_of("*?:-"), std::string::npos) << list.out;

  const std::string reports = " -o " + path("filtered");
  EXPECT_EQ(qkcts("run scalar " + corpus + reports + " -- '--gtest_filter=plain_sdpa/*.output' --gtest_repeat=2").code,
            0);
  const Json filtered = parse_json(read_text_file(path("filtered/run.json")), "run.json");
  for (const Json& one : filtered["cases"]) {
    EXPECT_EQ(one["contract"], "plain_sdpa");
    for (const Json& stage : one["stages"])
      EXPECT_EQ(stage["verdict"], stage["stage"] == "output" ? "pass" : "skipped");
  }
  int stages = 0;
  const auto passes = [&] {
    return parse_json(read_text_file(path("filtered/run.json")), "run.json")["summary"]["stages"]["pass"].get<int>();
  };
  for (const char* shard : {"0", "1", "2"}) {
    const std::string environment = fmt::format("GTEST_TOTAL_SHARDS=3 GTEST_SHARD_INDEX={}", shard);
    EXPECT_EQ(qkcts(fmt::format("run scalar {}{}", corpus, reports), environment).code, 0);
    stages += passes();
  }
  EXPECT_EQ(qkcts("run scalar " + corpus + reports).code, 0);
  EXPECT_EQ(stages, passes());
}

TEST_F(RunCli, RoundsWithoutEndEndWithTheRun) {
  const std::string run = "run scalar " + corpus + " --case 'plain_sdpa/*'", forever = " -- --gtest_repeat=-1";
  const ProgramOutput over = qkcts(run + " --max-time 0.5" + forever, "timeout -s KILL 20");
  EXPECT_TRUE(over.code == 0 || over.code == 1 || over.code == 5) << over.code << over.err;
  for (const int blocks : {10, 20, 40, 80}) {  // where the journal is full, in the first round or in a later one
    const ProgramOutput full =
        qkcts(run + " -o " + path("rounds") + forever, fmt::format("ulimit -f {}; timeout -s KILL 20", blocks));
    EXPECT_EQ(full.code, 6) << blocks << full.err;
    EXPECT_NE(full.err.find("run.part: File too large"), std::string::npos) << full.err;
  }
}

TEST_F(RunCli, InterruptedRunReportsWhatItHas) {
  const std::string reports = path("interrupted");
  const pid_t child = fork();
  if (child == 0) {
    const std::string adapter = test_adapter("lying") + "?fault=hang";
    static_cast<void>(!freopen("/dev/null", "w", stdout));
    static_cast<void>(!freopen("/dev/null", "w", stderr));
    execl(QKCTS_PROGRAM, "qkcts", "run", adapter.c_str(), corpus.c_str(), "--case", "plain_sdpa/*", "-o",
          reports.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  // Its journal is there once it runs; on a busy machine that takes a while.
  for (int tick = 0; tick < 600 && !fs::exists(reports + "/run.part"); ++tick)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
  const Json record = parse_json(read_text_file(reports + "/run.json"), "run.json");
  EXPECT_EQ(record["interrupted_by"], SIGINT);
  EXPECT_NO_THROW(require_schema(record, "run", "run.json"));
}

// An epsilon that is always 1e-6 is right for qwen3, and still breaks a relation; no golden value is needed to see it.
TEST_F(RunCli, RelationsAreCasesOfTheirOwn) {
  written("plan.json", R"({"schema": "qkcts-plan/1", "suite": "pairs", "seed": 1, "groups": [
    {"contracts": ["qwen3_rmsnorm"], "families": ["eps_edge"], "formats": ["binary32"], "shapes": ["1,2,1,3,6,8,6"],
     "relations": ["P2", "value_sign"]}]})");
  const std::string file = path("pairs.h5");
  ASSERT_EQ(qkcts("generate " + path("plan.json") + " -o " + file).code, 0);
  EXPECT_EQ(qkcts("verify " + file + " --all").code, 0);
  const ProgramOutput right = qkcts("run scalar " + file + " --relations-only");
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  EXPECT_NE(right.out.find("2 relations: 2 pass"), std::string::npos) << right.out;
  EXPECT_EQ(qkcts("run scalar " + file).code, 0);
  EXPECT_NE(qkcts("run scalar " + file + " -- --gtest_list_tests").out.find("relation"), std::string::npos);
  const ProgramOutput wrong =
      qkcts("run 'mutants?mutant=eps_class_default' " + file + " --relations-only -o " + path("r"));
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.out.find("epsilon is ignored, hard-coded, floored or misplaced"), std::string::npos) << wrong.out;
  const Json json = parse_json(read_text_file(path("r/run.json")), "run.json");
  EXPECT_NO_THROW(require_schema(json, "run", "run.json"));
  EXPECT_EQ(json["summary"]["relations"]["fail"], 1);
  EXPECT_EQ(json["summary"]["cases"]["skipped"], 3);
  // Without an adapter that runs at all, a relation is no pass either.
  EXPECT_EQ(qkcts("run template " + file + " --relations-only").code, 5);
}

}  // namespace
}  // namespace qkcts
