// SPDX-License-Identifier: Apache-2.0
#include "harness/run_record.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "conformance/json_schema.hpp"
#include "harness/handmade_case.hpp"
#include "harness/report_ctrf.hpp"
#include "harness/report_gitlab.hpp"
#include "harness/report_html.hpp"
#include "harness/report_junit.hpp"
#include "harness/report_markdown.hpp"
#include "harness/report_text.hpp"
#include "harness/sample_record.hpp"

namespace qkcts {
namespace {

RunRecord with_verdicts(const std::vector<Verdict>& verdicts) {
  RunRecord record = passing_record();
  record.cases.clear();
  for (const Verdict verdict : verdicts) record.cases.push_back(unrun_case(plain_golden_case(), verdict, ""));
  return record;
}

TEST(RunRecord, ExitCodeFollowsFromTheVerdicts) {
  using enum Verdict;
  EXPECT_EQ(exit_code(with_verdicts({pass})), 0);
  EXPECT_EQ(exit_code(with_verdicts({pass, unsupported, skipped})), 0);
  EXPECT_EQ(exit_code(with_verdicts({pass, mistrusted, domain})), 0);
  EXPECT_EQ(exit_code(with_verdicts({mistrusted})), 1);  // ran, and nothing of it is a pass
  EXPECT_EQ(exit_code(with_verdicts({domain, unsupported})), 1);
  EXPECT_EQ(exit_code(with_verdicts({})), 5);
  EXPECT_EQ(exit_code(with_verdicts({unsupported})), 5);
  EXPECT_EQ(exit_code(with_verdicts({not_run, skipped})), 5);
  for (const VerdictRow& r : verdict_table()) {
    if (r.effect != Effect::violates) continue;
    EXPECT_EQ(exit_code(with_verdicts({pass, r.verdict})), 1) << r.name;
  }
}

TEST(RunRecord, OwnLimitMakesAFailureOfAPass) {
  RunRecord record = sample_record();
  record.cases = {record.cases[0]};
  EXPECT_EQ(exit_code(record), 0);
  record.cases.push_back(sample_record().cases[2]);
  EXPECT_EQ(record.cases[1].verdict, Verdict::pass);
  EXPECT_EQ(exit_code(record), 1);
}

// Every case of what was asked for ran, or is declared unsupported; a case that did neither is no pass.
TEST(RunRecord, ACaseThatWasNotRunIsNotConforming) {
  RunRecord record = passing_record();
  record.cases.push_back(record.cases[0]);
  record.cases[1].verdict = Verdict::unsupported;
  EXPECT_EQ(exit_code(record), 0);
  record.cases[1].verdict = Verdict::not_run;
  EXPECT_EQ(exit_code(record), 1);
  record.cases = {record.cases[1]};
  EXPECT_EQ(exit_code(record), 5);
}

// A relation is a case of its own: one that was not run is missing like any other.
TEST(RunRecord, ARelationThatWasNotRunIsMissing) {
  RunRecord record = passing_record();
  RelationResult& relation = record.relations.emplace_back();
  relation.slug = "hand/bounded";
  relation.verdict = Verdict::pass;
  EXPECT_EQ(exit_code(record), 0);
  relation.verdict = Verdict::not_run;
  EXPECT_EQ(exit_code(record), 1);
  record.demands.allow_not_run = true;
  EXPECT_EQ(exit_code(record), 0);
}

TEST(RunRecord, InterruptionIsVisibleInTheExitCode) {
  RunRecord record = passing_record();
  record.interrupted_by = 2;
  EXPECT_EQ(exit_code(record), 130);
}

TEST(RunRecord, JsonHoldsToItsSchema) {
  EXPECT_NO_THROW(require_schema(to_json(passing_record()), "run", "run.json"));
  const Json document = to_json(sample_record());
  EXPECT_NO_THROW(require_schema(document, "run", "run.json"));
  // The text must read back: NaN, infinities and bytes that are no UTF-8 have no place in JSON.
  EXPECT_EQ(parse_json(run_json_text(sample_record()), "run.json")["cases"].size(), document["cases"].size());
}

TEST(RunRecord, SchemaRefusesWhatIsNoRecord) {
  Json document = to_json(passing_record());
  document["cases"][0]["verdict"] = "passed";
  EXPECT_THROW(require_schema(document, "run", "run.json"), InputError);
  document = to_json(passing_record());
  document.erase("machine");
  EXPECT_THROW(require_schema(document, "run", "run.json"), InputError);
}

TEST(RunRecord, JsonSaysWhatWasFound) {
  const Json document = to_json(sample_record());
  const Json& wrong = document["cases"][1];
  EXPECT_EQ(wrong["verdict"], "fail");
  const Json& lse = wrong["stages"][2];
  EXPECT_EQ(lse["failures"][0]["breach"], "class");
  EXPECT_EQ(lse["failures"][0]["got"], nullptr);
  EXPECT_EQ(lse["failures"][0]["index"], Json({0, 0, 1}));
  EXPECT_EQ(lse["max_ulp"], nullptr);
  const Json& output = wrong["stages"][3];
  EXPECT_EQ(output["failures"][0]["got_bits"], "0x40700000");
  EXPECT_EQ(output["failures"][0]["error_over_delta"], 0.25 / 0x1p-20);
  EXPECT_EQ(document["cases"][2]["stages"][3]["own_limit"]["verdict"], "exceeded");
  EXPECT_EQ(document["summary"]["cases"]["pass"], 2);
  EXPECT_EQ(document["exit_code"], 1);
}

std::string refusal(const std::string& text) {
  try {
    record_from_json(text, "RUN");
  } catch (const InputError& error) {
    return error.what();
  }
  return "was read";
}

// Everything that a report shows is in the file.
TEST(RunJson, ReadsBackWhatItWrote) {
  for (const RunRecord& record : {passing_record(), sample_record(), full_record()}) {
    const Json document = to_json(record);
    ASSERT_NO_THROW(require_schema(document, "run", "run.json", LongStrings::admitted));
    const RunRecord again = record_from_json(run_json_text(record), "RUN");
    EXPECT_EQ(to_json(again), document);
    EXPECT_EQ(report_html(again), report_html(record));
    EXPECT_EQ(junit_xml(again), junit_xml(record));
    EXPECT_EQ(run_text(again), run_text(record));
    EXPECT_EQ(report_markdown(again), report_markdown(record));
    EXPECT_EQ(ctrf_json_text(again), ctrf_json_text(record));
    EXPECT_EQ(gitlab_code_quality(again), gitlab_code_quality(record));
  }
}

TEST(RunJson, RefusesWhatTheSchemaDoesNotKnow) {
  Json document = to_json(full_record());
  document["cases"][1]["stages"][3]["worst"]["colour"] = "red";
  EXPECT_NE(refusal(document.dump()).find("RUN: /cases/1/stages/3/worst"), std::string::npos)
      << refusal(document.dump());
  document = to_json(full_record());
  document["heat_maps"][0].erase("cells");
  EXPECT_NE(refusal(document.dump()).find("\"cells\" is missing"), std::string::npos) << refusal(document.dump());
}

TEST(RunJson, RefusesWhatContradictsTheRest) {
  const Json good = to_json(full_record());
  const std::vector<std::pair<std::string, Json>> lies = {
      {"/summary/cases/pass", 7},
      {"/exit_code", 0},
      {"/cases/1/stages/3/worst/got", 3.5},
      {"/cases/1/stages/3/worst/index", {0, 0, 9, 0}},
      {"/cases/1/stages/3/worst/got_bits", "0x4070"},
      {"/cases/1/stages/3/worst/clause", "QK-NONE"},
      {"/cases/1/stages/3/first_unwritten", nullptr},
      {"/cases/1/stages/3/histogram", {1, 2}},
      {"/cases/0/contract", "unheard_of"},
      {"/contracts/plain_sdpa/format", 1},
      {"/heat_maps/0/cells", {{0.5}}},
      {"/relations/0/cases", {"hand/pass"}},
      {"/relations/0/statement", "anything"},
      {"/adapter/description/name", ""},
      {"/options/limits/schema", "qkcts-limits/9"},
  };
  for (const auto& [pointer, lie] : lies) {
    Json document = good;
    document[Json::json_pointer(pointer)] = lie;
    const std::string said = refusal(document.dump());
    EXPECT_EQ(said.rfind("RUN: ", 0), 0u) << pointer << ": " << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
  EXPECT_EQ(refusal(good.dump()), "was read");  // the control
}

TEST(RunJson, SaysThatAForeignFileIsNone) {
  EXPECT_NE(refusal("{}").find("is no run.json"), std::string::npos);
  EXPECT_NE(refusal("[]").find("is no run.json"), std::string::npos);
  EXPECT_EQ(refusal("{\"schema\":").rfind("RUN:1:", 0), 0u) << refusal("{\"schema\":");
  const std::string text = run_json_text(full_record());
  EXPECT_EQ(refusal(text.substr(0, text.size() / 2)).rfind("RUN:", 0), 0u);
}

// An adapter prints as much as it likes.
TEST(RunJson, HoldsLongOutput) {
  RunRecord record = sample_record();
  record.cases[3].output = std::string(20000, 'x');
  EXPECT_EQ(record_from_json(run_json_text(record), "RUN").cases[3].output.size(), 20000u);
}

TEST(HeatMaps, TheWorstCaseOfEachStageStays) {
  const RunRecord record = full_record();
  ASSERT_EQ(record.heat_maps.size(), 4u);
  EXPECT_EQ(record.heat_maps[3].stage, QKCTS_STAGE_OUTPUT);
  EXPECT_EQ(record.heat_maps[3].slug, "hand/wrong");
  const HeatMap& map = record.heat_maps[3].map;
  ASSERT_EQ(map.rows(), 2u);
  ASSERT_EQ(map.columns(), 2u);
  EXPECT_GT(map.at(1, 1), 1);  // the one element that is off
  EXPECT_EQ(map.at(0, 0), 0);
  for (const CaseResult& result : record.cases)
    for (const StageResult& stage : result.stages) EXPECT_TRUE(!stage.judgement || stage.judgement->heat.rows() == 0);
}

TEST(HeatMaps, ManyElementsShareACell) {
  HeatMap map(1000, 1000);
  map.add(0, 0, 0.25);
  map.add(999, 999, std::numeric_limits<double>::infinity());
  EXPECT_EQ(map.rows(), heat_rows);
  EXPECT_EQ(map.columns(), heat_columns);
  EXPECT_EQ(map.at(0, 0), 0.25F);
  EXPECT_EQ(map.at(0, 1), heat_unjudged);
  EXPECT_TRUE(std::isinf(map.at(heat_rows - 1, heat_columns - 1)));
}

}  // namespace
}  // namespace qkcts
