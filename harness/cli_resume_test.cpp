// SPDX-License-Identifier: Apache-2.0
// A run that was stopped, killed or out of space, and what `run --resume` makes of the rest: the same as one run.
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/json_schema.hpp"
#include "harness/program_output.hpp"
#include "harness/run_record.hpp"
#include "harness/test_adapters/test_adapters.hpp"

namespace qkcts {
namespace {

namespace fs = std::filesystem;

class ResumeCli : public ProgramTest {
 protected:
  static void SetUpTestSuite() {
    ProgramTest::SetUpTestSuite();
    corpus = path("cases.h5");
    std::string shapes;
    for (const int length : {3, 4, 5, 6, 7, 8}) shapes += fmt::format(" --shape 1,2,1,{},5,8,6", length);
    ASSERT_EQ(qkcts("generate --contract plain_sdpa" + shapes + " --format binary32 -o " + corpus).code, 0);
    adapter = test_adapter("lying") + "?fault=slow";
  }

  static std::string run(const std::string& reports, const std::string& more = "") {
    return fmt::format("run '{}' {} --variants none -o {} {}", adapter, corpus, path(reports), more);
  }

  // The run as above, ended by the signal as soon as the journal holds two cases. Its wait status.
  static int stopped_by(int signal, const std::string& reports) {
    const pid_t child = fork();
    if (child == 0) {
      static_cast<void>(!freopen("/dev/null", "w", stdout));
      static_cast<void>(!freopen("/dev/null", "w", stderr));
      execl(QKCTS_PROGRAM, "qkcts", "run", adapter.c_str(), corpus.c_str(), "--variants", "none", "-o",
            path(reports).c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    for (int i = 0; i < 2000 && journaled(reports).size() < 2; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    kill(child, signal);
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }

  // Names of the cases in the journal.
  static std::vector<std::string> journaled(const std::string& reports) {
    std::ifstream file(path(reports + "/run.part"));
    std::vector<std::string> names;
    for (std::string line; std::getline(file, line);) {
      const Json parsed = Json::parse(line, nullptr, false);
      if (parsed.is_object() && parsed.contains("case")) names.push_back(parsed["case"]["case"]);
    }
    return names;
  }

  static Json in_one_go() {
    if (!fs::exists(path("whole/run.json"))) {
      EXPECT_EQ(qkcts(run("whole")).code, 0);
    }
    return findings("whole");
  }

  static inline std::string corpus, adapter;
};

TEST_F(ResumeCli, KillLosesAtMostTheCaseInWork) {
  const int status = stopped_by(SIGKILL, "killed");
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_FALSE(fs::exists(path("killed/run.json")));
  ASSERT_GE(journaled("killed").size(), 2u);
  // What stands in the journal is not run again.
  std::string journal = read_text_file(path("killed/run.part"));
  const std::size_t at = journal.find("plain loops");
  ASSERT_NE(at, std::string::npos);
  journal.replace(at, 11, "kept before");
  std::ofstream(path("killed/run.part"), std::ios::binary) << journal << "{\"case\": {\"cut o";  // a write cut short
  const ProgramOutput rest = qkcts(run("killed", "--resume"));
  EXPECT_EQ(rest.code, 0) << rest.out << rest.err;
  Json found = findings("killed");
  EXPECT_EQ(found["cases"][0]["implementation"], "kept before");
  found["cases"][0]["implementation"] = "plain loops";
  EXPECT_EQ(found, in_one_go());
  EXPECT_FALSE(fs::exists(path("killed/run.part")));
}

// All reports but run.json, and each says that it is no report of a whole run.
TEST_F(ResumeCli, TheJournalOfAKilledRunIsRenderedAsAPart) {
  ASSERT_TRUE(WIFSIGNALED(stopped_by(SIGKILL, "part")));
  const std::size_t known = journaled("part").size();
  ASSERT_LT(known, 6u);
  std::ofstream(path("part/run.part"), std::ios::binary | std::ios::app) << "{\"case\": {\"cut o";
  const std::string before = read_text_file(path("part/run.part"));
  const ProgramOutput text = qkcts("report " + path("part/run.part"));
  EXPECT_EQ(text.code, 0) << text.err;
  const std::string extent = fmt::format("holds {} of 6 cases", known);
  EXPECT_NE(text.out.find("PARTIAL"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("CONFORMING"), std::string::npos) << text.out;
  const ProgramOutput all = qkcts(fmt::format("report {} -o {}", path("part/run.part"), path("part")));
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_FALSE(fs::exists(path("part/run.json")));
  in_one_go();
  EXPECT_EQ(qkcts(fmt::format("report {} -o {}", path("part/run.part"), path("whole"))).code, 2)
      << "another run's folder";
  for (const char* name : {"report.html", "report.md", "junit.xml", "ctrf.json", "codequality.json"})
    EXPECT_NE(read_text_file(path(std::string("part/") + name)).find(extent), std::string::npos) << name;
  EXPECT_NE(read_text_file(path("part/report.html")).find("Partial: the run did not end"), std::string::npos);
  // It is only read: the run goes on behind it, and of a whole run no report says that it is a part.
  EXPECT_EQ(read_text_file(path("part/run.part")), before);
  EXPECT_EQ(qkcts(run("part", "--resume")).code, 0);
  EXPECT_EQ(findings("part"), in_one_go());
  EXPECT_EQ(read_text_file(path("part/report.html")).find("Partial"), std::string::npos);
  EXPECT_EQ(qkcts("report " + written("short.part", before.substr(0, before.find('\n')))).code, 3);
}

// What is demanded may change when a run goes on, and a part is judged by what was asked last.
TEST_F(ResumeCli, APartIsJudgedByTheDemandsOfTheLastRun) {
  ASSERT_TRUE(WIFSIGNALED(stopped_by(SIGKILL, "demands")));
  const std::string demand = "'tensor cores' is required";
  EXPECT_EQ(qkcts("report " + path("demands/run.part")).out.find(demand), std::string::npos);
  qkcts(run("demands", "--resume --max-time 0.001 --require-implementation 'tensor cores'"));
  EXPECT_NE(qkcts("report " + path("demands/run.part")).out.find(demand), std::string::npos);
}

TEST_F(ResumeCli, SignalsLeaveAValidReportThatIsGoneOnWith) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string reports = fmt::format("signal{}", signal);
    const int status = stopped_by(signal, reports);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
    const Json partial = findings(reports);
    EXPECT_EQ(partial["interrupted_by"], signal);
    EXPECT_EQ(partial["cases"].size(), 6u);
    EXPECT_GE(partial["summary"]["cases"]["pass"].get<int>(), 2);
    EXPECT_GE(partial["summary"]["cases"]["not_run"].get<int>(), 1);
    // The report alone is enough.
    if (signal == SIGTERM) fs::remove(path(reports + "/run.part"));
    EXPECT_EQ(qkcts(run(reports, "--resume")).code, 0);
    EXPECT_EQ(findings(reports), in_one_go());
    EXPECT_FALSE(fs::exists(path(reports + "/run.part")));
  }
}

// An adapter that is slow to load: nothing is known yet, and the exit code says why.
TEST_F(ResumeCli, ASignalBeforeTheFirstCaseIsSaid) {
  const ProgramOutput early =
      qkcts(fmt::format("run 'cmd:sleep 20' {} & sleep 0.5; kill -TERM $!; wait $!; exit $?)", corpus), "(");
  EXPECT_EQ(early.code, 128 + SIGTERM) << early.err;
  EXPECT_EQ(early.err, "qkcts: interrupted by signal 15 before the first case\n");
}

TEST_F(ResumeCli, AnotherRunIsRefused) {
  stopped_by(SIGKILL, "other");
  const auto refused = [&](const std::string& arguments, const std::string& word) {
    const ProgramOutput result = qkcts(arguments);
    EXPECT_EQ(result.code, 2) << arguments << result.out << result.err;
    EXPECT_TRUE(is_one_line(result.err)) << result.err;
    EXPECT_NE(result.err.find("is of another run: " + word), std::string::npos) << result.err;
  };
  refused(run("other", "--resume --repeat 2"), "/options/repeat was 1 and is 2");
  refused(run("other", "--resume --profile f32_ftz"), "/options/profile was null and is \"f32_ftz\"");
  refused(run("other", "--resume --case '*'  --stages output"), "/options/stages was null");
  refused(fmt::format("run '{}?fault=none' {} --variants none --resume -o {}", test_adapter("lying"), corpus,
                      path("other")),
          "/adapter/options was \"fault=slow\"");
  refused(fmt::format("run '{}?fault=slow' {} --variants none --resume -o {}", test_adapter("lying_repeatable"), corpus,
                      path("other")),
          "/adapter/");
  const std::string second = path("second.h5");
  ASSERT_EQ(qkcts("generate --contract plain_sdpa --shape 1,2,1,3,5,8,6 --format binary32 -o " + second).code, 0);
  refused(fmt::format("run '{}' {} --variants none --resume -o {}", adapter, second, path("other")), "/corpus/digest");
  EXPECT_EQ(qkcts(fmt::format("run '{}' {} --resume", adapter, corpus)).code, 2);  // no folder
  EXPECT_EQ(qkcts(run("other", "--resume -- --gtest_repeat=2")).code, 2);
  // Without --resume it begins anew.
  EXPECT_EQ(qkcts(run("other")).code, 0);
}

TEST_F(ResumeCli, ADamagedJournalIsBadInput) {
  stopped_by(SIGKILL, "damaged");
  const std::string journal = read_text_file(path("damaged/run.part"));
  const std::size_t end = journal.find('\n') + 1;
  for (const std::string& text :
       {std::string("no json\n"), std::string("{}\n"), journal.substr(0, end) + "{\"case\": 7}\n",
        journal.substr(0, end) + "nonsense\n" + journal.substr(end)}) {
    written("damaged/run.part", text);
    const ProgramOutput bad = qkcts(run("damaged", "--resume"));
    EXPECT_EQ(bad.code, 3) << text.substr(0, 200) << bad.err;
    EXPECT_TRUE(is_one_line(bad.err)) << bad.err;
    EXPECT_NE(bad.err.find("run.part: line "), std::string::npos) << bad.err;
  }
}

// A journal takes the place of nothing that is somebody's, and nothing is written through a link.
TEST_F(ResumeCli, ANewJournalReplacesJournalsAlone) {
  const std::string cut = R"({"adapter":{"description":"of a write that was cut sh)";
  const auto command = [](const std::string& reports, const std::string& more = "") {
    return fmt::format("run scalar {} --variants none --no-plain -o {} {}", corpus, path(reports), more);
  };
  const auto refused = [](const std::string& arguments, int code) {
    const ProgramOutput result = qkcts(arguments);
    EXPECT_EQ(result.code, code) << arguments << result.out << result.err;
    EXPECT_TRUE(is_one_line(result.err)) << result.err;
    EXPECT_NE(result.err.find("run.part: is "), std::string::npos) << result.err;
  };
  fs::create_directories(path("mine"));
  const std::string part = path("mine/run.part"), victim = path("victim.h5");
  fs::copy_file(corpus, victim);
  for (const bool soft : {true, false}) {
    soft ? fs::create_symlink(victim, part) : fs::create_hard_link(victim, part);
    refused(command("mine"), 2);
    EXPECT_EQ(read_text_file(victim), read_text_file(corpus));
    fs::remove(part);
  }
  written("mine/run.part", "my notes");
  refused(command("mine"), 2);
  refused(command("mine", "--resume"), 3);
  EXPECT_EQ(read_text_file(part), "my notes");
  fs::remove(part);

  const std::string other = written("other.part", cut);
  for (const bool soft : {true, false}) {  // a journal, but that of a run elsewhere
    soft ? fs::create_symlink(other, part) : fs::create_hard_link(other, part);
    EXPECT_EQ(qkcts(command("mine")).code, 0);
    EXPECT_EQ(read_text_file(other), cut);
    EXPECT_FALSE(fs::exists(fs::symlink_status(part)));
  }
  fs::create_symlink(path("nowhere"), part);
  EXPECT_EQ(qkcts(command("mine")).code, 0);
  EXPECT_FALSE(fs::exists(path("nowhere")));
  for (const char* more : {"", "--resume"}) {
    fs::remove(path("mine/run.json"));
    written("mine/run.part", cut);
    EXPECT_EQ(qkcts(command("mine", more)).code, 0) << more;
  }
}

// Files may not grow beyond a few blocks, at several sizes, so that the run stops at several places; then they may.
TEST_F(ResumeCli, OutOfSpaceKeepsWhatWasJudged) {
  written("plan.json", R"({"schema": "qkcts-plan/1", "suite": "pairs", "seed": 1, "groups": [
    {"contracts": ["qwen3_rmsnorm"], "families": ["eps_edge"], "formats": ["binary32"], "shapes": ["1,2,1,3,6,8,6"],
     "relations": ["P2", "value_sign"]}]})");
  const std::string pairs = path("pairs.h5");
  ASSERT_EQ(qkcts("generate " + path("plan.json") + " -o " + pairs).code, 0);
  const auto command = [&](const std::string& reports) {
    return fmt::format("run scalar {} -o {}", pairs, path(reports));
  };
  ASSERT_EQ(qkcts(command("space_whole")).code, 0);
  const Json whole = findings("space_whole");
  int stopped = 0;
  for (const int blocks : {10, 30, 45, 60, 80}) {
    const std::string reports = fmt::format("space{}", blocks);
    const ProgramOutput full = qkcts(command(reports), fmt::format("ulimit -f {};", blocks));
    if (full.code == 0) continue;
    EXPECT_EQ(full.code, 6) << full.err;
    EXPECT_TRUE(is_one_line(full.err)) << full.err;
    ++stopped;
    const ProgramOutput rest = qkcts(command(reports) + " --resume");
    EXPECT_EQ(rest.code, 0) << rest.out << rest.err;
    EXPECT_EQ(findings(reports), whole) << blocks;
  }
  EXPECT_GE(stopped, 2);
}

// Cases that were judged stay so, and a relation whose outputs are gone waits for the run that makes them once more.
TEST_F(ResumeCli, ARunThatEndsOnceMoreKeepsItsRelations) {
  written("plan.json", R"({"schema": "qkcts-plan/1", "suite": "pairs", "seed": 1, "groups": [
    {"contracts": ["qwen3_rmsnorm"], "families": ["eps_edge"], "formats": ["binary32"], "shapes": ["1,2,1,3,6,8,6"],
     "relations": ["P2", "value_sign"]}]})");
  const std::string pairs = path("related.h5");
  ASSERT_EQ(qkcts("generate " + path("plan.json") + " -o " + pairs).code, 0);
  const std::string command = fmt::format("run scalar {} -o {}", pairs, path("again"));
  ASSERT_EQ(qkcts(command).code, 0);
  const Json whole = findings("again");
  RunRecord record = read_run_record(path("again/run.json"));
  for (RelationResult& relation : record.relations) {
    relation.verdict = Verdict::not_run;
    relation.compared = 0;
  }
  write_file_atomically(path("again/run.json"), run_json_text(record));
  const ProgramOutput over = qkcts(command + " --resume --max-time 0.001");
  EXPECT_EQ(over.code, 1) << over.out << over.err;  // relations are missing
  const Json partial = findings("again");
  EXPECT_EQ(partial["cases"], whole["cases"]);
  EXPECT_EQ(partial["summary"]["relations"]["not_run"], 2) << partial["summary"].dump();
  const ProgramOutput rest = qkcts(command + " --resume");
  EXPECT_EQ(rest.code, 0) << rest.out << rest.err;
  EXPECT_EQ(findings("again"), whole);
}

// A file system of 64 KiB, where this user may mount one.
TEST_F(ResumeCli, AFullDiskIsOneErrorThatNamesTheFile) {
  fs::create_directories(path("small"));
  const std::string script = fmt::format(
      "mount -t tmpfs -o size=64k none {0} || exit 77; {1} run scalar {2} -o {0}/r >/dev/null 2>{3}; "
      "code=$?; ls {0}/r >{4}; exit $code",
      path("small"), QKCTS_PROGRAM, path("smoke.h5"), path("full_error"), path("full_list"));
  ASSERT_EQ(qkcts("generate smoke -o " + path("smoke.h5")).code, 0);
  written("full.sh", script);
  const int status = std::system(("unshare -Urm sh " + path("full.sh") + " 2>/dev/null").c_str());
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 77 || !fs::exists(path("full_error")))
    GTEST_SKIP() << "no file system may be mounted here";
  EXPECT_EQ(WEXITSTATUS(status), 6);
  const std::string error = read_text_file(path("full_error"));
  EXPECT_NE(error.find("run.part: No space left on device; what was judged stays in it"), std::string::npos) << error;
  EXPECT_EQ(read_text_file(path("full_list")), "run.part\n");
}

}  // namespace
}  // namespace qkcts
