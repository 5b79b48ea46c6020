// SPDX-License-Identifier: Apache-2.0
#include "vectors/generate_shard.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "vectors/generate.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts {
namespace {

Plan plan_of_lengths(const std::vector<int>& lengths) {
  Plan plan;
  plan.suite = "test";
  plan.seed = 7;
  for (const int length : lengths)
    plan.cases.push_back(
        sample_plan("plain_sdpa", "gaussian", Format::binary32, "1,2,1," + std::to_string(length) + ",9,8,6"));
  return plan;
}

TEST(Shard, IsReadFromItsText) {
  const Shard shard = shard_from_text("2/4");
  EXPECT_EQ(shard.index, 2U);
  EXPECT_EQ(shard.count, 4U);
  EXPECT_EQ(shard_text(shard), "2/4");
  EXPECT_EQ(shard_from_text("512/512").index, 512U);
  for (const char* text : {"", "2", "2/", "/4", "0/4", "5/4", "1/513", "1/0", "-1/4", "1/4 ", "1/4/2", "a/b", "1,4"})
    EXPECT_THROW(shard_from_text(text), InputError) << text;
}

TEST(Shard, EveryCaseIsInExactlyOneInTheOrderOfThePlan) {
  const Plan plan = plan_of_lengths({3, 50, 4, 20, 5, 6, 7, 33, 8, 9, 10});
  for (std::uint32_t count = 1; count <= 13; ++count) {
    std::map<std::string, int> seen;
    for (std::uint32_t index = 1; index <= count; ++index) {
      const Plan cut = cut_plan(plan, {index, count});
      EXPECT_EQ(cut.suite, plan.suite);
      EXPECT_EQ(cut.seed, plan.seed);
      auto at = plan.cases.begin();
      for (const PlannedCase& planned : cut.cases) {
        ++seen[planned.slug];
        at = std::find_if(at, plan.cases.end(), [&](const PlannedCase& p) { return p.slug == planned.slug; });
        ASSERT_NE(at, plan.cases.end()) << "out of order: " << planned.slug;
      }
    }
    EXPECT_EQ(seen.size(), plan.cases.size()) << count;
    for (const auto& [slug, times] : seen) EXPECT_EQ(times, 1) << slug;
  }
}

// Round robin would put both long cases of this plan into one shard.
TEST(Shard, LongCasesAreSpreadOverTheShards) {
  const Plan plan = plan_of_lengths({2000, 3, 2001, 4, 5, 6});
  std::vector<double> load;
  for (std::uint32_t index = 1; index <= 2; ++index) {
    load.push_back(0);
    for (const PlannedCase& planned : cut_plan(plan, {index, 2}).cases) load.back() += estimated_seconds(planned);
  }
  EXPECT_LT(std::max(load[0], load[1]), 1.1 * std::min(load[0], load[1]));
}

TEST(Shard, CasesThatBelongTogetherShareOne) {
  Plan plan = plan_of_lengths({3, 4, 5, 6, 7, 8, 9, 10});
  const auto homes = [&plan](std::uint32_t count) {
    std::set<std::uint32_t> found;
    for (std::uint32_t index = 1; index <= count; ++index)
      for (const PlannedCase& planned : cut_plan(plan, {index, count}).cases)
        if (planned.slug == plan.cases[0].slug || planned.slug == plan.cases[1].slug) found.insert(index);
    return found.size();
  };
  EXPECT_EQ(homes(4), 2U);
  plan.cases[0].together = plan.cases[1].together = "pair";
  for (std::uint32_t count = 1; count <= 8; ++count) EXPECT_EQ(homes(count), 1U) << count;
}

TEST(Shard, DigestOfAPlanSeesWhatItsCasesDependOn) {
  const Plan plan = plan_of_lengths({3, 4});
  std::set<std::string> digests = {plan_digest(plan)};
  EXPECT_EQ(plan_digest(plan_of_lengths({3, 4})), *digests.begin());
  const auto is_new = [&](const auto& change) {
    Plan changed = plan;
    change(changed);
    return digests.insert(plan_digest(changed)).second;
  };
  EXPECT_TRUE(is_new([](Plan& p) { p.suite = "other"; }));
  EXPECT_TRUE(is_new([](Plan& p) { p.seed = 8; }));
  EXPECT_TRUE(is_new([](Plan& p) { p.cases.pop_back(); }));
  EXPECT_TRUE(is_new([](Plan& p) { std::swap(p.cases[0], p.cases[1]); }));
  EXPECT_TRUE(is_new([](Plan& p) { p.cases[1].seed += 1; }));
  EXPECT_TRUE(is_new([](Plan& p) { p.cases[1].rows = 2; }));
  EXPECT_TRUE(is_new([](Plan& p) { p.cases[1].family = "tied"; }));
  EXPECT_TRUE(is_new([](Plan& p) { p.cases[1].shape.q_len = 5; }));
  EXPECT_TRUE(is_new([](Plan& p) { p.cases[1].format = Format::bfloat16; }));
  EXPECT_TRUE(is_new([](Plan& p) { p.cases[1].profiles = {"f32"}; }));
  EXPECT_TRUE(is_new([](Plan& p) { p.cases[1].own_profiles = {{"f32", "text"}}; }));
  EXPECT_TRUE(is_new([](Plan& p) { p.cases[1].contract = shipped_contract("gemma2_softcap"); }));
  EXPECT_TRUE(is_new([](Plan& p) { p.cases[1].contract.title = "another"; }));
}

}  // namespace
}  // namespace qkcts
