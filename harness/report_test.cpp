// SPDX-License-Identifier: Apache-2.0
// Text and HTML of one record that holds a case of every kind.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "harness/aggregate.hpp"
#include "harness/failure_text.hpp"
#include "harness/report_html.hpp"
#include "harness/report_text.hpp"
#include "harness/sample_record.hpp"

namespace qkcts {
namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(FailureText, IsARepro) {
  const RunRecord record = sample_record();
  const std::string text = failure_text(record, record.cases[1]);
  for (const char* part :
       {"FAIL  hand/wrong", "contract plain_sdpa  clause QK-LSE  profile f32", "lse[b0 h0 t1]  1 of 2 elements fail",
        "got    0x7fc00000  nan", "exact  0x3f317218  0.693147180559945309", "of another class",
        "error/budget of later stages:\n    output 2.6e+05\n",
        "explain: qkcts explain hand.h5 hand/wrong lse 0,0,1 --profile f32",
        "again:   qkcts run './lib mine.so' hand.h5 --case hand/wrong"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  const std::string output = failure_text(record, record.cases[1], record.cases[1].stages[3]);
  EXPECT_NE(output.find("off    1.0e+06 ulp, budget 4 ulp (9.54e-07 = 0x1p-20), error/budget 2.6e+05"),
            std::string::npos)
      << output;
}

// Stages of ABI 1.2 have the last numbers, but stand where they are evaluated.
TEST(Aggregate, StagesStandInTheOrderOfEvaluation) {
  RunRecord record = sample_record();
  record.cases.resize(1);
  CaseResult& result = record.cases[0];
  result.stages.clear();
  for (const qkcts_stage stage : all_stages) {
    result.stages.emplace_back().stage = stage;
    result.stages.back().verdict = Verdict::pass;
  }
  std::vector<qkcts_stage> order;
  for (const StageAggregate& line : aggregate(record)) order.push_back(line.stage);
  EXPECT_EQ(order, std::vector<qkcts_stage>(all_stages.begin(), all_stages.end()));
  const std::string table = result_table(record);
  EXPECT_LT(table.find(" q_proj "), table.find(" q_norm ")) << table;
  EXPECT_LT(table.find(" v_norm "), table.find(" q_rope ")) << table;
  EXPECT_NE(table.find(" q_proj "), std::string::npos) << table;
}

TEST(FailureText, PassingAndNeutralCasesHaveNone) {
  const RunRecord record = sample_record();
  for (const std::size_t index : {0, 5, 6}) EXPECT_EQ(failure_text(record, record.cases[index]), "");
}

TEST(FailureText, AgainNamesTheStagesThatWereAskedFor) {
  RunRecord record = sample_record();
  EXPECT_EQ(rerun_command(record, record.cases[1]).find("--stages"), std::string::npos);
  record.stages_asked = "lse,output";
  EXPECT_NE(rerun_command(record, record.cases[1]).find(" --stages lse,output"), std::string::npos);
}

TEST(FailureText, CrashKeepsTheLastWords) {
  const RunRecord record = sample_record();
  const std::string text = failure_text(record, record.cases[3]);
  EXPECT_NE(text.find("FAIL error(crash)  hand/crash"), std::string::npos) << text;
  EXPECT_NE(text.find("    | second line\n"), std::string::npos) << text;
}

TEST(FailureText, OwnLimitsHaveABlockOfTheirOwn) {
  const RunRecord record = sample_record();
  const std::string text = failure_text(record, record.cases[2]);
  EXPECT_NE(text.find("OVER YOUR LIMIT  hand/limit"), std::string::npos) << text;
  EXPECT_EQ(text.find("FAIL"), std::string::npos) << text;
}

TEST(FailureText, ShellArgumentsAreQuotedOnlyWhereNeeded) {
  EXPECT_EQ(shell_quoted("./lib.so"), "./lib.so");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted("mutants?mutant=x"), "'mutants?mutant=x'");
  EXPECT_EQ(shell_quoted(""), "''");
}

TEST(Aggregate, FoldsCasesByContractAndStage) {
  const std::vector<StageAggregate> lines = aggregate(sample_record());
  ASSERT_EQ(lines.size(), 4u);
  const StageAggregate& output = lines[3];
  EXPECT_EQ(output.stage, QKCTS_STAGE_OUTPUT);
  EXPECT_EQ(output.cases, 5);
  EXPECT_EQ(output.not_judged, 2);
  EXPECT_EQ(output.worst_case, "hand/wrong");
  EXPECT_EQ(output.limits_exceeded, 1);
  EXPECT_EQ(output.verdict, Verdict::error_crash);
}

TEST(Aggregate, ClauseContractsStandTogetherUnlessTheyFail) {
  RunRecord record = sample_record();
  const auto names = [&] {
    std::vector<std::string> list;
    for (const StageAggregate& line : aggregate_briefly(record)) {
      if (list.empty() || list.back() != line.contract) list.push_back(line.contract);
    }
    return list;
  };
  record.cases.resize(2);
  record.cases.push_back(record.cases[0]);
  record.cases.push_back(record.cases[0]);
  record.cases[0].contract = "clause_a";
  record.cases[2].contract = "clause_b";
  EXPECT_EQ(names(), (std::vector<std::string>{"plain_sdpa", "clause_* (2)"}));
  record.cases[1].contract = "clause_b";
  EXPECT_EQ(names(), (std::vector<std::string>{"plain_sdpa", "clause_* (1)", "clause_b"}));
}

TEST(ReportText, FitsEightyColumns) {
  for (const RunRecord& record : {sample_record(), passing_record()}) {
    std::istringstream lines(result_table(record) + summary_text(record));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  }
}

// One mistrusted case does not hide that the others passed.
TEST(ReportText, RowsOfMixedCasesShowTheirCounts) {
  RunRecord record = passing_record();
  EXPECT_EQ(result_table(record).find("of these"), std::string::npos);
  for (int i = 0; i < 2; ++i) record.cases.push_back(record.cases[0]);
  record.cases.push_back(sample_record().cases[5]);
  const std::string table = result_table(record);
  EXPECT_NE(table.find("mistrusted\n  of these: 1 mistrusted, 3 pass\n"), std::string::npos) << table;
  EXPECT_EQ(occurrences(table, "of these"), 1u) << table;  // the other stages passed in all of them
  EXPECT_NE(report_html(record).find("1 mistrusted 3 pass"), std::string::npos);
  // What was not run is no part of a row's verdict.
  record.cases.pop_back();
  record.cases.push_back(sample_record().cases[6]);
  EXPECT_EQ(result_table(record).find("of these"), std::string::npos);
}

TEST(ReportText, OneIsNotMany) {
  RunRecord record = sample_record();
  EXPECT_NE(summary_text(record).find("7 cases:"), std::string::npos);
  record.cases.resize(1);
  EXPECT_NE(summary_text(record).find("1 case:"), std::string::npos);
}

TEST(ReportText, SaysHowItEnded) {
  EXPECT_NE(summary_text(sample_record()).find("  1 unsupported: k_len 2 is more than 1\n"), std::string::npos);
  RunRecord record = passing_record();
  EXPECT_NE(summary_text(record).find("1 case: 1 pass\nCONFORMING"), std::string::npos) << summary_text(record);
  EXPECT_NE(summary_text(sample_record()).find("NOT CONFORMING"), std::string::npos);
  record.cases.push_back(sample_record().cases[2]);
  EXPECT_NE(summary_text(record).find("OVER YOUR OWN LIMITS, within every proven budget"), std::string::npos);
  record.cases.clear();
  record.unavailable = "no such device";
  EXPECT_NE(summary_text(record).find("NOTHING WAS RUN: no such device"), std::string::npos);
}

TEST(ReportHtml, IsOneFileThatFetchesNothing) {
  const std::string html = report_html(sample_record());
  for (const char* part : {"<script", "http://", "src=", "@import", "url("})
    EXPECT_EQ(occurrences(html, part), 0u) << part;
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(html.find("prefers-color-scheme: dark"), std::string::npos);
}

TEST(ReportHtml, EscapesWhatAnAdapterSays) {
  const std::string html = report_html(sample_record());
  EXPECT_NE(html.find("mine &lt;&amp;&gt;"), std::string::npos);
  EXPECT_EQ(html.find("last words: <b>"), std::string::npos);
  EXPECT_TRUE(
      std::none_of(html.begin(), html.end(), [](char c) { return static_cast<unsigned char>(c) == 0xff || c == 1; }));
}

TEST(ReportHtml, ElementsAreBalanced) {
  const std::string html = report_html(sample_record());
  for (const char* const name :
       {"section", "table", "tr", "td", "svg", "figure", "details", "summary", "pre", "ol", "li"}) {
    const std::string tag = name;
    EXPECT_EQ(occurrences(html, "<" + tag + ">") + occurrences(html, "<" + tag + " "),
              occurrences(html, "</" + tag + ">"))
        << tag;
  }
}

TEST(ReportHtml, HoldsTheFindings) {
  const std::string html = report_html(sample_record());
  for (const char* part : {"Not conforming", "Failures (4)", "hand/wrong", "qkcts explain hand.h5 hand/wrong",
                           "QK-SCALE-01", "error(crash)", "own limit"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  EXPECT_NE(report_html(passing_record()).find("Conforming"), std::string::npos);
  EXPECT_EQ(report_html(passing_record()).find("Failures ("), std::string::npos);
}

// Thousands of cases, a third of them failing, of many contracts: what matters first, the rest behind lines
// that say how much it is, and nothing left out unsaid.
TEST(ReportHtml, StaysReadableForAWholeSuite) {
  RunRecord record = sample_record();
  const std::vector<CaseResult> kinds = {record.cases[0], record.cases[1], record.cases[0]};
  const std::size_t short_page = report_html(record).size();
  record.cases.clear();
  for (int i = 0; i < 4500; ++i) {
    CaseResult& result = record.cases.push_back(kinds[static_cast<std::size_t>(i) % kinds.size()]);
    result.slug = "many/" + std::to_string(i);
    result.contract = "contract_" + std::to_string(i % 150);
    record.contracts.emplace(result.contract, record.contracts.begin()->second);
  }
  const std::string html = report_html(record);
  EXPECT_LT(html.size(), short_page + 8'000'000);
  EXPECT_NE(html.find("Failures (1500)"), std::string::npos);
  EXPECT_NE(html.find("The first 200 of 1500; run.json holds all."), std::string::npos);
  EXPECT_NE(html.find("Failing cases: 1500"), std::string::npos);
  EXPECT_NE(html.find("Other cases: 3000"), std::string::npos);
  EXPECT_NE(html.find("The first 1000 of 1500; run.json holds all."), std::string::npos);
  EXPECT_NE(html.find("The first 1000 of 3000; run.json holds all."), std::string::npos);
  const std::size_t others = html.find("100 other contracts, none of them violated");
  ASSERT_NE(others, std::string::npos);
  EXPECT_LT(html.find("<tr><th scope=\"row\">contract_1</th>"), others);  // violated
  EXPECT_GT(html.find("<tr><th scope=\"row\">contract_0</th>"), others);  // not
  // All cases of one kind have the same ratio: one dot for each height at which dots stand, and none lost.
  EXPECT_LT(occurrences(html, "<circle"), 300u);
  EXPECT_NE(html.find(" more here</title>"), std::string::npos);
  EXPECT_EQ(occurrences(report_html(passing_record()), "more here"), 0u);
}

}  // namespace
}  // namespace qkcts
