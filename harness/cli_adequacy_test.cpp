// SPDX-License-Identifier: Apache-2.0
// `adequacy` as a user meets it: every exit code, and that a suite is told good from poor.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/wait.h>

#include "conformance/file.hpp"
#include "conformance/json.hpp"

namespace qkcts {
namespace {

struct Finished {
  int code = -1;
  std::string out, err;
};

class AdequacyCli : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char name[] = "/var/tmp/qkcts_adequacy_XXXXXX";
    folder = mkdtemp(name);
    good = folder + "/good.h5";
    poor = folder + "/poor.h5";
    // Rows on which epsilon decides, and rows of unit scale.
    const std::string ends = " --contract qwen3_rmsnorm --format binary32,bfloat16 --shape 1,4,2,7,9,16,12 -o ";
    ASSERT_EQ(qkcts("generate --family small_rows" + ends + good).code, 0);
    ASSERT_EQ(qkcts("generate --family gaussian" + ends + poor).code, 0);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder); }

  static Finished qkcts(const std::string& arguments, const std::string& program = QKCTS_PROGRAM) {
    const std::string command = program + " " + arguments + " >" + folder + "/out 2>" + folder + "/err";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text_file(folder + "/out"),
            read_text_file(folder + "/err")};
  }
  static std::string written(const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name) << text;
    return folder + "/" + name;
  }

  static inline std::string folder, good, poor;
};

const std::string one_mutant = " --mutant eps_outside_sqrt";

bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == text.size() - 1;
}

TEST_F(AdequacyCli, ASuiteThatShowsAnEpsilonKillsItsMutants) {
  const Finished text = qkcts("adequacy " + good + one_mutant);
  EXPECT_EQ(text.code, 0) << text.out << text.err;
  EXPECT_NE(text.out.find("bf16_f32acc: 1 of 1 killed"), std::string::npos) << text.out;
  const Finished all = qkcts("adequacy " + good + one_mutant + " --all --format json");
  const Finished first = qkcts("adequacy " + good + one_mutant + " --first --jobs 3 --format json");
  EXPECT_EQ(all.code, 0);
  EXPECT_EQ(first.code, 0);
  const Json found = parse_json(all.out, "output");
  EXPECT_EQ(found.at("mutants").size(), 1U);
  for (const Json& cell : found.at("mutants")[0].at("profiles")) {
    EXPECT_EQ(cell.at("verdict"), "killed");
    EXPECT_EQ(cell.at("cases"), cell.at("compared"));
  }
  EXPECT_EQ(qkcts("adequacy " + good + one_mutant + " --class math").code, 0);
  EXPECT_EQ(qkcts("adequacy " + good + one_mutant + " --class QK-EPS").code, 0);
  const Finished other_threads = qkcts("adequacy " + good + " " + poor + " --mutant 'eps_*' --jobs 1 --format csv");
  EXPECT_EQ(other_threads.out, qkcts("adequacy " + good + " " + poor + " --mutant 'eps_*' --jobs 4 --format csv").out);
}

TEST_F(AdequacyCli, RowsOfUnitScaleDoNotAndOnlyAReasonExcusesIt) {
  const std::string bare = "adequacy " + poor + one_mutant + " --profile bf16_f32acc";
  const Finished unexplained = qkcts(bare);
  EXPECT_EQ(unexplained.code, 1) << unexplained.out;
  EXPECT_NE(unexplained.out.find("not distinguished, unexplained"), std::string::npos) << unexplained.out;
  const std::string list =
      written("list.json",
              R"({"schema": "qkcts-undistinguished/1", "undistinguished": [{"mutant": "eps_out*", "profiles": ["bf16*"],
          "reason": "at unit scale no epsilon shows in bfloat16"}]})");
  const Finished excused = qkcts(bare + " --undistinguished " + list);
  EXPECT_EQ(excused.code, 0) << excused.out;
  EXPECT_NE(excused.out.find("at unit scale no epsilon shows"), std::string::npos) << excused.out;
  // The list is of no use where another corpus, or a search, tells the two apart, or this one does.
  EXPECT_EQ(qkcts(bare + " --undistinguished " + list + " --beyond " + good).code, 1);
  const Finished searched = qkcts(bare + " --undistinguished " + list + " --search 60 --format json");
  EXPECT_EQ(searched.code, 1) << searched.out;
  const Json cell = parse_json(searched.out, "output").at("mutants")[0].at("profiles")[0];
  EXPECT_EQ(cell.at("verdict"), "missed");
  EXPECT_GT(cell.at("beyond").at("separation"), 1);
  EXPECT_EQ(qkcts("adequacy " + good + one_mutant + " --undistinguished " + list).code, 1) << "stale";
}

