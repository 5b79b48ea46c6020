// SPDX-License-Identifier: Apache-2.0
#include "harness/known_failures.hpp"

#include <gtest/gtest.h>

#include "harness/demands.hpp"
#include "harness/sample_record.hpp"

namespace qkcts {
namespace {

std::string document(const std::string& entries) {
  return R"({"schema": "qkcts-known-failures/1", "failures": [)" + entries + "]}";
}

std::vector<KnownFailure> entries(const std::string& case_glob, const std::string& more = "") {
  return known_failures_from_json(
      document(R"({"case": ")" + case_glob +
               R"(", "reason": "wrong tail", "link": "issue 12", "expires": "2026-06-30")" + more + "}"),
      "known.json");
}

std::vector<KnownFailureUse> uses(const std::vector<KnownFailure>& entries, const std::string& today = "2026-01-02") {
  return known_failure_uses(entries, "hand", today, {"hand/pass", "hand/wrong", "hand/crash"});
}

CaseResult case_of_sample(const std::string& slug) {
  for (const CaseResult& result : sample_record().cases)
    if (result.slug == slug) return result;
  ADD_FAILURE() << slug;
  return {};
}

Verdict verdict_under(const std::string& slug, const std::vector<KnownFailure>& known,
                      const std::string& today = "2026-01-02") {
  CaseResult result = case_of_sample(slug);
  apply_known_failures(result, uses(known, today), ~StageSet{0});
  return result.verdict;
}

