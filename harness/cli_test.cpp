// SPDX-License-Identifier: Apache-2.0
// The program as a user meets it: exit codes, one-line errors, what is printed and written.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/file.hpp"
#include "conformance/json_schema.hpp"
#include "harness/test_adapters/test_adapters.hpp"

namespace qkcts {
namespace {

namespace fs = std::filesystem;

struct Finished {
  int code = -1;
  std::string out, err;
};

class Cli : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char name[] = "/var/tmp/qkcts_cli_XXXXXX";
    folder = mkdtemp(name);
    corpus = folder + "/smoke.h5";
    ASSERT_EQ(qkcts("generate smoke -o " + corpus).code, 0);
  }
  static void TearDownTestSuite() { fs::remove_all(folder); }

  // `arguments` as a shell reads them, after the assignments in `environment`.
  static Finished qkcts(const std::string& arguments, const std::string& environment = "") {
    const std::string command =
        environment + " " + QKCTS_PROGRAM + " " + arguments + " >" + folder + "/out 2>" + folder + "/err";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text_file(folder + "/out"),
            read_text_file(folder + "/err")};
  }
  static std::string lying(const std::string& fault) { return "'" + test_adapter("lying") + "?fault=" + fault + "'"; }
  static std::string path(const std::string& name) { return folder + "/" + name; }
  static void write(const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; }

  static inline std::string folder, corpus;
};

bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == text.size() - 1;
}

TEST_F(Cli, EveryCommandHasHelpWithAnExample) {
  EXPECT_EQ(qkcts("--help").code, 0);
  EXPECT_EQ(qkcts("--version").out, "0.1.0\n");
  for (const char* command : {"contract", "contract list", "contract show", "contract validate", "contract diff",
                              "contract from-config", "generate", "verify", "inspect", "adapters", "describe", "run",
                              "export", "answer", "check", "explain", "diagnose"}) {
    const Finished help = qkcts(std::string(command) + " --help");
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_NE(help.out.find("qkcts " + std::string(command)), std::string::npos) << help.out;
    EXPECT_NE(help.out.find("Example"), std::string::npos) << command;
  }
}

TEST_F(Cli, UsageErrorsAreTwo) {
  for (const char* arguments :
       {"", "frobnicate", "run", "run scalar", "run scalar x.h5 --nonsense", "run scalar x.h5 --repeat 0",
        "run scalar x.h5 --timeout -1", "explain x.h5", "contract", "contract frob"}) {
    const Finished usage = qkcts(arguments);
    EXPECT_EQ(usage.code, 2) << arguments;
    EXPECT_TRUE(is_one_line(usage.err)) << arguments << "\n" << usage.err;
    EXPECT_EQ(usage.err.rfind("qkcts: ", 0), 0u) << usage.err;
    EXPECT_NE(usage.err.find("--help"), std::string::npos) << usage.err;
  }
}

TEST_F(Cli, UsageErrorsSayWhatIsWrongAndWhatToDo) {
  const Finished bogus = qkcts("bogus");
  EXPECT_EQ(bogus.err.rfind("qkcts: 'bogus' is no command or option here; there are: contract, generate,", 0), 0u)
      << bogus.err;
  EXPECT_EQ(qkcts("").err.rfind("qkcts: a command is missing; there are: contract,", 0), 0u);
  EXPECT_NE(qkcts("contract frob").err.find("'frob' is no command or option here; there are: list, show"),
            std::string::npos);
  EXPECT_NE(qkcts("run scalar").err.find("FILE is required; see `qkcts run --help`"), std::string::npos)
      << qkcts("run scalar").err;
}

