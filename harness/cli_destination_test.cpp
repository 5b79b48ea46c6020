// SPDX-License-Identifier: Apache-2.0
// No command writes over what it reads, nor over a file of another kind, and none says that it wrote what it did not.
#include <fmt/format.h>

#include "harness/program_output.hpp"
#include "harness/run_record.hpp"
#include "harness/sample_record.hpp"

namespace qkcts {
namespace {

namespace fs = std::filesystem;

class CliDestination : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    fs::copy_file(QKCTS_SOURCE_DIR "/vectors/golden/smoke.h5", path("smoke.h5"));
    written("run.json", run_json_text(passing_record()));
    written("config.json", R"({"model_type": "qwen3", "rms_norm_eps": 1e-6})");
    written("plan.json", R"({"schema": "qkcts-plan/1", "suite": "mine", "seed": 1, "groups": [
      {"contracts": ["plain_sdpa"], "families": ["gaussian"], "formats": ["binary32"], "shapes": ["1,1,1,2,3,4,4"]}]})");
    ASSERT_EQ(qkcts("contract show plain_sdpa --json >" + path("mine.json")).code, 0);
    fs::copy_file(path("out"), path("mine.json"), fs::copy_options::overwrite_existing);
    written("notes.txt", "what took a week to write");
    ASSERT_EQ(qkcts("export " + path("smoke.h5") + " -o " + path("requests.h5")).code, 0);
    fs::create_symlink(path("run.json"), path("soft.json"));
    fs::create_hard_link(path("run.json"), path("hard.json"));
  }

  // The command is refused as bad usage in one line that names the output, and nothing has changed.
  static void expect_refused(const std::string& arguments, const std::string& output) {
    const std::string before = read_text_file(path(output));
    const ProgramOutput done = qkcts(arguments);
    EXPECT_EQ(done.code, 2) << arguments << "\n" << done.out << done.err;
    EXPECT_TRUE(is_one_line(done.err)) << arguments << "\n" << done.err;
    EXPECT_NE(done.err.find(output), std::string::npos) << done.err;
    EXPECT_EQ(done.out, "") << arguments;
    EXPECT_TRUE(read_text_file(path(output)) == before) << arguments;
  }
};

TEST_F(CliDestination, AnInputIsNoOutput) {
  const std::string run = path("run.json"), corpus = path("smoke.h5");
  for (const char* name : {"run.json", "soft.json", "hard.json"}) {
    expect_refused("baseline update " + path(name) + " " + run, name);
    expect_refused("report " + run + " --html " + path(name), name);
  }
  expect_refused("export " + corpus + " -o " + corpus, "smoke.h5");
  expect_refused("answer scalar " + path("requests.h5") + " -o " + path("requests.h5"), "requests.h5");
  expect_refused("vectors join " + corpus + " -o " + corpus, "smoke.h5");
  expect_refused("adequacy " + corpus + " --mutant eps_outside_sqrt -o " + corpus, "smoke.h5");
  expect_refused("bench scalar " + corpus + " --rounds 1 -o " + corpus, "smoke.h5");
  expect_refused("inspect " + corpus + " --separation --svg " + corpus, "smoke.h5");
  expect_refused("contract from-config " + path("config.json") + " -o " + path("config.json"), "config.json");
  expect_refused("generate " + path("plan.json") + " -o " + path("plan.json"), "plan.json");
  expect_refused("generate --contract " + path("mine.json") + " -o " + path("mine.json"), "mine.json");
  expect_refused("generate --separate " + path("mine.json") + " " + path("mine.json") + " -o " + path("mine.json"),
                 "mine.json");
}

TEST_F(CliDestination, AFileOfAnotherKindStays) {
  const std::string run = path("run.json"), corpus = path("smoke.h5");
  for (const std::string& arguments :
       {"baseline update {} " + run, "report " + run + " --html {}", "report " + run + " --markdown {}",
        "report " + run + " --junit {}", "report " + run + " --ctrf {}", "report " + run + " --gitlab {}",
        "export " + corpus + " -o {}", "answer scalar " + path("requests.h5") + " -o {}",
        "vectors join " + corpus + " -o {}", "adequacy " + corpus + " --mutant eps_outside_sqrt -o {}",
        "bench scalar " + corpus + " --rounds 1 -o {}", "inspect " + corpus + " --separation --svg {}",
        "contract from-config " + path("config.json") + " -o {}", std::string("generate smoke -o {}"),
        std::string("generate --separate plain_sdpa henry2020_l2 -o {}")})
    expect_refused(fmt::format(fmt::runtime(arguments), path("notes.txt")), "notes.txt");
  expect_refused("baseline update " + corpus + " " + run, "smoke.h5");
  expect_refused("generate smoke -o " + path("requests.h5"), "requests.h5");
  expect_refused("contract from-config " + path("config.json") + " -o " + run, "run.json");
}