std::string fault(const std::string& text) {
  try {
    known_failures_from_json(text, "known.json");
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(KnownFailures, AFailureThatIsKnownIsExcusedButNoPass) {
  EXPECT_EQ(case_of_sample("hand/wrong").verdict, Verdict::fail);
  EXPECT_EQ(verdict_under("hand/wrong", entries("hand/wr*")), Verdict::xfail);
  EXPECT_EQ(verdict_under("hand/wrong", entries("hand/pass")), Verdict::fail);
  RunRecord record = passing_record();
  record.cases = {case_of_sample("hand/wrong")};
  record.known_failures = uses(entries("hand/wrong"));
  apply_known_failures(record.cases[0], record.known_failures, ~StageSet{0});
  EXPECT_EQ(exit_code(record), 1) << "nothing passes";
  record.cases.push_back(passing_record().cases[0]);
  EXPECT_EQ(exit_code(record), 0);
}

TEST(KnownFailures, WhatPassesAgainstAnEntryFails) {
  EXPECT_EQ(verdict_under("hand/pass", entries("*")), Verdict::xpass);
  EXPECT_TRUE(violates(Verdict::xpass));
}

TEST(KnownFailures, StagesAreHeldOneByOne) {
  CaseResult wrong = case_of_sample("hand/wrong");
  apply_known_failures(wrong, uses(entries("*", R"(, "stages": ["output"])")), ~StageSet{0});
  EXPECT_EQ(wrong.verdict, Verdict::fail) << "lse fails as well, and nobody said so";
  EXPECT_EQ(verdict_under("hand/wrong", entries("*", R"(, "stages": ["output", "lse"])")), Verdict::xfail);
  EXPECT_EQ(verdict_under("hand/wrong", entries("*", R"(, "stages": ["output", "lse", "probs"])")), Verdict::xpass);
}

TEST(KnownFailures, NoOtherVerdictIsExcused) {
  EXPECT_EQ(verdict_under("hand/crash", entries("*")), Verdict::error_crash);
  EXPECT_EQ(verdict_under("hand/crash", entries("*", R"x(, "verdict": "error(crash)")x")), Verdict::xfail);
  EXPECT_EQ(verdict_under("hand/wrong", entries("*", R"x(, "verdict": "error(crash)")x")), Verdict::fail);
}

// Of a case in part nobody can say that it passes as a whole.
TEST(KnownFailures, ACaseInPartIsNoSurprise) {
  CaseResult result = case_of_sample("hand/pass");
  apply_known_failures(result, uses(entries("*")), bit(QKCTS_STAGE_PROBS));
  EXPECT_EQ(result.verdict, Verdict::pass);
}

TEST(KnownFailures, EntriesThatMatchNothingOrHaveExpiredFailTheRun) {
  RunRecord record = passing_record();
  record.known_failures = uses(entries("hand/gone"));
  EXPECT_EQ(record.known_failures[0].state, KnownFailureState::stale);
  EXPECT_EQ(exit_code(record), 1);
  EXPECT_NE(unmet_demands(record)[0].find("'hand/gone' matches no case"), std::string::npos);
  record.known_failures = uses(entries("hand/wrong"), "2026-06-30");
  EXPECT_EQ(record.known_failures[0].state, KnownFailureState::holds) << "its last day";
  record.known_failures = uses(entries("hand/wrong"), "2026-07-01");
  EXPECT_EQ(record.known_failures[0].state, KnownFailureState::expired);
  EXPECT_EQ(exit_code(record), 1);
  EXPECT_EQ(verdict_under("hand/wrong", entries("*"), "2026-07-01"), Verdict::fail);
  record.known_failures = uses(entries("hand/gone", R"(, "suite": "core")"));
  EXPECT_EQ(record.known_failures[0].state, KnownFailureState::other_suite);
  EXPECT_EQ(exit_code(record), 0);
}

TEST(KnownFailures, RelationsAreKnownByTheirNames) {
  RelationResult result;
  result.slug = "hand/wrong";
  result.verdict = Verdict::fail;
  apply_known_failures(result, uses(entries("hand/wrong")));
  EXPECT_EQ(result.verdict, Verdict::xfail);
  result.verdict = Verdict::pass;
  apply_known_failures(result, uses(entries("hand/wrong")));
  EXPECT_EQ(result.verdict, Verdict::xpass);
}

TEST(KnownFailures, FaultsNameTheirPlace) {
  const std::string good = R"({"case": "*", "reason": "r", "link": "l", "expires": "2026-02-28"})";
  EXPECT_EQ(fault(document(good)), "");
  EXPECT_EQ(fault(document(R"({"case": "*", "reason": "r", "link": "l", "expires": "2026-02-29"})")),
            "known.json: /failures/0/expires: 2026-02-29 is no day");
  EXPECT_EQ(fault(document(R"({"case": "*", "reason": "r", "link": "l", "expires": "2028-02-29"})")), "");
  for (const char* bad : {R"({"case": "*", "reason": "r", "link": "l"})",
                          R"({"case": "*", "reason": "", "link": "l", "expires": "2026-02-28"})",
                          R"({"case": "*", "reason": "r", "link": "l", "expires": "28.2.2026"})",
                          R"({"case": "*", "reason": "r", "link": "l", "expires": "2026-02-28", "stages": ["result"]})",
                          R"({"case": "*", "reason": "r", "link": "l", "expires": "2026-02-28", "verdict": "pass"})"})
    EXPECT_NE(fault(document(bad)), "") << bad;
}

TEST(Demands, EachIsHeld) {
  RunRecord record = passing_record();
  EXPECT_TRUE(unmet_demands(record).empty());
  record.demands.implementation = "plain*";
  EXPECT_TRUE(unmet_demands(record).empty());
  record.demands.implementation = "fast*";
  ASSERT_EQ(unmet_demands(record).size(), 1u);
  EXPECT_EQ(unmet_demands(record)[0], "1 case ran 'plain loops', where 'fast*' is required");
  EXPECT_EQ(exit_code(record), 1);
  record.demands = {};
  record.cases.push_back(record.cases[0]);
  record.cases[1].verdict = Verdict::unsupported;
  EXPECT_EQ(exit_code(record), 0);
  record.demands.everything = true;
  EXPECT_EQ(exit_code(record), 1);
}

TEST(Demands, CasesThatWereNotRunAreAllowedOnlyIfAskedFor) {
  RunRecord record = passing_record();
  record.cases.push_back(record.cases[0]);
  record.cases[1].verdict = Verdict::not_run;
  EXPECT_EQ(exit_code(record), 1);
  record.demands.allow_not_run = true;
  EXPECT_EQ(exit_code(record), 0);
  record.cases = {record.cases[1]};
  EXPECT_EQ(exit_code(record), 0) << "a machine without the device";
  record.cases[0].verdict = Verdict::unsupported;
  EXPECT_EQ(exit_code(record), 5);
}

}  // namespace
}  // namespace qkcts