// What stands in a flag and is none is a mistake of usage, whatever the files say.
TEST_F(Cli, MalformedValuesAreTwo) {
  const std::string first = qkcts("inspect " + corpus + " --names").out;
  const std::string explain = fmt::format("explain {} {}", corpus, first.substr(0, first.find('\n')));
  for (const std::string& arguments : std::vector<std::string>{
           "run scalar " + corpus + " --stages foo", "run scalar " + corpus + " --stages probs,,output",
           "run scalar " + corpus + " --stages ''", "generate --contract plain_sdpa --format float8 -o " + path("x.h5"),
           "generate --contract plain_sdpa --shape 1,2 -o " + path("x.h5"),
           "generate --contract plain_sdpa --family nonsense -o " + path("x.h5"), explain + " nonsense 0,0,0,0",
           explain + " output 0,0,0", explain + " output a,0,0,0", explain + " output 0,0,0,-1",
           explain + " output 0,0,0,0 --profile nonsense", "run scalar " + corpus + " -- --gtest_nonsense",
           "inspect " + corpus + " --format csv", "inspect " + corpus + " --separation --format yaml",
           "generate --separate plain_sdpa -o " + path("x.h5"),
           "generate smoke --separate plain_sdpa henry2020_l2 -o " + path("x.h5"),
           "generate --separate plain_sdpa henry2020_l2 --shape 1,2 -o " + path("x.h5")}) {
    const Finished usage = qkcts(arguments);
    EXPECT_EQ(usage.code, 2) << arguments << "\n" << usage.err;
    EXPECT_TRUE(is_one_line(usage.err)) << arguments << "\n" << usage.err;
    EXPECT_EQ(usage.err.rfind("qkcts: ", 0), 0u) << usage.err;
  }
}

// Stages and rounding points of ABI 1.2, from the inputs to the explanation of an element.
TEST_F(Cli, AProjectionIsGeneratedRunAndExplained) {
  const std::string file = path("projection.h5");
  const Finished made =
      qkcts("generate --contract clause_round_projection --family halfway --shape 1,2,1,3,4,8,6 -o " + file);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_NE(made.out.find(": 1 case, "), std::string::npos) << made.out;
  const Finished run = qkcts("run scalar " + file);
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  const std::size_t projected = run.out.find(" q_proj "), normed = run.out.find(" q_norm ");
  EXPECT_LT(projected, normed) << run.out;
  EXPECT_EQ(qkcts("run scalar " + file + " --stages q_proj,k_proj").code, 0);
  const Finished unknown = qkcts("run scalar " + file + " --stages q_project");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("q_proj, k_proj, q_norm, k_norm, v_norm, q_rope"), std::string::npos) << unknown.err;
  const Finished explained = qkcts("explain " + file + " halfway q_proj 0,0,0,0");
  EXPECT_EQ(explained.code, 0) << explained.out << explained.err;
  EXPECT_NE(explained.out.find("clause QK-PROJ"), std::string::npos) << explained.out;
  EXPECT_NE(explained.out.find(", rounded to bfloat16 by the contract\n"), std::string::npos) << explained.out;
  const Finished plain = qkcts("explain " + file + " halfway output 0,0,0,0");
  EXPECT_EQ(plain.out.find("by the contract"), std::string::npos) << plain.out;
}

// A case says which wrong contracts it would catch: the place of epsilon near its root, nothing at the contract itself.
TEST_F(Cli, ACaseShowsItsSeparations) {
  const Finished shown = qkcts(fmt::format("inspect {} qwen3_rmsnorm/eps_edge/bfloat16 --separation", corpus));
  EXPECT_EQ(shown.code, 0) << shown.err;
  for (const char* expected : {"neighbouring contract", "norm.root=outside_root", "norm.gain=one_plus_w", "above 1:"})
    EXPECT_NE(shown.out.find(expected), std::string::npos) << expected << "\n" << shown.out;
  EXPECT_EQ(shown.out.find("q_norm.root=inside_root"), std::string::npos) << "that is the contract itself";
}

TEST_F(Cli, ContractsOfModelsAreFoundByPattern) {
  const Finished made = qkcts("generate --contract 'gpt_oss*' --shape 1,2,1,2,3,64,4 -o " + path("models.h5"));
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_NE(qkcts("inspect " + path("models.h5") + " --names").out.find("gpt_oss"), std::string::npos);
}

