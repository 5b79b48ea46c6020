// SPDX-License-Identifier: Apache-2.0
// Known failures, demands, the gate and its baseline as a user meets them.
#include <fmt/format.h>

#include "conformance/json.hpp"
#include "harness/program_output.hpp"

namespace qkcts {
namespace {

class CliGate : public ProgramTest {
 protected:
  static ProgramOutput smoke(const std::string& arguments) { return qkcts("run " + arguments); }
  static std::string known(const std::string& name, const std::string& glob, const std::string& expires) {
    return written(name, fmt::format(R"({{"schema": "qkcts-known-failures/1", "failures": [
      {{"case": "{}", "reason": "under repair", "link": "issue 1", "expires": "{}"}}]}})",
                                     glob, expires));
  }
  static inline const std::string wrong = "'mutants?mutant=eps_outside_sqrt' --suite smoke --case '*/eps_edge/*'";
};

TEST_F(CliGate, SmokeIsCarriedByTheProgram) {
  const ProgramOutput run = smoke("scalar --suite smoke -o " + path("smoke"));
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_EQ(smoke("scalar --suite smoke -- --gtest_filter='*.lse'").code, 0);
  EXPECT_EQ(smoke("scalar --suite nonsense").code, 2);
  EXPECT_EQ(smoke("scalar x.h5 --suite smoke").code, 2);
  const ProgramOutput missing = smoke("scalar --suite core");
  EXPECT_EQ(missing.code, 3);
  EXPECT_NE(missing.err.find("qkcts generate core -o"), std::string::npos) << missing.err;
  ASSERT_EQ(qkcts("generate --contract plain_sdpa -o " + path("core.h5")).code, 0);
  const ProgramOutput other = qkcts("run scalar --suite core", "QKCTS_CORPORA=" + folder);
  EXPECT_EQ(other.code, 3);
  EXPECT_NE(other.err.find("is not the released suite"), std::string::npos) << other.err;
}

TEST_F(CliGate, KnownFailuresAreExcusedUntilTheirLastDay) {
  EXPECT_EQ(smoke(wrong).code, 1);
  const ProgramOutput excused = smoke("'mutants?mutant=eps_outside_sqrt' --suite smoke --known-failures " +
                                      known("known.json", "*/eps_edge/*", "2999-12-31") + " -o " + path("excused"));
  EXPECT_NE(excused.out.find(" xfail"), std::string::npos) << excused.out;
  const Json record = parse_json(read_text_file(path("excused/run.json")), "run.json");
  EXPECT_EQ(record["known_failures"][0]["state"], "holds");
  EXPECT_FALSE(record["summary"]["cases"].contains("xpass")) << record["summary"];
  const ProgramOutput expired = smoke(wrong + " --known-failures " + known("old.json", "*/eps_edge/*", "2001-01-01"));
  EXPECT_EQ(expired.code, 1);
  EXPECT_NE(expired.out.find("expired on 2001-01-01"), std::string::npos) << expired.out;
  const ProgramOutput stale =
      smoke("scalar --suite smoke --known-failures " + known("stale.json", "gone/*", "2999-12-31"));
  EXPECT_EQ(stale.code, 1);
  EXPECT_NE(stale.out.find("'gone/*' matches no case"), std::string::npos) << stale.out;
  const ProgramOutput surprise =
      smoke("scalar --suite smoke --known-failures " + known("good.json", "*/eps_edge/*", "2999-12-31"));
  EXPECT_EQ(surprise.code, 1);
  EXPECT_NE(surprise.out.find("xpass"), std::string::npos) << surprise.out;
  EXPECT_EQ(smoke("scalar --suite smoke --known-failures " + written("bad.json", "{}")).code, 3);
}

TEST_F(CliGate, DemandsOnTheRun) {
  EXPECT_EQ(smoke("scalar --suite smoke --require-implementation 'nothing*'").code, 1);
  EXPECT_EQ(smoke("scalar --suite smoke --require-implementation '*'").code, 0);
  EXPECT_EQ(smoke("template --suite smoke").code, 5);
  EXPECT_EQ(smoke("template --suite smoke --require full").code, 5);
  const ProgramOutput over = smoke("scalar --suite smoke --max-time 0.001");
  EXPECT_TRUE(over.code == 5 || over.code == 1) << over.code;
  EXPECT_NE(over.out.find("not_run"), std::string::npos) << over.out;
  EXPECT_NE(over.out.find("--max-time"), std::string::npos) << over.out;
  EXPECT_EQ(smoke("scalar --suite smoke --max-time 0.001 --allow-not-run").code, 0);
}

// An error that grew inside of the budget: a kernel in f32 whose figures are made smaller in the baseline.
TEST_F(CliGate, TheGateFindsWhatGrew) {
  ASSERT_EQ(smoke("scalar --suite smoke -o " + path("now")).code, 0);
  const std::string run = path("now/run.json"), baseline = path("baseline.json");
  const ProgramOutput made = qkcts("baseline update " + baseline + " " + run);
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(qkcts("gate " + baseline + " " + run).code, 0);
  EXPECT_EQ(qkcts("gate " + run + " " + run).code, 0);
  Json smaller = parse_json(read_text_file(baseline), baseline);
  for (Json& entry : smaller["runs"][0]["entries"])
    if (entry["max_ulp"].is_number()) entry["max_ulp"] = entry["max_ulp"].get<double>() / 4;
  const std::string old = written("old_baseline.json", smaller.dump());
  const ProgramOutput grown = qkcts("gate " + old + " " + run + " --github");
  EXPECT_EQ(grown.code, 1);
  for (const char* part : {"max ulp ", "GATE FAILED", "qkcts baseline update", "::error title=qkcts gate::"})
    EXPECT_NE(grown.out.find(part), std::string::npos) << part << "\n" << grown.out;
  EXPECT_EQ(qkcts("baseline update " + old + " " + run).code, 0);
  EXPECT_EQ(qkcts("gate " + old + " " + run).code, 0) << "the change was accepted";
  EXPECT_EQ(qkcts("gate " + old + " " + run + " --machine-class other").code, 5);
  EXPECT_EQ(qkcts("gate " + path("nothing.json") + " " + run).code, 3);
  EXPECT_EQ(qkcts("gate " + written("torn.json", "{\"schema\"") + " " + run).code, 3);
  EXPECT_EQ(qkcts("baseline update /nonexistent/b.json " + run).code, 6);
}

}  // namespace
}  // namespace qkcts
