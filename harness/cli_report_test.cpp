// SPDX-License-Identifier: Apache-2.0
// `report` and `bench` as a user meets them.
#include <filesystem>
#include <fstream>

#include "conformance/json_schema.hpp"
#include "harness/program_output.hpp"
#include "harness/run_record.hpp"
#include "harness/sample_record.hpp"

namespace qkcts {
namespace {

const std::string smoke = QKCTS_SOURCE_DIR "/vectors/golden/smoke.h5";

class CliReport : public ProgramTest {};
class CliBench : public ProgramTest {};

TEST_F(CliReport, RendersEveryFormatAgain) {
  const std::string run = written("run.json", run_json_text(full_record()));
  const ProgramOutput done =
      qkcts("report " + run + " --html " + path("p.html") + " --markdown " + path("p.md") + " --junit " +
            path("p.xml") + " --ctrf " + path("p.ctrf") + " --gitlab " + path("p.cq"));
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out, "");
  for (const char* name : {"p.html", "p.md", "p.xml", "p.ctrf", "p.cq"})
    EXPECT_GT(std::filesystem::file_size(path(name)), 500u) << name;
  const ProgramOutput text = qkcts("report " + run);
  EXPECT_EQ(text.code, 0);
  EXPECT_LT(text.out.find("FAIL  hand/wrong"), text.out.find("max err/D"));  // failures first
  EXPECT_NE(text.out.find("NOT CONFORMING"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find('\x1b'), std::string::npos);  // no colour where nobody looks
}

TEST_F(CliReport, WritesTheStepSummaryThatGitHubAsksFor) {
  const std::string run = written("run.json", run_json_text(sample_record()));
  std::ofstream(path("summary")) << "before\n";
  const ProgramOutput done = qkcts("report " + run + " --github", "GITHUB_STEP_SUMMARY=" + path("summary"));
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out.rfind("::error title=hand/wrong::", 0), 0u) << done.out;
  EXPECT_EQ(read_text_file(path("summary")).rfind("before\n# mine", 0), 0u);
  const ProgramOutput none = qkcts("report " + run + " --github", "GITHUB_STEP_SUMMARY=" + path("no/folder"));
  EXPECT_EQ(none.code, 6);
  EXPECT_TRUE(is_one_line(none.err)) << none.err;
}

TEST_F(CliReport, RefusesWhatIsNoRun) {
  const std::string good = run_json_text(full_record());
  Json odd = to_json(full_record());
  odd["surplus"] = 1;
  for (const std::string& text :
       {std::string(), std::string("{}"), good.substr(0, 1000), odd.dump(), std::string("\xff")}) {
    const ProgramOutput done = qkcts("report " + written("bad.json", text));
    EXPECT_EQ(done.code, 3) << text.substr(0, 40);
    EXPECT_TRUE(is_one_line(done.err)) << done.err;
  }
  EXPECT_EQ(qkcts("report " + path("absent.json")).code, 3);
  EXPECT_EQ(qkcts("report " + written("run.json", good) + " --html /nonexistent/x.html").code, 6);
  const ProgramOutput matrix =
      qkcts("report " + path("run.json") + " --html " + path("x.html") + " --adequacy " + path("run.json"));
  EXPECT_EQ(matrix.code, 3);
  EXPECT_NE(matrix.err.find("qkcts adequacy"), std::string::npos) << matrix.err;
}

// A page made again is the page that the run wrote, and the extras join it.
TEST_F(CliReport, FollowsARealRun) {
  ASSERT_EQ(qkcts("run scalar " + smoke + " --case 'qwen3*' -o " + path("r")).code, 0);
  const std::string run = path("r/run.json");
  const RunRecord record = read_run_record(run);
  ASSERT_FALSE(record.cases.empty());
  for (const CaseResult& result : record.cases)
    for (const StageResult& stage : result.stages)
      EXPECT_EQ(stage.judgement.has_value(), stage.plain.has_value()) << result.slug;
  ASSERT_EQ(qkcts("report " + run + " -o " + path("again")).code, 0);
  for (const char* name : {"run.json", "report.html", "report.md", "junit.xml", "ctrf.json", "codequality.json"})
    EXPECT_EQ(read_text_file(path("again/") + name), read_text_file(path("r/") + name)) << name;
  ASSERT_EQ(qkcts("adequacy " + smoke + " --mutant eps_outside_sqrt --format json -o " + path("a.json")).code & ~1, 0);
  ASSERT_EQ(
      qkcts("report " + run + " --html " + path("x.html") + " --against plain_sdpa --adequacy " + path("a.json")).code,
      0);
  const std::string html = read_text_file(path("x.html"));
  EXPECT_NE(html.find("Kill matrix"), std::string::npos);
  EXPECT_NE(html.find("differs"), std::string::npos);
  EXPECT_EQ(read_text_file(path("r/report.html")).find("Kill matrix"), std::string::npos);
}

// In binary32 the scalar kernel is the plain evaluation: the yardstick measures what the judge measures.
TEST_F(CliReport, PlainIsTheScalarKernelWhereNothingIsStoredNarrower) {
  ASSERT_EQ(qkcts("run scalar " + smoke + " -o " + path("p")).code, 0);
  const RunRecord record = read_run_record(path("p/run.json"));
  bool wide = false, narrow = false;
  for (const CaseResult& result : record.cases)
    for (const StageResult& stage : result.stages) {
      if (!stage.plain) continue;
      const bool stored = result.format == Format::binary16 || result.format == Format::bfloat16;
      if (!stored) {
        EXPECT_EQ(stage.plain->max_ratio, stage.judgement->max_ratio) << result.slug;
        EXPECT_EQ(stage.plain->mean_ulp, stage.judgement->mean_ulp) << result.slug;
        wide = true;
      } else if (stage.stage == QKCTS_STAGE_OUTPUT) {
        EXPECT_GE(stage.plain->mean_ulp, stage.judgement->mean_ulp) << result.slug;
        narrow = narrow || stage.plain->mean_ulp > stage.judgement->mean_ulp;
      }
    }
  EXPECT_TRUE(wide);
  EXPECT_TRUE(narrow);
  ASSERT_EQ(qkcts("run scalar " + smoke + " --no-plain -o " + path("p")).code, 0);
  for (const CaseResult& result : read_run_record(path("p/run.json")).cases)
    for (const StageResult& stage : result.stages) EXPECT_FALSE(stage.plain);
}

TEST_F(CliBench, PutsErrorBesideTime) {
  const ProgramOutput done =
      qkcts("bench scalar 'mutants?mutant=eps_outside_sqrt' " + smoke + " --rounds 3 --json -o " + path("b.json"));
  const Json document = parse_json(read_text_file(path("b.json")), "b.json");
  EXPECT_NO_THROW(require_schema(document, "bench", "b.json"));
  EXPECT_EQ(document["adapters"][0]["median_time_ratio"], 1);
  EXPECT_EQ(document["adapters"][0]["violated"], 0);
  EXPECT_GT(document["adapters"][1]["violated"], 0);
  EXPECT_GT(document["adapters"][1]["max_error_over_delta"], 1);
  EXPECT_EQ(done.code, 1) << done.err;
  for (const Json& one : document["cases"])
    for (const Json& cell : one["adapters"]) EXPECT_FALSE(cell.contains("milliseconds"));  // a processor: ratios alone
  const ProgramOutput text = qkcts("bench scalar " + smoke + " --rounds 1 --case 'plain*'");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("1x"), std::string::npos) << text.out;
}

TEST_F(CliBench, RefusesWhatItCannotRun) {
  for (const auto& [arguments, code] :
       std::vector<std::pair<std::string, int>>{{"bench " + smoke, 2},
                                                {"bench ./nothing.so " + smoke, 4},
                                                {"bench scalar /nonexistent.h5", 3},
                                                {"bench scalar " + smoke + " --stages nothing", 2},
                                                {"bench scalar " + smoke + " --case none", 5}}) {
    const ProgramOutput done = qkcts(arguments);
    EXPECT_EQ(done.code, code) << arguments << ": " << done.err;
    EXPECT_TRUE(code == 5 || is_one_line(done.err)) << done.err;
  }
}

}  // namespace
}  // namespace qkcts