TEST_F(Cli, BadInputIsThreeWithOneLine) {
  write("text.h5", "this is no HDF5");
  write("bad.json", "{\"schema\": \"qkcts-limits/1\", \"limits\": 7}");
  for (const std::string& arguments : std::vector<std::string>{
           "run scalar /nonexistent.h5", "run scalar " + path("text.h5"),
           "run scalar " + corpus + " --limits " + path("bad.json"), "contract show nonsense",
           "contract validate " + path("bad.json"), "explain " + corpus + " nonsense q_norm 0,0,0,0",
           "explain " + corpus + " qwen3_rmsnorm/eps_edge/bfloat16 output 0,0,0,0 --profile bf16_f32acc_hopper"}) {
    const Finished bad = qkcts(arguments);
    EXPECT_EQ(bad.code, 3) << arguments << "\n" << bad.err;
    EXPECT_TRUE(is_one_line(bad.err)) << arguments << "\n" << bad.err;
  }
}

// The contract goes to stdout or to a file, what was read to stderr; what is not understood ends with 3 and one line.
TEST_F(Cli, AContractIsDerivedFromAConfiguration) {
  write_file_atomically(path("config.json"),
                        R"({"model_type": "qwen3_moe", "rms_norm_eps": 3e-6, "hidden_act": "silu"})");
  const Finished derived = qkcts("contract from-config " + path("config.json") + " -o " + path("derived.json"));
  EXPECT_EQ(derived.code, 0) << derived.err;
  EXPECT_EQ(derived.out, "");
  for (const char* text : {"used     rms_norm_eps", "ignored  hidden_act", "q_norm.eps             1e-06 -> 3e-06"})
    EXPECT_NE(derived.err.find(text), std::string::npos) << text << derived.err;
  EXPECT_EQ(qkcts("contract validate " + path("derived.json")).code, 0);
  const Finished difference = qkcts("contract diff qwen3_moe " + path("derived.json"));
  EXPECT_EQ(difference.code, 1);
  EXPECT_EQ(std::count(difference.out.begin(), difference.out.end(), '\n'), 3) << difference.out;  // head, q, k
  write_file_atomically(path("config.json"), R"({"model_type": "qwen3_moe", "qk_novelty": 1})");
  const Finished refused = qkcts("contract from-config " + path("config.json"));
  EXPECT_EQ(refused.code, 3);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("/qk_novelty: is 1; speaks of attention"), std::string::npos) << refused.err;
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
}

TEST_F(Cli, AdapterThatCannotRunIsFour) {
  for (const std::string& adapter :
       {std::string("nonsense"), std::string("/nonexistent.so"), corpus, test_adapter("odd_no_symbol"),
        test_adapter("odd_major"), test_adapter("odd_short"), test_adapter("odd_null_function"),
        test_adapter("odd_null_table"), test_adapter("odd_json"), test_adapter("odd_field"),
        test_adapter("odd_load_crash"), lying("prepare"), std::string("'mutants?mutant=nonsense'")}) {
    const Finished bad = qkcts(fmt::format("run {} {}", adapter, corpus));
    EXPECT_EQ(bad.code, 4) << adapter << "\n" << bad.err;
    EXPECT_TRUE(is_one_line(bad.err)) << adapter << "\n" << bad.err;
  }
  EXPECT_EQ(qkcts("describe " + test_adapter("odd_json")).code, 4);
}

TEST_F(Cli, ProfileThatDoesNotExistIsSaidBeforeAnythingRuns) {
  const Finished invented = qkcts("run " + test_adapter("lying_profile") + " " + corpus);
  EXPECT_EQ(invented.code, 4);
  EXPECT_NE(invented.err.find("names profile 'f32_invented' for binary32"), std::string::npos) << invented.err;
  EXPECT_TRUE(is_one_line(invented.err)) << invented.err;
  for (const char* name : {"nonsense", "f64"}) {  // there are no binary64 cases in this corpus
    const Finished asked = qkcts("run scalar " + corpus + " --profile " + name);
    EXPECT_EQ(asked.code, 2) << name << asked.err;
    EXPECT_TRUE(is_one_line(asked.err)) << asked.err;
    EXPECT_NE(asked.err.find("f32_ftz"), std::string::npos) << asked.err;
    EXPECT_EQ(asked.err.find(", f64"), std::string::npos) << asked.err;  // of another format
  }
}

