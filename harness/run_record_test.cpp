// SPDX-License-Identifier: Apache-2.0
#include "harness/run_record.hpp"

#include <gtest/gtest.h>

#include "conformance/json_schema.hpp"
#include "harness/handmade_case.hpp"
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
  record.cases.erase(record.cases.begin());
  EXPECT_EQ(exit_code(record), 5);
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

}  // namespace
}  // namespace qkcts
