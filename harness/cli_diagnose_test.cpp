// SPDX-License-Identifier: Apache-2.0
// `run --diagnose` and `diagnose` as a user meets them: what is said, the bundle that stands for itself, exit codes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/wait.h>

#include "conformance/file.hpp"
#include "conformance/json.hpp"

namespace qkcts {
namespace {

namespace fs = std::filesystem;

struct Ended {
  int code = -1;
  std::string out, err;
};

class DiagnoseCli : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char name[] = "/var/tmp/qkcts_diagnose_XXXXXX";
    folder = mkdtemp(name);
    corpus = folder + "/small.h5";
    const Ended made = qkcts(
        "generate --contract qwen3_rmsnorm,plain_sdpa --family gaussian --format binary32 --shape 1,4,2,5,7,20,12 -o " +
        corpus);
    ASSERT_EQ(made.code, 0) << made.out << made.err;
  }
  static void TearDownTestSuite() { fs::remove_all(folder); }

  static Ended qkcts(const std::string& arguments) {
    const std::string command =
        std::string(QKCTS_PROGRAM) + " " + arguments + " >" + folder + "/out 2>" + folder + "/err";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text_file(folder + "/out"),
            read_text_file(folder + "/err")};
  }
  static std::string path(const std::string& name) { return folder + "/" + name; }
  static bool is_one_line(const std::string& text) { return !text.empty() && text.find('\n') == text.size() - 1; }
  // The run record of a wrong kernel, made once.
  static std::string record_of_wrong_kernel() {
    if (!fs::exists(path("wrong/run.json")))
      qkcts("run 'mutants?mutant=scale_missing' " + corpus + " -o " + path("wrong"));
    return path("wrong/run.json");
  }

  static inline std::string folder, corpus;
};

TEST_F(DiagnoseCli, ARunNamesTheClauseAndLeavesABundleThatFailsAlone) {
  const Ended run = qkcts("run 'mutants?mutant=rope_interleaved_for_half' " + corpus +
                          " --stages output,lse --diagnose --bundle " + path("repro") + " -o " + path("report"));
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_NE(run.out.find("MATCHES: rope.pairing half_split -> interleaved (QK-ROPE-02)"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("first divergent stage: q_rope"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("1 of 1 failing case diagnosed"), std::string::npos) << run.out;
  const Json diagnosis = parse_json(read_text_file(path("report/run.json")), "run.json").at("diagnosis").at("cases")[0];
  EXPECT_EQ(diagnosis.at("finding"), "matched");
  EXPECT_LE(diagnosis.at("seconds").get<double>(), 10.0);

  const std::string bundle = diagnosis.at("reproducer").at("bundle");
  for (const char* name : {"/case.h5", "/contract.json", "/README.md"}) EXPECT_TRUE(fs::exists(bundle + name)) << name;
  const std::string readme = read_text_file(bundle + "/README.md"), command = diagnosis.at("reproducer").at("command");
  EXPECT_NE(readme.find(command), std::string::npos);
  EXPECT_NE(readme.find("| 0x"), std::string::npos) << readme;
  const Ended again = qkcts(command.substr(command.find(' ') + 1));
  EXPECT_EQ(again.code, 1) << again.out << again.err;
  EXPECT_NE(again.out.find("1 case: 1 fail"), std::string::npos) << again.out;
  EXPECT_EQ(qkcts("verify " + bundle + "/case.h5 --all").code, 0);
  EXPECT_EQ(qkcts("run scalar " + bundle + "/case.h5").code, 0);
  EXPECT_EQ(qkcts("contract validate " + bundle + "/contract.json").code, 0);
}

TEST_F(DiagnoseCli, AConformingRunHasNothingToDiagnose) {
  const Ended run = qkcts("run scalar " + corpus + " --diagnose -o " + path("right"));
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_EQ(run.out.find("MATCH"), std::string::npos) << run.out;
  const Ended later = qkcts("diagnose " + path("right/run.json"));
  EXPECT_EQ(later.code, 0);
  EXPECT_NE(later.out.find("nothing to diagnose"), std::string::npos) << later.out;
}

TEST_F(DiagnoseCli, AnEarlierRunIsDiagnosed) {
  const Ended all = qkcts("diagnose " + record_of_wrong_kernel());
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_NE(all.out.find("score.scale_form inv_sqrt_head_dim -> constant (QK-SCALE-01)"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("2 of 2 failing cases diagnosed"), std::string::npos) << all.out;
  EXPECT_EQ(all.out.find("warning"), std::string::npos) << all.out;
  const Ended one = qkcts("diagnose " + record_of_wrong_kernel() + " --cases 1");
  EXPECT_NE(one.out.find("1 of 2 failing cases diagnosed, different contracts first"), std::string::npos) << one.out;
  EXPECT_EQ(qkcts("diagnose " + record_of_wrong_kernel() + " --case 'nothing*'").code, 5);
}

TEST_F(DiagnoseCli, WhatChangedSinceIsSaid) {
  std::string record = read_text_file(record_of_wrong_kernel());
  const Json run = parse_json(record, "run.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = record;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(path("changed.json")) << text;
    return qkcts("diagnose " + path("changed.json") + " --cases 1");
  };
  const Ended adapter = with(run.at("adapter").at("sha256"), std::string(64, '0'));
  EXPECT_EQ(adapter.code, 0) << adapter.err;
  EXPECT_EQ(adapter.out.rfind("warning: ", 0), 0U) << adapter.out;

  const Ended other_corpus = with(run.at("corpus").at("digest"), std::string(64, '0'));
  EXPECT_EQ(other_corpus.code, 3);
  EXPECT_TRUE(is_one_line(other_corpus.err)) << other_corpus.err;
  EXPECT_NE(other_corpus.err.find("run it again"), std::string::npos) << other_corpus.err;

  const Ended no_corpus = with("\"path\": \"" + corpus, "\"path\": \"" + corpus + ".gone");
  EXPECT_EQ(no_corpus.code, 3);
  EXPECT_TRUE(is_one_line(no_corpus.err)) << no_corpus.err;
  const Ended no_adapter = with("\"given\": \"mutants?", "\"given\": \"./gone.so?");
  EXPECT_EQ(no_adapter.code, 4);
  EXPECT_TRUE(is_one_line(no_adapter.err)) << no_adapter.err;
}

TEST_F(DiagnoseCli, BadArgumentsEndInOneLine) {
  const struct {
    std::string arguments;
    int code;
  } faults[] = {{"diagnose", 2},
                {"diagnose " + path("none.json"), 3},
                {"diagnose " + corpus, 3},
                {"diagnose " + record_of_wrong_kernel() + " --cases -1", 2},
                {"run scalar " + corpus + " --bundle " + path("x"), 2},
                {"run scalar " + corpus + " --diagnose --relations-only", 2},
                {"diagnose " + record_of_wrong_kernel() + " --bundle /proc/x", 6}};
  for (const auto& fault : faults) {
    const Ended ended = qkcts(fault.arguments);
    EXPECT_EQ(ended.code, fault.code) << fault.arguments << "\n" << ended.err;
    EXPECT_TRUE(is_one_line(ended.err)) << fault.arguments << "\n" << ended.err;
  }
}

TEST_F(DiagnoseCli, ACrashIsNoContract) {
  const Ended run = qkcts("run 'mutants?mutant=crash' " + corpus + " --diagnose --diagnose-cases 1");
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.out.find("NO VALUES to compare: error(crash)"), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("MATCHES"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("smallest that fails: B1 H1/1 L1x1"), std::string::npos) << run.out;
}

}  // namespace
}  // namespace qkcts
