// SPDX-License-Identifier: Apache-2.0
// How a diagnosis reads, in every report, and in the words of the schema.
#include <gtest/gtest.h>

#include <limits>
#include <pugixml.hpp>
#include <sstream>

#include "conformance/json_schema.hpp"
#include "harness/diagnosis.hpp"
#include "harness/report_html.hpp"
#include "harness/report_junit.hpp"
#include "harness/sample_record.hpp"

namespace qkcts {
namespace {

Suspect suspect(std::string name, std::uint64_t explained, double worst) {
  Suspect made;
  made.name = std::move(name);
  made.changes = {{"QK-EPS-02", "q_norm.root", "inside_root", "outside_root"}};
  made.known_as = {{"eps_outside_sqrt", "QK-EPS-02", "y = x/(sqrt(ms)+eps)*g"}};
  made.judged = 100;
  made.explained = explained;
  made.worst = worst;
  return made;
}

RunRecord diagnosed_record() {
  RunRecord record = sample_record();
  Diagnosis& diagnosis = record.diagnosis.emplace();
  diagnosis.failing_cases = 7;
  CaseDiagnosis matched;
  matched.slug = record.cases[1].slug;
  matched.contract = record.cases[1].contract;
  matched.finding = Finding::matched;
  matched.divergence = {QKCTS_STAGE_Q_NORM, "observed: every stage before it passes"};
  matched.failing = 40;
  matched.judged = 100;
  matched.tried = 114;
  matched.matches = {suspect("q_norm.root=outside_root", 100, 0.2)};
  matched.reproducer = Reproducer{{1, 1, 1, 1, 1, 4, 2}, 9, "repro/one", "qkcts run ./lib.so repro/one/case.h5"};
  CaseDiagnosis several = matched;
  several.slug = "hand/several";
  several.finding = Finding::ambiguous;
  several.matches.push_back(suspect("norm.root=outside_root", 100, 0.3));
  several.cut = true;
  CaseDiagnosis none = matched;
  none.slug = "hand/none";
  none.finding = Finding::unmatched;
  none.matches.clear();
  none.nearest = {suspect("q_norm.root=max_root", 99, std::numeric_limits<double>::infinity())};
  CaseDiagnosis crash;
  crash.slug = "hand/crash";
  crash.finding = Finding::no_values;
  crash.detail = "error(crash): signal 11 <in> & \"out\"";
  diagnosis.cases = {matched, several, none, crash};
  diagnosis.warnings = {"something <changed>"};
  return record;
}

TEST(DiagnosisText, SaysWhatMatchesAndWhatDoesNot) {
  const RunRecord record = diagnosed_record();
  const std::string text = diagnosis_text(*record.diagnosis);
  for (const char* part :
       {"MATCHES: q_norm.root inside_root -> outside_root (QK-EPS-02)", "100 of 100 elements, worst error/Delta 0.2",
        "first divergent stage: q_norm; observed", "smallest that fails: B1 H1/1 L1x1 D4/2 (9 runs)",
        "SEVERAL MATCH (2)", "time ran out before all", "NO MATCH",
        "99 of 100 elements (99.0 %), worst error/Delta inf", "NO VALUES to compare: error(crash)",
        "4 of 7 failing cases diagnosed, different contracts first:", "bundle: repro/one",
        "warning: something <changed>"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

// What explains all but one element of very many is not said to explain all of them.
TEST(DiagnosisText, AShareBelowOneIsNeverAHundredPercent) {
  RunRecord record = diagnosed_record();
  CaseDiagnosis& none = record.diagnosis->cases[2];
  none.nearest[0].judged = 1000000;
  none.nearest[0].explained = 999999;
  const std::string text = diagnosis_text(none);
  EXPECT_NE(text.find("(99.9 %)"), std::string::npos) << text;
  EXPECT_EQ(text.find("MATCHES"), std::string::npos) << text;
}

TEST(DiagnosisText, StandsInEveryReport) {
  const RunRecord record = diagnosed_record();
  const Json document = parse_json(run_json_text(record), "run.json");
  EXPECT_NO_THROW(require_schema(document, "run", "run.json"));
  const Json& cases = document.at("diagnosis").at("cases");
  ASSERT_EQ(cases.size(), 4U);
  EXPECT_EQ(cases[0].at("finding"), "matched");
  EXPECT_EQ(cases[0].at("matches")[0].at("changes")[0].at("clause"), "QK-EPS-02");
  EXPECT_EQ(cases[2].at("nearest")[0].at("worst_error_over_delta"), nullptr);
  EXPECT_EQ(cases[3].at("reproducer"), nullptr);
  EXPECT_EQ(parse_json(run_json_text(sample_record()), "run.json").at("diagnosis"), nullptr);

  const std::string html = report_html(record);
  EXPECT_NE(html.find("id=\"diagnosis\""), std::string::npos);
  EXPECT_NE(html.find("q_norm.root inside_root -&gt; outside_root"), std::string::npos);
  EXPECT_EQ(html.find("<changed>"), std::string::npos);
  EXPECT_EQ(html.find("<in>"), std::string::npos);
  EXPECT_EQ(report_html(sample_record()).find("id=\"diagnosis\""), std::string::npos);

  pugi::xml_document junit;
  ASSERT_TRUE(junit.load_string(junit_xml(record).c_str()));
  const std::string message = junit.select_node(("//testcase[@name='" + record.cases[1].slug + "']/failure").c_str())
                                  .node()
                                  .attribute("message")
                                  .value();
  EXPECT_NE(message.find("matches: q_norm.root inside_root -> outside_root (QK-EPS-02)"), std::string::npos) << message;
}

}  // namespace
}  // namespace qkcts