// A profile of the user's own: generated, run, explained; one that grants less than the kernel needs makes it fail.
TEST_F(Cli, ProfileOfOnesOwnJudges) {
  Json mine = parse_json(read_text_file(QKCTS_SOURCE_DIR "/conformance/profiles/f32.json"), "f32.json");
  mine["name"] = "mine";
  write("mine.json", mine.dump());
  mine["name"] = "in_binary64";
  mine["parameters"]["accumulator"]["value"] = "binary64";
  write("in_binary64.json", mine.dump());
  const std::string own = path("own.h5");
  const Finished made = qkcts("generate --contract plain_sdpa --shape 1,2,1,3,64,64,64 --profile " + path("mine.json") +
                              " --profile " + path("in_binary64.json") + " -o " + own);
  ASSERT_EQ(made.code, 0) << made.err;
  const Finished passes = qkcts("run scalar " + own + " --profile mine -o " + path("own"));
  EXPECT_EQ(passes.code, 0) << passes.out << passes.err;
  EXPECT_NE(read_text_file(path("own/run.json")).find("\"mine\""), std::string::npos);
  EXPECT_EQ(qkcts("run scalar " + own).code, 0);
  EXPECT_EQ(qkcts("run scalar " + own + " --profile in_binary64").code, 1);
  EXPECT_EQ(qkcts("explain " + own + " plain_sdpa output 0,0,0,0 --profile in_binary64").code, 0);
  EXPECT_EQ(qkcts("verify " + own + " --all").code, 0);
}

TEST_F(Cli, NothingRunIsFive) {
  const Finished undeclared = qkcts("run template " + corpus);
  EXPECT_EQ(undeclared.code, 5);
  EXPECT_NE(undeclared.out.find("unsupported: format binary32"), std::string::npos) << undeclared.out;
  const Finished absent = qkcts("run " + test_adapter("odd_unavailable") + " " + corpus);
  EXPECT_EQ(absent.code, 5);
  EXPECT_NE(absent.out.find("NOTHING WAS RUN: no such device here"), std::string::npos) << absent.out;
  const Finished nothing = qkcts("run scalar " + corpus + " --case 'nonsense*'");
  EXPECT_EQ(nothing.code, 5);
  EXPECT_NE(nothing.out.find("No case matches"), std::string::npos) << nothing.out;
  EXPECT_NE(nothing.out.find("0 cases\nNOTHING WAS RUN"), std::string::npos) << nothing.out;
  EXPECT_EQ(nothing.out.find("contract "), std::string::npos) << nothing.out;  // no head of a table without rows
}

TEST_F(Cli, ConformingAdapterIsZeroAndWritesItsReports) {
  const Finished run = qkcts("run scalar " + corpus + " -o " + path("reports"));
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("CONFORMING"), std::string::npos);
  const Json record = parse_json(read_text_file(path("reports/run.json")), "run.json");
  EXPECT_NO_THROW(require_schema(record, "run", "run.json"));
  EXPECT_EQ(record["exit_code"], 0);
  EXPECT_EQ(record["corpus"]["suite"], "smoke");
  EXPECT_TRUE(fs::file_size(path("reports/junit.xml")) > 0);
  EXPECT_TRUE(fs::file_size(path("reports/report.html")) > 0);
}

TEST_F(Cli, WrongKernelIsOneAndItsCommandsWork) {
  const Finished run = qkcts("run 'mutants?mutant=eps_outside_sqrt' " + corpus);
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.out.find("NOT CONFORMING"), std::string::npos);
  const auto command_after = [&](const std::string& word) {
    const std::size_t at = run.out.find(word);
    return run.out.substr(at + word.size(), run.out.find('\n', at) - at - word.size());
  };
  const Finished explained = qkcts(command_after("  explain: qkcts "));
  EXPECT_EQ(explained.code, 0) << explained.err;
  EXPECT_NE(explained.out.find("holds these same bits"), std::string::npos) << explained.out;
  EXPECT_NE(explained.out.find("Delta so far"), std::string::npos) << explained.out;
  const Finished again = qkcts(command_after("  again:   qkcts "));
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.out.find("1 case: 1 fail"), std::string::npos) << again.out;
}

