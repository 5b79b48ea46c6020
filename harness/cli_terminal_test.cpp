// SPDX-License-Identifier: Apache-2.0
// What people read fits a terminal of 80 columns, and what they mistook is called by its name.
#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "harness/program_output.hpp"
#include "harness/run_record.hpp"
#include "harness/sample_record.hpp"
#include "harness/wrapped_text.hpp"

namespace qkcts {
namespace {

class CliTerminal : public ProgramTest {
 protected:
  // What was printed.
  static std::string expect_narrow(const std::string& arguments) {
    const ProgramOutput done = qkcts(arguments);
    EXPECT_GT(done.out.size(), 0u) << arguments << done.err;
    std::istringstream text(done.out);
    for (std::string line; std::getline(text, line);) EXPECT_LE(text_columns(line), 80u) << arguments << "\n" << line;
    return done.out;
  }
  static void expect_said(const std::string& arguments, int code, const std::string& words) {
    const ProgramOutput done = qkcts(arguments);
    EXPECT_EQ(done.code, code) << arguments << "\n" << done.out << done.err;
    EXPECT_TRUE(is_one_line(done.err)) << arguments << "\n" << done.err;
    EXPECT_NE(done.err.find(words), std::string::npos) << arguments << "\n" << done.err;
  }

  static inline const std::string corpus = QKCTS_SOURCE_DIR "/vectors/golden/smoke.h5";
};

TEST_F(CliTerminal, HelpHasEightyColumns) {
  expect_narrow("--help");
  for (const char* command : {"contract",
                              "contract list",
                              "contract show",
                              "contract validate",
                              "contract diff",
                              "contract from-config",
                              "generate",
                              "verify",
                              "inspect",
                              "vectors",
                              "vectors diff",
                              "vectors join",
                              "adapters",
                              "describe",
                              "run",
                              "export",
                              "answer",
                              "check",
                              "gate",
                              "baseline",
                              "certify",
                              "verify-certificate",
                              "report",
                              "bench",
                              "baseline update",
                              "explain",
                              "diagnose",
                              "adequacy"}) {
    const std::string help = expect_narrow(fmt::format("{} --help", command));
    EXPECT_NE(help.find(fmt::format("\nUsage: qkcts {}", command)), std::string::npos) << help;
  }
  EXPECT_NE(qkcts("bench --help").out.find("Usage: qkcts bench [OPTIONS] ADAPTER... FILE\n"), std::string::npos);
}

// A limit, a default and what an option needs are said in words.
TEST_F(CliTerminal, HelpSaysWhatAnOptionTakes) {
  const std::string help = qkcts("run --help").out;
  for (const char* part : {"--repeat N", "(1 to 1000; default 1)", "--variants {none,all}", "with --diagnose",
                           "\nUsage: qkcts run [OPTIONS] ADAPTER [FILE]"})
    EXPECT_NE(help.find(part), std::string::npos) << part << "\n" << help;
}

TEST_F(CliTerminal, TextsHaveEightyColumns) {
  const std::string slug = "qwen3_rmsnorm/eps_edge/bfloat16";
  for (const std::string& arguments :
       {std::string("contract list"), std::string("contract show gpt_oss"), std::string("contract show qwen3_rmsnorm"),
        std::string("contract diff qwen3_rmsnorm gpt_oss"), "explain " + corpus + " " + slug + " output 0,0,0,0",
        "explain " + corpus + " " + slug + " q_norm 0,0,0,0", "inspect " + corpus, "inspect " + corpus + " " + slug,
        "inspect " + corpus + " " + slug + " --separation", "inspect " + corpus + " --separation",
        "inspect " + corpus + " --separation --by-row", "adequacy " + corpus + " --mutant 'eps_out*'",
        "adequacy " + corpus + " --mutant 'eps_out*' --profile '*'",
        "adequacy " + corpus + " --mutant eps_outside_sqrt --rules peers", std::string("adapters --mutants"),
        std::string("adapters"),
        "bench scalar 'mutants?mutant=eps_outside_sqrt' " + corpus + " --rounds 1 --case '*/eps_edge/*'"})
    expect_narrow(arguments);
}

TEST_F(CliTerminal, AdapterAndCorpusInEachOthersPlaces) {
  expect_said("run " + corpus + " scalar", 2, "the adapter comes first");
  expect_said("run scalar avx2", 2, "'avx2' is an adapter; in its place a corpus is expected");
  expect_said("run scalar 'mutants?mutant=none'", 2, "in its place a corpus is expected");
  expect_said("run scalar 'cmd:python3 mine.py'", 2, "in its place a corpus is expected");
  expect_said("run scalar " QKCTS_PROGRAM, 2, "in its place a corpus is expected");
  expect_said("bench scalar avx2", 2, "'avx2' is an adapter; in its place a corpus is expected");
  expect_said("bench " + corpus + " scalar", 2, "the adapter comes first");
  expect_said("run " + corpus + " " + corpus, 4, "is a corpus of golden vectors and no adapter");
  expect_said("run " + written("mine.py", "print()") + " " + corpus, 4, "'cmd:python3 " + path("mine.py") + "'");
  expect_said("run scalar nothing.h5", 3, "nothing.h5: cannot be opened");
}

TEST_F(CliTerminal, AGlobThatMatchesNothingNamesWhatIsNear) {
  const ProgramOutput part = qkcts("run scalar " + corpus + " --case eps_edge");
  EXPECT_EQ(part.code, 5);
  EXPECT_NE(part.out.find("'*eps_edge*'"), std::string::npos) << part.out;
  EXPECT_EQ(part.out.find("err/D"), std::string::npos) << "no table of nothing";
  const ProgramOutput slip = qkcts("run scalar " + corpus + " --case 'qwen_rmsnorm/eps_edge/*'");
  EXPECT_NE(slip.out.find("qwen3_rmsnorm/eps_edge/"), std::string::npos) << slip.out;
  EXPECT_NE(slip.out.find("glob"), std::string::npos) << slip.out;
  expect_said("export " + corpus + " --case eps_edge -o " + path("r.h5"), 5, "'*eps_edge*' would match");
  expect_said("bench scalar " + corpus + " --case eps_edge", 5, "'*eps_edge*' would match");
  ASSERT_EQ(qkcts("export " + corpus + " -o " + path("requests.h5")).code, 0);
  expect_said("answer scalar " + path("requests.h5") + " --case eps_edge -o " + path("r.h5"), 5,
              "'*eps_edge*' would match");
}

TEST_F(CliTerminal, AFileInTheWrongPlaceIsCalledByItsName) {
  const std::string run = written("run.json", run_json_text(passing_record()));
  ASSERT_EQ(qkcts("baseline update " + path("base.json") + " " + run).code, 0);
  expect_said("report " + corpus, 3, "is a corpus of golden vectors; wanted is a run.json");
  expect_said("report " + path("base.json"), 3, "is a baseline, as `qkcts baseline update` writes it; wanted is a run");
  expect_said("report " + folder, 3, "is a folder; wanted is a run.json");
  expect_said("gate " + corpus + " " + run, 3, "wanted is a baseline");
  expect_said("gate " + run + " " + path("base.json"), 3, "wanted is a run.json");
  expect_said("baseline update " + path("new.json") + " " + corpus, 3, "wanted is a run.json");
  expect_said("diagnose " + corpus, 3, "wanted is a run.json");
  expect_said("check " + corpus + " " + corpus, 3, "wanted is a file of results");
  expect_said("answer scalar " + corpus + " -o " + path("r.h5"), 3, "wanted is a file of requests");
}

TEST_F(CliTerminal, AnOptionWithoutEffectIsRefused) {
  const std::string run = written("run.json", run_json_text(passing_record()));
  expect_said("report " + run + " --against plain_sdpa", 2, "--against joins the page");
  expect_said("report " + run + " --against plain_sdpa --junit " + path("j.xml"), 2, "--html FILE or -o DIR");
  expect_said("report " + run + " --adequacy x.json", 2, "--adequacy joins the page");
  EXPECT_EQ(qkcts("report " + run + " --against plain_sdpa -o " + path("pages")).code, 0);
}

TEST_F(CliTerminal, ANameThatNobodyKnowsBringsThoseThatAreNear) {
  expect_said("run 'mutants?mutant=eps_outside_sqr' " + corpus, 4, "did you mean eps_outside_sqrt");
  expect_said("run 'mutants?mutant=zzzzzzzzzzzz' " + corpus, 4, "`qkcts adapters --mutants` lists them");
  EXPECT_NE(qkcts("adapters --mutants").out.find("eps_outside_sqrt QK-EPS-02:"), std::string::npos);
  const std::string plan = written("plan.json", R"({"schema": "qkcts-plan/1", "suite": "mine", "seed": 1, "groups": [
    {"contracts": ["plain_sdpa"], "families": ["gausian"], "formats": ["binary32"], "shapes": ["1,1,1,2,3,4,4"]}]})");
  expect_said("generate " + plan + " -o " + path("x.h5"), 3, "no input family gausian; did you mean gaussian?");
  expect_said("generate --contract plain_sdpa --family gausian -o " + path("x.h5"), 2, "did you mean gaussian?");
}

}  // namespace
}  // namespace qkcts
