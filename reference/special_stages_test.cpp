// SPDX-License-Identifier: Apache-2.0
#include "reference/special_stages.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/attention.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Row {
  const char* contract;
  Input input;
  double value;
};

Case with(const Row& row, double value) {
  SampleSpec spec;
  spec.seed = 5;
  spec.shape = {2, 4, 2, 3, 5, 32, 8};
  Case c = sample_case(shipped_contract(row.contract), spec);
  c.inputs.tensors[static_cast<std::size_t>(row.input)]->set_pattern(1, encode(c.inputs.format, value));
  return c;
}

constexpr Row rows[] = {
    {"plain_sdpa", Input::q, infinity},
    {"plain_sdpa", Input::k, -infinity},
    {"plain_sdpa", Input::v, not_a_number},
    {"qwen3_rmsnorm", Input::q, not_a_number},
    {"qwen3_rmsnorm", Input::k, infinity},
    {"olmo2_full_width", Input::q, infinity},
    {"flax_qk_layernorm", Input::k, infinity},
    {"rmsnorm_softcap", Input::k, not_a_number},
    {"clause_projection", Input::q_x, infinity},
    {"clause_v_norm", Input::v, not_a_number},
    {"qwen3_rmsnorm", Input::q_gain, infinity},
    {"clause_sink_column", Input::v, infinity},
    {"clause_round_eager", Input::q, not_a_number},
};

// What is not reached has the bits and the budget that it has beside another number.
TEST(SpecialStages, LeaveEverythingElseAsItWas) {
  for (const Row& row : rows) {
    const Case special = with(row, row.value), plain = with(row, 0.75);
    ASSERT_EQ(case_fault(special), "") << row.contract;
    const SpecialValues classes(special);
    const StageRows every = every_row(special);
    const ReferenceResult found = evaluate(special, every), expected = evaluate(plain, every);
    const Profile profile = shipped_profile("f32");
    const auto budgets = stage_budgets(special, found.exact, every, profile);
    const auto expected_budgets = stage_budgets(plain, expected.exact, every, profile);
    std::size_t same = 0, reached = 0;
    for (const qkcts_stage stage : all_stages) {
      const ProvenStage &a = found.stages[stage], &b = expected.stages[stage];
      const std::int64_t length = row_length(stage, special.shape);
      for (std::size_t i = 0; i < a.hi.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const Outcomes outcomes = classes.at(stage, at / length, at % length);
        if (!is_number(outcomes)) {
          ++reached;
          EXPECT_TRUE(a.rule[i] >= ElementRule::hidden) << row.contract << " " << stage_name(stage) << " " << i;
          EXPECT_FALSE(std::isfinite(a.hi[i]));
          EXPECT_EQ(a.rule[i] == ElementRule::free, budgets[stage].trust[i] == Trust::domain);
          continue;
        }
        if (a.rule[i] == ElementRule::hidden) continue;  // a hidden score of the number itself
        ++same;
        EXPECT_EQ(a.expected[i], b.expected[i]) << row.contract << " " << stage_name(stage) << " " << i;
        EXPECT_EQ(a.hi[i], b.hi[i]) << row.contract;
        EXPECT_EQ(a.lo[i], b.lo[i]);
        EXPECT_EQ(a.rule[i], b.rule[i]);
        EXPECT_EQ(budgets[stage].delta[i], expected_budgets[stage].delta[i]) << row.contract << stage_name(stage) << i;
      }
    }
    EXPECT_GT(reached, 0u) << row.contract;
    EXPECT_GT(same, row.input == Input::q_gain ? 0u : 100u) << row.contract;
  }
}

TEST(SpecialStages, DoNotDependOnTheTier) {
  const Case c = with({"qwen3_rmsnorm", Input::k, infinity}, infinity);
  const StageRows every = every_row(c);
  const ReferenceResult fast = evaluate(c, every), slow = evaluate(c, every, Tier::mpfr);
  for (const qkcts_stage stage : all_stages) {
    EXPECT_EQ(fast.stages[stage].expected, slow.stages[stage].expected) << stage_name(stage);
    EXPECT_EQ(fast.stages[stage].rule, slow.stages[stage].rule) << stage_name(stage);
  }
}

TEST(SpecialStages, StatisticsLeaveOutRowsThatAreReached) {
  const Case c = with({"plain_sdpa", Input::q, not_a_number}, not_a_number);
  const ReferenceResult found = evaluate(c, every_row(c));
  EXPECT_TRUE(std::isnan(found.statistics.entropy[0]));
  EXPECT_FALSE(std::isnan(found.statistics.entropy[1]));
}

}  // namespace
}  // namespace qkcts