TEST_F(Cli, AgainAsksForTheSameStages) {
  const Finished run = qkcts("run 'mutants?mutant=eps_outside_sqrt' " + corpus + " --stages output,q_norm");
  EXPECT_NE(run.out.find(" --stages q_norm,output\n"), std::string::npos) << run.out;
}

TEST_F(Cli, UnwrittenElementsAreExplained) {
  const Finished run = qkcts("run " + lying("unwritten") + " " + corpus + " --case 'plain_sdpa/*'");
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.out.find("1 element was never written, the first is [b"), std::string::npos) << run.out;
  const std::string word = "  explain: qkcts ";
  const std::size_t at = run.out.find(word);
  ASSERT_NE(at, std::string::npos) << run.out;
  const std::string command = run.out.substr(at + word.size(), run.out.find('\n', at) - at - word.size());
  EXPECT_EQ(qkcts(command).code, 0) << command;
}

TEST_F(Cli, CrashesAreVerdictsAndTheRunGoesOn) {
  const std::string two = path("two.h5");
  const Finished generated =
      qkcts("generate --contract plain_sdpa --shape 1,2,1,3,5,8,6 --shape 1,2,1,4,5,8,6 -o " + two);
  ASSERT_EQ(generated.code, 0) << generated.out;
  const Finished run = qkcts("run " + lying("segfault") + " " + two + " -o " + path("crash"));
  EXPECT_EQ(run.code, 1);
  const Json record = parse_json(read_text_file(path("crash/run.json")), "run.json");
  EXPECT_EQ(record["summary"]["cases"]["error(crash)"], 2);
}

TEST_F(Cli, PrintsOfTheAdapterStayOutOfOurs) {
  const Finished run = qkcts("run " + lying("stdout") + " " + corpus + " --case 'plain_sdpa/*'");
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_EQ(run.out.find("from the library"), std::string::npos) << run.out;
}

TEST_F(Cli, InProcessRunJudgesAlike) {
  EXPECT_EQ(qkcts("run scalar " + corpus + " --in-process --case 'plain_sdpa/*'").code, 0);
  EXPECT_EQ(qkcts("run " + lying("wrong") + " " + corpus + " --in-process --case 'plain_sdpa/*'").code, 1);
}

TEST_F(Cli, AdapterCannotEndAnInProcessRunAsSuccess) {
  const std::string rest = " " + corpus + " --in-process --case 'plain_sdpa/*'";
  EXPECT_EQ(qkcts("run " + lying("exit_zero") + rest).code, 1);
  EXPECT_EQ(qkcts("run " + lying("exit") + rest).code, 1);
  EXPECT_EQ(qkcts("run " + lying("throw") + rest).code, 1);
  EXPECT_EQ(qkcts("run " + lying("abort") + rest).code, 128 + SIGABRT);
}

TEST_F(Cli, UnwritableReportsAreSix) {
  write("file", "");
  const Finished run = qkcts("run scalar " + corpus + " --case 'plain_sdpa/*' -o " + path("file/reports"));
  EXPECT_EQ(run.code, 6);
  EXPECT_TRUE(is_one_line(run.err)) << run.err;
}

TEST_F(Cli, OwnLimitsFailWithoutTouchingTheProvenVerdict) {
  write("strict.json", R"({"schema": "qkcts-limits/1", "limits": [{"stage": "output", "max_ulp": 0}]})");
  write("lax.json", R"({"schema": "qkcts-limits/1", "limits": [{"stage": "*", "atol": 1e9}]})");
  const Finished strict = qkcts("run scalar " + corpus + " --case 'plain_sdpa/*' --limits " + path("strict.json"));
  EXPECT_EQ(strict.code, 1);
  EXPECT_NE(strict.out.find("OVER YOUR LIMIT"), std::string::npos) << strict.out;
  EXPECT_NE(strict.out.find("over    pass"), std::string::npos) << strict.out;
  EXPECT_EQ(qkcts("run scalar " + corpus + " --case 'plain_sdpa/*' --limits " + path("lax.json")).code, 0);
  EXPECT_EQ(qkcts("run " + lying("wrong") + " " + corpus + " --case 'plain_sdpa/*' --limits " + path("lax.json")).code,
            1);
}