TEST_F(AdequacyCli, AMutantThatNoCaseTakesIsNoSuccess) {
  const Finished finished = qkcts("adequacy " + good + " --mutant window_ignored");
  EXPECT_EQ(finished.code, 1) << finished.out;
  EXPECT_NE(finished.out.find("mutants that no case takes: window_ignored"), std::string::npos) << finished.out;
}

TEST_F(AdequacyCli, WhatIsNoArgumentIsAUsageError) {
  for (const std::string arguments : {"--mutant nothing_like_it", "--class colour", "--profile 'f16*'", "--format xml",
                                      "--first --all", "--rules mine", "--jobs 0"}) {
    const Finished finished = qkcts("adequacy " + good + " " + arguments);
    EXPECT_EQ(finished.code, 2) << arguments << finished.err;
    EXPECT_TRUE(is_one_line(finished.err)) << finished.err;
  }
  EXPECT_EQ(qkcts("adequacy").code, 2);
}

TEST_F(AdequacyCli, ABadFileIsOneLine) {
  const std::string damaged = written("damaged.h5", "no corpus");
  const std::string list = written("bad_list.json", "{\"schema\": \"qkcts-undistinguished/1\"}");
  for (const std::string& arguments :
       {folder + "/absent.h5", damaged, good + one_mutant + " --beyond " + damaged,
        good + one_mutant + " --undistinguished " + list, good + one_mutant + " --undistinguished " + folder + "/no"}) {
    const Finished finished = qkcts("adequacy " + arguments);
    EXPECT_EQ(finished.code, 3) << arguments << finished.err;
    EXPECT_TRUE(is_one_line(finished.err)) << finished.err;
  }
}

TEST_F(AdequacyCli, WhatCannotBeWrittenIsSaid) {
  const Finished finished = qkcts("adequacy " + good + one_mutant + " -o " + folder + "/absent/matrix.md");
  EXPECT_EQ(finished.code, 6) << finished.err;
  EXPECT_TRUE(is_one_line(finished.err)) << finished.err;
  const Finished written_file =
      qkcts("adequacy " + good + one_mutant + " --format markdown -o " + folder + "/matrix.md");
  EXPECT_EQ(written_file.code, 0) << written_file.err;
  EXPECT_NE(read_text_file(folder + "/matrix.md").find("| `eps_outside_sqrt` | QK-EPS-02 |"), std::string::npos);
}

// At unit scale vLLM's tolerance of 1e-2 in bfloat16 lets a misplaced epsilon through; the rows of this case do not.
TEST_F(AdequacyCli, RulesOfOtherSuitesAreAppliedToTheSameOutputs) {
  const Finished finished = qkcts("adequacy " + good + " --rules peers --format json" + one_mutant);
  ASSERT_EQ(finished.code, 0) << finished.err;
  const Json study = parse_json(finished.out, "output");
  int of_vllm = 0;
  for (const Json& kernel : study.at("wrong")) {
    if (kernel.at("format") != "bfloat16" || kernel.at("by") != "contract") continue;
    ++of_vllm;
    EXPECT_EQ(kernel.at("ordinary").at("peers").at("vllm").at("verdict"), "accepts");
    EXPECT_EQ(kernel.at("ours").at("peers").at("vllm").at("verdict"), "rejects");
    EXPECT_EQ(kernel.at("ours").at("peers").at("vllm").at("accepts_control"), true);
    EXPECT_EQ(kernel.at("ours").at("peers").at("webnn").at("verdict"), "not applicable");
  }
  EXPECT_EQ(of_vllm, 1);
  EXPECT_FALSE(study.at("valid").empty());
}

TEST_F(AdequacyCli, WithoutTheBundledAdaptersTheRulesHaveNothingToJudge) {
  std::filesystem::create_directory(folder + "/alone");
  std::filesystem::copy_file(QKCTS_PROGRAM, folder + "/alone/qkcts");
  const Finished finished = qkcts("adequacy " + good + " --rules peers" + one_mutant, folder + "/alone/qkcts");
  EXPECT_EQ(finished.code, 4) << finished.err;
  EXPECT_TRUE(is_one_line(finished.err)) << finished.err;
}

}  // namespace
}  // namespace qkcts
