// SPDX-License-Identifier: Apache-2.0
#include "vectors/corpus_diff.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "vectors/sample_golden.hpp"

namespace qkcts {
namespace {

GoldenCase sample() {
  return sample_golden("qwen3_rmsnorm", "gaussian", Format::bfloat16, "2,2,1,3,4,8,6");
}

std::vector<CaseDifference> after(const std::function<void(GoldenCase&)>& change) {
  const GoldenCase before = sample();
  GoldenCase changed = before;
  change(changed);
  return case_differences(before, changed);
}

// The only difference.
CaseDifference single(const std::function<void(GoldenCase&)>& change) {
  const std::vector<CaseDifference> found = after(change);
  EXPECT_EQ(found.size(), 1U);
  return found.empty() ? CaseDifference{} : found[0];
}

GoldenStage& probs(GoldenCase& golden) {
  return golden.stages[QKCTS_STAGE_PROBS];
}

TEST(CorpusDiff, SaysByHowManyUlpAnExpectedValueMoved) {
  const CaseDifference d = single([](GoldenCase& c) {
    probs(c).values.expected[2] += 3;
    probs(c).values.expected[5] -= 1;
  });
  EXPECT_EQ(d.aspect, "expected");
  EXPECT_EQ(d.place, "probs");
  EXPECT_EQ(d.elements, 2U);
  EXPECT_EQ(d.least, 1);
  EXPECT_EQ(d.most, 3);
  EXPECT_EQ(d.text, "2 elements, at most 3 ulp");
}

TEST(CorpusDiff, CountsUlpAcrossZeroAndSaysWhereThereAreNone) {
  const GoldenCase golden = sample();
  GoldenCase plus = golden, minus = golden, infinite = golden;
  plus.stages[QKCTS_STAGE_OUTPUT].values.expected[0] = 2;
  minus.stages[QKCTS_STAGE_OUTPUT].values.expected[0] = 0x8003;
  infinite.stages[QKCTS_STAGE_OUTPUT].values.expected[0] = 0x7f80;
  EXPECT_EQ(case_differences(plus, minus)[0].most, 5);
  EXPECT_TRUE(std::isinf(case_differences(plus, infinite)[0].most));
  EXPECT_EQ(case_differences(plus, infinite)[0].text, "1 element, of another class");
}

TEST(CorpusDiff, SaysByWhichFactorABudgetChanged) {
  const CaseDifference d = single([](GoldenCase& c) {
    // Behind a mask a budget is 0.
    std::vector<float>& deltas = probs(c).budgets[0].delta;
    std::vector<float*> some;
    for (float& delta : deltas)
      if (delta > 0) some.push_back(&delta);
    *some[0] *= 2;
    *some[1] *= 0.5F;
  });
  EXPECT_EQ(d.aspect, "budget");
  EXPECT_EQ(d.place, "probs bf16_f32acc");
  EXPECT_EQ(d.least, 0.5);
  EXPECT_EQ(d.most, 2);
  EXPECT_EQ(d.text, "2 elements, times 0.5 to 2");
}

TEST(CorpusDiff, FindsEveryOtherAspect) {
  EXPECT_EQ(single([](GoldenCase& c) { probs(c).values.lo[0] += 128; }).text, "1 element, at most 0.5 ulp64");
  EXPECT_EQ(single([](GoldenCase& c) { probs(c).values.rule[0] = ElementRule::budget_exact; }).aspect, "rule");
  EXPECT_EQ(single([](GoldenCase& c) { probs(c).budgets[0].trust[0] = Trust::domain; }).aspect, "trust");
  EXPECT_EQ(single([](GoldenCase& c) { c.input.inputs.tensors[0]->bytes[0] ^= std::byte{1}; }).aspect, "inputs");
  EXPECT_EQ(single([](GoldenCase& c) { c.seed += 1; }).place, "seed");
  EXPECT_EQ(single([](GoldenCase& c) { c.description = "other"; }).aspect, "description");
  EXPECT_EQ(single([](GoldenCase& c) { c.entropy.median += 1; }).aspect, "statistics");
  EXPECT_EQ(after([](GoldenCase& c) { c.profiles[0] = "renamed"; }).size(), 2U);  // one gone, one new
  const CaseDifference contract = single([](GoldenCase& c) { c.input.contract.terms.q_norm.eps = 0.5; });
  EXPECT_EQ(contract.aspect, "contract");
  EXPECT_EQ(contract.place, "q_norm.eps");
  EXPECT_NE(contract.text.find("now 0.5"), std::string::npos);
  EXPECT_EQ(single([](GoldenCase&) {}).aspect, "digest");  // nothing: only the digests disagreed
}

TEST(CorpusDiff, ListsWhatAppearedVanishedAndChanged) {
  const TemporaryFolder folder;
  GoldenCase a = sample(), b = sample(), c = sample();
  a.input.slug = "a";
  b.input.slug = "b";
  c.input.slug = "c";
  GoldenCase changed = b;
  probs(changed).budgets[0].delta[1] *= 2;
  const CorpusReader before(write_corpus(folder, "old.h5", {a, b}));
  const CorpusReader now(write_corpus(folder, "new.h5", {changed, c}));
  const CorpusDifference d = corpus_difference(before, now);
  EXPECT_FALSE(d.none());
  EXPECT_EQ(d.appeared, std::vector<std::string>{"c"});
  EXPECT_EQ(d.vanished, std::vector<std::string>{"a"});
  ASSERT_EQ(d.changed.size(), 1U);
  EXPECT_EQ(d.changed[0].slug, "b");
  EXPECT_EQ(d.changed[0].differences[0].aspect, "budget");
  EXPECT_EQ(d.equal, 0U);
  EXPECT_TRUE(d.head.empty());  // the same contract
  GoldenCase other = sample_golden("plain_sdpa", "gaussian", Format::binary32, "1,2,1,3,4,8,6");
  const CorpusReader more(write_corpus(folder, "more.h5", {a, b, other}));
  EXPECT_EQ(corpus_difference(before, more).head, std::vector<std::string>{"contract plain_sdpa is new"});
  const CorpusDifference same = corpus_difference(before, before);
  EXPECT_TRUE(same.none());
  EXPECT_EQ(same.equal, 2U);
}

}  // namespace
}  // namespace qkcts