TEST_F(Cli, GoogleTestListsFiltersRepeatsAndShards) {
  const Finished list = qkcts("run scalar " + corpus + " -- --gtest_list_tests");
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

TEST_F(Cli, InterruptedRunReportsWhatItHas) {
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
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
  const Json record = parse_json(read_text_file(reports + "/run.json"), "run.json");
  EXPECT_EQ(record["interrupted_by"], SIGINT);
  EXPECT_NO_THROW(require_schema(record, "run", "run.json"));
}

TEST_F(Cli, ContractsAreShownAndCompared) {
  EXPECT_NE(qkcts("contract list").out.find("qwen3_rmsnorm"), std::string::npos);
  const Finished shown = qkcts("contract show qwen3_rmsnorm --json");
  EXPECT_EQ(shown.code, 0);
  write("mine.json", shown.out);
  EXPECT_EQ(qkcts("contract validate " + path("mine.json")).code, 0);
  EXPECT_EQ(qkcts("contract diff qwen3_rmsnorm " + path("mine.json")).code, 0);
  const Finished diff = qkcts("contract diff qwen3_rmsnorm llama4_rms_unweighted");
  EXPECT_EQ(diff.code, 1);
  EXPECT_NE(diff.out.find("QK-ROPE-01"), std::string::npos) << diff.out;
}

TEST_F(Cli, ExplainRefusesWhatDoesNotExist) {
  const std::string slug = qkcts("run scalar " + corpus + " -- --gtest_list_tests").out;
  const std::string first = slug.substr(0, slug.find('.'));
  EXPECT_EQ(qkcts("explain " + corpus + " " + first + " output 0,0,0,0").code, 0);
  const Finished outside = qkcts("explain " + corpus + " " + first + " output 0,0,0,99999");
  EXPECT_EQ(outside.code, 2);
  EXPECT_NE(outside.err.find("index 4 must lie in 0.."), std::string::npos) << outside.err;
  const Finished absent = qkcts("explain " + corpus + " " + first + " v_norm 0,0,0,0");
  EXPECT_EQ(absent.code, 2);
  EXPECT_NE(absent.err.find("has no stage v_norm; it has: "), std::string::npos) << absent.err;
}

TEST_F(Cli, AdaptersAreListed) {
  const Finished list = qkcts("adapters");
  EXPECT_EQ(list.code, 0);
  EXPECT_NE(list.out.find("scalar"), std::string::npos);
  const Finished described = qkcts("describe scalar");
  EXPECT_EQ(described.code, 0);
  EXPECT_NO_THROW(require_schema(parse_json(described.out, "out"), "adapter_describe", "out"));
}

// An epsilon that is always 1e-6 is right for qwen3, and still breaks a relation; no golden value is needed to see it.
TEST_F(Cli, RelationsAreCasesOfTheirOwn) {
  write("plan.json", R"({"schema": "qkcts-plan/1", "suite": "pairs", "seed": 1, "groups": [
    {"contracts": ["qwen3_rmsnorm"], "families": ["eps_edge"], "formats": ["binary32"], "shapes": ["1,2,1,3,6,8,6"],
     "relations": ["P2", "value_sign"]}]})");
  const std::string file = path("pairs.h5");
  ASSERT_EQ(qkcts("generate " + path("plan.json") + " -o " + file).code, 0);
  EXPECT_EQ(qkcts("verify " + file + " --all").code, 0);
  const Finished right = qkcts("run scalar " + file + " --relations-only");
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  EXPECT_NE(right.out.find("2 relations: 2 pass"), std::string::npos) << right.out;
  EXPECT_EQ(qkcts("run scalar " + file).code, 0);
  EXPECT_NE(qkcts("run scalar " + file + " -- --gtest_list_tests").out.find("relation"), std::string::npos);
  const Finished wrong = qkcts("run 'mutants?mutant=eps_class_default' " + file + " --relations-only -o " + path("r"));
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
