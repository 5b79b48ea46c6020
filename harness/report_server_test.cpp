// SPDX-License-Identifier: Apache-2.0
// What test servers and merge requests are given.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "conformance/json_schema.hpp"
#include "harness/report_ctrf.hpp"
#include "harness/report_github.hpp"
#include "harness/report_gitlab.hpp"
#include "harness/report_junit.hpp"
#include "harness/report_markdown.hpp"
#include "harness/report_outcome.hpp"
#include "harness/sample_record.hpp"

namespace qkcts {
namespace {

std::vector<Outcome> outcomes(const RunRecord& record) {
  std::vector<Outcome> list;
  for_each_outcome(record, [&](const Outcome& outcome, const CaseResult*) { list.push_back(outcome); });
  return list;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The sample's wrong case as often as asked for.
RunRecord failing_record(std::size_t cases) {
  RunRecord record = passing_record();
  const CaseResult wrong = sample_record().cases[1];
  for (std::size_t i = 0; i < cases; ++i) {
    record.cases.push_back(wrong);
    record.cases.back().slug = "hand/wrong" + std::to_string(i);
  }
  return record;
}

TEST(Ctrf, HoldsToItsSchema) {
  for (const RunRecord& record : {passing_record(), sample_record(), full_record()})
    EXPECT_NO_THROW(
        require_schema(parse_json(ctrf_json_text(record), "ctrf"), "ctrf_report", "ctrf", LongStrings::admitted));
  Json document = parse_json(ctrf_json_text(passing_record()), "ctrf");
  document["results"]["tests"][0]["status"] = "pass";
  EXPECT_THROW(require_schema(document, "ctrf_report", "ctrf"), InputError);
}

TEST(Ctrf, CountsAddUpAndOnlyAPassIsPassed) {
  const Json results = parse_json(ctrf_json_text(full_record()), "ctrf")["results"];
  const Json& summary = results["summary"];
  int sum = 0;
  for (const char* status : {"passed", "failed", "skipped", "pending", "other"}) {
    const auto count = std::count_if(results["tests"].begin(), results["tests"].end(),
                                     [&](const Json& test) { return test["status"] == status; });
    EXPECT_EQ(summary[status], count) << status;
    sum += static_cast<int>(count);
  }
  EXPECT_EQ(summary["tests"], sum);
  for (const Json& test : results["tests"])
    EXPECT_EQ(test["status"] == "passed", test["rawStatus"] == "pass" && !test.contains("message")) << test.dump();
  EXPECT_EQ(summary["start"], 1767323045000);
  EXPECT_EQ(summary["stop"], 1767323046500);
}

// The verdict alone decides, by the table.
TEST(Outcomes, EveryVerdictHasOne) {
  for (const VerdictRow& entry : verdict_table()) {
    RunRecord record = passing_record();
    record.cases[0].verdict = entry.verdict;
    const Outcome outcome = outcomes(record)[0];
    EXPECT_EQ(outcome.kind, entry.junit) << entry.name;
    EXPECT_EQ(outcome.message.empty(), entry.verdict == Verdict::pass) << entry.name;
  }
}

TEST(Outcomes, UnmetDemandsFail) {
  const std::vector<Outcome> list = outcomes(full_record());
  EXPECT_TRUE(std::any_of(list.begin(), list.end(), [](const Outcome& o) { return o.group == "demands"; }));
  for (const Outcome& outcome : list) EXPECT_TRUE(outcome.group != "demands" || outcome.kind == JunitElement::failure);
}

TEST(CutText, EndsBetweenCharacters) {
  EXPECT_EQ(cut_text("short", 10), "short");
  const std::string deltas = "ΔΔΔΔΔΔΔΔΔΔΔΔ";
  for (std::size_t length = 6; length < deltas.size(); ++length) {
    const std::string cut = cut_text(deltas, length);
    EXPECT_LE(cut.size(), length);
    EXPECT_EQ((cut.size() - 6) % 2, 0u) << length;
    EXPECT_EQ(cut.substr(cut.size() - 6), "\n[cut]");
  }
}

TEST(Junit, StaysBelowWhatServersTake) {
  EXPECT_LT(junit_xml(failing_record(20000)).size(), 25'000'000u);
}

TEST(GitHub, AnnotatesAFewAndCountsTheRest) {
  EXPECT_EQ(github_annotations(passing_record()), "");
  EXPECT_EQ(lines_of(github_annotations(failing_record(9))).size(), 9u);
  const std::vector<std::string> many = lines_of(github_annotations(failing_record(30)));
  ASSERT_EQ(many.size(), 9u);
  EXPECT_NE(many.back().find("22 more"), std::string::npos) << many.back();
  for (const std::string& line : many) EXPECT_EQ(line.rfind("::error title=", 0), 0u) << line;
}

TEST(GitHub, EscapesWhatWouldEndACommand) {
  RunRecord record = failing_record(1);
  record.cases[1].slug = "a:b,c%d";
  record.cases[1].stages.clear();
  record.cases[1].verdict = Verdict::error_crash;
  record.cases[1].detail = "50 %\n::error::forged\r";
  const std::string text = github_annotations(record);
  EXPECT_EQ(lines_of(text).size(), 1u) << text;
  EXPECT_EQ(text.rfind("::error title=a%3Ab%2Cc%25d::error(crash): 50 %25%0A::error::forged%0D", 0), 0u) << text;
}

TEST(GitHub, SummaryFits) {
  const RunRecord record = failing_record(5000);
  const std::string summary = github_summary(record);
  EXPECT_LT(summary.size(), std::size_t{1} << 20U);
  EXPECT_NE(summary.find("## Failures (5000)"), std::string::npos);
  EXPECT_NE(summary.find(" more; run.json holds all."), std::string::npos);
  EXPECT_LT(report_markdown(record, 3000).size(), 3500u);
}

TEST(GitLab, OneEntryPerFailureWithAFingerprintThatStays) {
  const RunRecord record = full_record();
  const Json list = parse_json(gitlab_code_quality(record), "gitlab");
  std::set<std::string> fingerprints;
  for (const Json& entry : list) {
    for (const char* key : {"description", "check_name", "fingerprint", "severity", "location"})
      EXPECT_TRUE(entry.contains(key)) << key;
    EXPECT_EQ(entry["location"]["lines"]["begin"], 1);
    EXPECT_TRUE(std::set<std::string>({"info", "minor", "major", "critical", "blocker"}).contains(entry["severity"]));
    fingerprints.insert(entry["fingerprint"]);
  }
  EXPECT_EQ(fingerprints.size(), list.size());
  const std::vector<Outcome> all = outcomes(record);
  EXPECT_GE(list.size(), static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const Outcome& o) {
              return o.kind == JunitElement::failure || o.kind == JunitElement::error;
            })));
  RunRecord later = record;
  later.started = "2027-01-01T00:00:00Z";
  later.adapter_sha256 = std::string(64, 'c');
  EXPECT_EQ(parse_json(gitlab_code_quality(later), "gitlab"), list);
  EXPECT_EQ(parse_json(gitlab_code_quality(passing_record()), "gitlab"), Json::array());
}

TEST(Markdown, HoldsTheFindingsAndEscapesNames) {
  const std::string text = report_markdown(full_record());
  for (const char* part :
       {"mine &lt;&amp;\\>", "Not conforming", "## Failures", "hand/wrong", "| output |", "## By family"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  EXPECT_NE(text.find("    | last words: <b>"), std::string::npos);  // inside of a fence, where it is text
}

// A fence is longer than what stands in it.
TEST(Markdown, OutputDoesNotEndItsFence) {
  RunRecord record = sample_record();
  record.cases[3].output = "````\n# heading\n";
  EXPECT_NE(report_markdown(record).find("`````text\n"), std::string::npos);
}

}  // namespace
}  // namespace qkcts
