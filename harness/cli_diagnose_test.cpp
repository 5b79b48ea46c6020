// SPDX-License-Identifier: Apache-2.0
// `run --diagnose` and `diagnose` as a user meets them: what is said, the bundle that stands for itself, exit codes.
#include <filesystem>
#include <fstream>

#include "conformance/json.hpp"
#include "harness/program_output.hpp"

namespace qkcts {
namespace {

namespace fs = std::filesystem;

class DiagnoseCli : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    corpus = path("small.h5");
    const ProgramOutput made = qkcts(
        "generate --contract qwen3_rmsnorm,plain_sdpa --family gaussian --format binary32 --shape 1,4,2,5,7,20,12 -o " +
        corpus);
    ASSERT_EQ(made.code, 0) << made.out << made.err;
  }
  // The run record of a wrong kernel, made once.
  static std::string record_of_wrong_kernel() {
    if (!fs::exists(path("wrong/run.json")))
      qkcts("run 'mutants?mutant=scale_missing' " + corpus + " -o " + path("wrong"));
    return path("wrong/run.json");
  }

  static inline std::string corpus;
};

TEST_F(DiagnoseCli, ARunNamesTheClauseAndLeavesABundleThatFailsAlone) {
  const ProgramOutput run =
      qkcts("run 'mutants?mutant=rope_interleaved_for_half' " + corpus + " --stages output,lse --diagnose --bundle " +
            path("repro") + " -o " + path("report"));
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
  const ProgramOutput again = qkcts(command.substr(command.find(' ') + 1));
  EXPECT_EQ(again.code, 1) << again.out << again.err;
  EXPECT_NE(again.out.find("1 case: 1 fail"), std::string::npos) << again.out;
  EXPECT_EQ(qkcts("verify " + bundle + "/case.h5 --all").code, 0);
  EXPECT_EQ(qkcts("run scalar " + bundle + "/case.h5").code, 0);
  EXPECT_EQ(qkcts("contract validate " + bundle + "/contract.json").code, 0);
}

TEST_F(DiagnoseCli, AConformingRunHasNothingToDiagnose) {
  const ProgramOutput run = qkcts("run scalar " + corpus + " --diagnose -o " + path("right"));
  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_EQ(run.out.find("MATCH"), std::string::npos) << run.out;
  const ProgramOutput later = qkcts("diagnose " + path("right/run.json"));
  EXPECT_EQ(later.code, 0);
  EXPECT_NE(later.out.find("nothing to diagnose"), std::string::npos) << later.out;
}

