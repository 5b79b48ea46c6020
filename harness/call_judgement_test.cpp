// SPDX-License-Identifier: Apache-2.0
// All calls of a case, judged together: what is reported is the worst of them, whichever call that was.
#include "harness/call_judgement.hpp"

#include <gtest/gtest.h>

#include "harness/handmade_case.hpp"

namespace qkcts {
namespace {

// One plain call whose output is this and whose other stages were not asked for.
Execution call_with(const std::vector<double>& output) {
  Execution execution;
  execution.status = QKCTS_OK;
  execution.outputs[QKCTS_STAGE_OUTPUT] = stage_bytes(Format::binary32, output);
  return execution;
}

StageResult judged(const std::vector<std::vector<double>>& calls, const Limit& limit) {
  const GoldenCase golden = plain_golden_case();
  const StageSet asked = bit(QKCTS_STAGE_OUTPUT);
  RunOrder order;
  order.request.shape = golden.input.shape;
  order.request.stages = asked;
  RunAnswer answer;
  for (const std::vector<double>& output : calls) {
    order.calls.push_back({});
    answer.executions.push_back(call_with(output));
    answer.same_as_first.push_back(answer.executions.size() == 1);
  }
  LimitTable limits;
  limits.rules.push_back({QKCTS_STAGE_OUTPUT, Format::binary32, limit});
  CaseResult result = unrun_case(golden, Verdict::not_run, "");
  judge_calls(result, order, answer, golden, 0, asked, limits);
  return result.stages.back();
}

constexpr double ulp_of_two = 0x1p-22;

// Two elements a little beyond the user's limit in one call, one element farther beyond it in the other: the judgement
// is that of the call nearest to Delta, the count that of the call which broke the limit most often.
TEST(CallJudgement, AnOwnLimitIsKeptOverAllCalls) {
  Limit exact;
  exact.max_ulp = 0.5;
  const std::vector<double> twice = {2 + ulp_of_two, 3.5, 2 + ulp_of_two, 3.5},
                            once = {2 + 3 * ulp_of_two, 3.5, 2, 3.5};
  for (const auto& calls : {std::vector{twice, once}, std::vector{once, twice}}) {
    const StageResult output = judged(calls, exact);
    ASSERT_TRUE(output.judgement && output.judgement->limit);
    EXPECT_EQ(output.judgement->limit->violations, 2u);
    EXPECT_EQ(output.judgement->max_ulp, 3);
    EXPECT_EQ(output.verdict, Verdict::pass);
  }
}

// A limit that only the first call broke is broken, also where a later call is worse by Delta and within the limit.
TEST(CallJudgement, ALaterCallTakesNoViolationBack) {
  Limit coarse;
  coarse.atol = 2 * ulp_of_two;
  coarse.rtol = 0;
  const std::vector<double> over = {2 + 3 * ulp_of_two, 3.5, 2, 3.5}, within = {2, 3.5, 2, 3.5};
  for (const auto& calls : {std::vector{over, within}, std::vector{within, over}})
    EXPECT_EQ(judged(calls, coarse).judgement->limit->violations, 1u);
}

// Entries of the batch in calls of their own: one came out as in the first call and was not sent again, the other did
// not. What is compared and judged is the whole of them.
TEST(CallJudgement, EntriesThatAreTheSameAreThoseOfTheFirstCall) {
  const GoldenCase golden = plain_golden_case();
  RunOrder order;
  order.request.shape = golden.input.shape;
  order.request.shape.batch = 2;
  order.request.stages = bit(QKCTS_STAGE_OUTPUT);
  order.calls = {
      {}, {Variant::entries_alone, Placement::end_aligned, {0}}, {Variant::entries_alone, Placement::end_aligned, {1}}};
  for (const bool differs : {true, false}) {
    RunAnswer answer;
    answer.executions = {call_with({2, 3.5, 2, 3.5}), call_with({}), call_with({})};
    answer.same_as_first = {false, true, !differs};
    if (differs) answer.executions[2] = call_with({2 + ulp_of_two, 3.5});
    CaseResult result = unrun_case(golden, Verdict::not_run, "");
    judge_calls(result, order, answer, golden, 0, order.request.stages, {});
    const StageResult& output = result.stages.back();
    ASSERT_EQ(output.variants.size(), 1u);
    EXPECT_EQ(output.variants[0].same_bits, !differs);
    EXPECT_EQ(output.spread_ulp.has_value(), differs);
    ASSERT_TRUE(output.judgement.has_value());
    EXPECT_EQ(output.judgement->counts.failed, 0u);
    EXPECT_EQ(output.judgement->max_ulp, differs ? 1 : 0);
  }
}

}  // namespace
}  // namespace qkcts