TEST_F(CliDestination, AFolderOfReportsIsLookedAtBeforeTheRun) {
  fs::create_directory(path("mine"));
  written("mine/report.md", "# My own report\n");
  expect_refused("run scalar " + path("smoke.h5") + " -o " + path("mine"), "mine/report.md");
  expect_refused("report " + path("run.json") + " -o " + path("mine"), "mine/report.md");
  fs::create_directory(path("again"));
  fs::copy_file(path("run.json"), path("again/run.json"));
  const std::string before = read_text_file(path("again/run.json"));
  EXPECT_EQ(qkcts("report " + path("again/run.json") + " -o " + path("again")).code, 0) << "its source stays";
  EXPECT_EQ(read_text_file(path("again/run.json")), before);
  EXPECT_EQ(qkcts("report " + path("again/run.json") + " -o " + path("again")).code, 0) << "older reports go";
}

TEST_F(CliDestination, TwoOutputsAreTwoFiles) {
  const ProgramOutput twice =
      qkcts("report " + path("run.json") + " --html " + path("x") + " --junit " + folder + "/./x");
  EXPECT_EQ(twice.code, 2) << twice.err;
  EXPECT_NE(twice.err.find("named for two outputs"), std::string::npos) << twice.err;
  EXPECT_FALSE(fs::exists(path("x")));
  const std::string near = fs::relative(path("near"));
  const ProgramOutput relative = qkcts("report " + path("run.json") + " --html " + near + " --markdown ./" + near);
  EXPECT_EQ(relative.code, 2) << relative.out << relative.err;
  EXPECT_FALSE(fs::exists(near));
}

TEST_F(CliDestination, AnOlderFileOfItsKindAndAnEmptyOneAreReplaced) {
  const std::string baseline = written("base.json", "");
  const std::string update = "baseline update " + baseline + " " + path("run.json");
  EXPECT_EQ(qkcts(update).code, 0);
  EXPECT_EQ(qkcts(update).code, 0);
  const std::string page = "report " + path("run.json") + " --html " + path("page.html");
  EXPECT_EQ(qkcts(page).code, 0);
  EXPECT_EQ(qkcts(page).code, 0);
  const std::string derive = "contract from-config " + path("config.json") + " -o " + path("derived.json");
  EXPECT_EQ(qkcts(derive).code, 0);
  EXPECT_EQ(qkcts(derive).code, 0);
}

// A file that may not grow stands for a full disk.
TEST_F(CliDestination, NothingIsSaidBeforeItIsWritten) {
  const std::string run = path("run.json"), full = "trap '' XFSZ; ulimit -f 0;";
  ASSERT_EQ(qkcts("baseline update " + path("kept.json") + " " + run).code, 0);
  const std::string before = read_text_file(path("kept.json"));
  // The shell's own redirections may not grow either, so the words go through a pipe.
  const auto limited = [&](const std::string& arguments) {
    const std::string command =
        fmt::format("( {} {} {} 2>&1; echo \"code $?\" ) | cat", full, QKCTS_PROGRAM, arguments);
    std::FILE* const pipe = popen(command.c_str(), "r");
    std::string text;
    for (int c = 0; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    pclose(pipe);
    return text;
  };
  const std::string update = limited("baseline update " + path("kept.json") + " " + run);
  EXPECT_NE(update.find("kept.json: cannot be written: File too large\ncode 6"), std::string::npos) << update;
  EXPECT_EQ(update.find("new,"), std::string::npos) << update;
  EXPECT_EQ(read_text_file(path("kept.json")), before);
  for (const std::string& arguments :
       {"bench scalar " + path("smoke.h5") + " --rounds 1 --case 'plain*' -o " + path("b.txt"),
        "report " + run + " --html " + path("b.html"), "report " + run + " -o " + path("b"),
        "contract from-config " + path("config.json") + " -o " + path("b.json"),
        "export " + path("smoke.h5") + " -o " + path("b.h5"),
        "adequacy " + path("smoke.h5") + " --mutant eps_outside_sqrt -o " + path("b.md"),
        "vectors join " + path("smoke.h5") + " -o " + path("master.h5")}) {
    const std::string text = limited(arguments);
    EXPECT_NE(text.find("code 6"), std::string::npos) << arguments << "\n" << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << arguments << "\n" << text;  // one line, and the code
  }
  for (const char* name : {"b.txt", "b.html", "b.json", "b.h5", "b.md", "master.h5"})
    EXPECT_FALSE(fs::exists(path(name))) << name;
}

TEST_F(CliDestination, AStandardOutputThatCannotBeWrittenIsNoSuccess) {
  const std::string command =
      fmt::format("trap '' XFSZ; ulimit -f 0; {} contract list >{} 2>/dev/null; exit $?", QKCTS_PROGRAM, path("list"));
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 6);
}

}  // namespace
}  // namespace qkcts