TEST_F(DiagnoseCli, AnEarlierRunIsDiagnosed) {
  const ProgramOutput all = qkcts("diagnose " + record_of_wrong_kernel());
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_NE(all.out.find("score.scale_form inv_sqrt_head_dim -> constant (QK-SCALE-01)"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("2 of 2 failing cases diagnosed"), std::string::npos) << all.out;
  EXPECT_EQ(all.out.find("warning"), std::string::npos) << all.out;
  const ProgramOutput one = qkcts("diagnose " + record_of_wrong_kernel() + " --cases 1");
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
  const ProgramOutput adapter = with(run.at("adapter").at("sha256"), std::string(64, '0'));
  EXPECT_EQ(adapter.code, 0) << adapter.err;
  EXPECT_EQ(adapter.out.rfind("warning: ", 0), 0U) << adapter.out;

  const ProgramOutput other_corpus = with(run.at("corpus").at("digest"), std::string(64, '0'));
  EXPECT_EQ(other_corpus.code, 3);
  EXPECT_TRUE(is_one_line(other_corpus.err)) << other_corpus.err;
  EXPECT_NE(other_corpus.err.find("run it again"), std::string::npos) << other_corpus.err;

  const ProgramOutput no_corpus = with("\"path\": \"" + corpus, "\"path\": \"" + corpus + ".gone");
  EXPECT_EQ(no_corpus.code, 3);
  EXPECT_TRUE(is_one_line(no_corpus.err)) << no_corpus.err;
  const ProgramOutput no_adapter = with("\"given\": \"mutants?", "\"given\": \"./gone.so?");
  EXPECT_EQ(no_adapter.code, 4);
  EXPECT_TRUE(is_one_line(no_adapter.err)) << no_adapter.err;
}

// Results that were computed elsewhere: no adapter is run, so nothing is located before them, and nothing made small.
TEST_F(DiagnoseCli, ResultsOfCheckAreDiagnosedFromWhatWasWritten) {
  const std::string requests = path("requests.h5"), results = path("results.h5");
  ASSERT_EQ(qkcts("export " + corpus + " -o " + requests).code, 0);
  ASSERT_EQ(qkcts("answer 'mutants?mutant=scale_missing' " + requests + " -o " + results).code, 0);
  ASSERT_EQ(qkcts("check " + corpus + " " + results + " -o " + path("checked")).code, 1);
  const ProgramOutput found = qkcts("diagnose " + path("checked/run.json"));
  EXPECT_EQ(found.code, 0) << found.err;
  EXPECT_NE(found.out.find("score.scale_form inv_sqrt_head_dim -> constant (QK-SCALE-01)"), std::string::npos)
      << found.out;
  EXPECT_NE(found.out.find("2 of 2 failing cases diagnosed"), std::string::npos) << found.out;
  EXPECT_EQ(found.out.find("smallest that fails"), std::string::npos) << found.out;
  fs::remove(results);
  const ProgramOutput gone = qkcts("diagnose " + path("checked/run.json"));
  EXPECT_EQ(gone.code, 3);
  EXPECT_TRUE(is_one_line(gone.err)) << gone.err;
  EXPECT_NE(gone.err.find("results.h5"), std::string::npos) << gone.err;
}

TEST_F(DiagnoseCli, TheCatalogueIsDiagnosedAndMissesAreListed) {
  const std::string study = "adequacy " + corpus + " --diagnosis --mutant ";
  const ProgramOutput named = qkcts(study + "'scale_[mt]*' --format json");
  EXPECT_EQ(named.code, 0) << named.out << named.err;
  const Json found = parse_json(named.out, "output");
  bool by_contract = false, by_adapter = false;
  for (const Json& one : found.at("mutants")) {
    if (one.at("format") != "binary32") continue;
    EXPECT_TRUE(one.at("right").get<bool>()) << one;
    by_contract = by_contract || one.at("by") == "contract";
    by_adapter = by_adapter || one.at("by") == "adapter";
  }
  EXPECT_TRUE(by_contract);
  EXPECT_TRUE(by_adapter);
  EXPECT_GE(found.at("valid").at("runs").get<int>(), 2);
  EXPECT_TRUE(found.at("valid").at("accused").empty());
  // Arithmetic that is too coarse is no contract: a study of it names nothing, and says so.
  const ProgramOutput coarse = qkcts(study + "pv_fp16 --class round");
  EXPECT_EQ(coarse.code, 1) << coarse.out;
  EXPECT_NE(coarse.out.find("miss: pv_fp16"), std::string::npos) << coarse.out;
  EXPECT_EQ(qkcts(study + "nothing_like_it").code, 2);
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
    const ProgramOutput ended = qkcts(fault.arguments);
    EXPECT_EQ(ended.code, fault.code) << fault.arguments << "\n" << ended.err;
    EXPECT_TRUE(is_one_line(ended.err)) << fault.arguments << "\n" << ended.err;
  }
}

TEST_F(DiagnoseCli, ACrashIsNoContract) {
  const ProgramOutput run = qkcts("run 'mutants?mutant=crash' " + corpus + " --diagnose --diagnose-cases 1");
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.out.find("NO VALUES to compare: error(crash)"), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("MATCHES"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("smallest that fails: B1 H1/1 L1x1"), std::string::npos) << run.out;
}

}  // namespace
}  // namespace qkcts
