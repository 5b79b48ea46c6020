// SPDX-License-Identifier: Apache-2.0
// The composition: which rows and elements get a budget, which are exact, and how a budget grows term by term.
#include "conformance/budget.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "conformance/budget_terms.hpp"

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Two heads, two queries, three keys, causal; q = k = v = small integers, so that exact stages can be written down.
struct Example {
  Case c;
  ExactStages exact;
  StageRows rows;

  explicit Example(Format format = Format::binary32, qkcts_empty_row empty_row = QKCTS_EMPTY_ZERO) {
    c.contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
    c.contract.terms.score.scale_value = 1;
    c.contract.terms.mask.causal = 1;
    c.contract.terms.mask.alignment = QKCTS_OFFSET;
    c.contract.terms.mask.offset = -1;  // row 0 sees nothing, row 1 sees key 0, row 2 sees keys 0 and 1
    c.contract.terms.mask.empty_row = static_cast<std::uint32_t>(empty_row);
    c.shape = {1, 1, 1, 3, 3, 2, 2};
    c.inputs.format = format;
    fill(Input::q, {1, 2, 1, 1, 2, 1}, 3, 2);
    fill(Input::k, {1, 0, 0, 1, 1, 1}, 3, 2);
    fill(Input::v, {1, 5, 2, 5, -3, 5}, 3, 2);
    const double e = std::exp(1.0);
    exact.values[QKCTS_STAGE_SCORES] = {1, 2, 3, 1, 1, 2, 2, 1, 3};
    exact.values[QKCTS_STAGE_MASKED] = {-infinity, -infinity, -infinity, 1, -infinity, -infinity, 2, 1, -infinity};
    exact.values[QKCTS_STAGE_PROBS] = {0, 0, 0, 1, 0, 0, e / (1 + e), 1 / (1 + e), 0};
    exact.values[QKCTS_STAGE_LSE] = {-infinity, 1, 1 + std::log(1 + e)};
    exact.values[QKCTS_STAGE_OUTPUT] = {0, 0, 1, 5, (e + 2) / (1 + e), 5};
    if (empty_row == QKCTS_EMPTY_UNIFORM) {
      for (std::size_t i = 0; i < 3; ++i) exact.values[QKCTS_STAGE_PROBS][i] = 1.0 / 3;
      exact.values[QKCTS_STAGE_OUTPUT][0] = 0;
      exact.values[QKCTS_STAGE_OUTPUT][1] = 5;
    }
    for (const qkcts_stage stage : all_stages) {
      if ((stages_of(c.contract.terms) & bit(stage)) != 0) rows[stage] = {0, 1, 2};
    }
  }

  void fill(Input input, const std::vector<double>& values, std::int64_t length, std::int64_t width) {
    Tensor tensor = Tensor::zeros(element_type(c.inputs.format), {1, 1, length, width});
    for (std::size_t i = 0; i < values.size(); ++i) tensor.set_pattern(i, encode(c.inputs.format, values[i]));
    c.inputs.set(input, tensor);
  }
};

TEST(Budget, ExactClausesHaveNone) {
  const Example example;
  const auto budgets = stage_budgets(example.c, example.exact, example.rows, Profile{});
  const StageBudget& probs = budgets[QKCTS_STAGE_PROBS];
  ASSERT_EQ(probs.delta.size(), 9u);
  const std::set<std::size_t> visible = {3, 6, 7};
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(probs.delta[i] > 0, visible.count(i) == 1) << i;
    EXPECT_EQ(probs.trust[i], Trust::judged);
    EXPECT_EQ(budgets[QKCTS_STAGE_MASKED].delta[i] > 0, visible.count(i) == 1) << i;
  }
  EXPECT_EQ(budgets[QKCTS_STAGE_LSE].delta[0], 0);
  EXPECT_GT(budgets[QKCTS_STAGE_LSE].delta[1], 0);
  EXPECT_EQ(budgets[QKCTS_STAGE_OUTPUT].delta[0], 0);
  EXPECT_GT(budgets[QKCTS_STAGE_OUTPUT].delta[2], 0);
}

TEST(Budget, UniformEmptyRowsAreJudged) {
  const Example example(Format::binary32, QKCTS_EMPTY_UNIFORM);
  const auto budgets = stage_budgets(example.c, example.exact, example.rows, Profile{});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GT(budgets[QKCTS_STAGE_PROBS].delta[i], 0);
    EXPECT_LT(budgets[QKCTS_STAGE_PROBS].delta[i], 1e-5);
  }
  EXPECT_GT(budgets[QKCTS_STAGE_OUTPUT].delta[1], 0);
  EXPECT_EQ(budgets[QKCTS_STAGE_LSE].delta[0], 0);
}

// A budget does not depend on which other rows are asked for.
TEST(Budget, RowsMayBeChosenFreely) {
  const Example example;
  const auto all = stage_budgets(example.c, example.exact, example.rows, Profile{});
  StageRows some;
  some[QKCTS_STAGE_SCORES] = {1};
  some[QKCTS_STAGE_OUTPUT] = {2};
  const auto part = stage_budgets(example.c, example.exact, some, Profile{});
  ASSERT_EQ(part[QKCTS_STAGE_SCORES].delta.size(), 3u);
  ASSERT_EQ(part[QKCTS_STAGE_OUTPUT].delta.size(), 2u);
  EXPECT_TRUE(part[QKCTS_STAGE_PROBS].delta.empty());
  EXPECT_EQ(part[QKCTS_STAGE_SCORES].delta[0], all[QKCTS_STAGE_SCORES].delta[3]);
  EXPECT_EQ(part[QKCTS_STAGE_OUTPUT].delta[1], all[QKCTS_STAGE_OUTPUT].delta[5]);
}

TEST(Budget, GrowsTermByTermFromNothing) {
  const Example example(Format::bfloat16);
  Profile profile;
  profile.storage = Format::bfloat16;
  profile.probability_storage = Format::bfloat16;
  const auto none = stage_budgets(example.c, example.exact, example.rows, profile, 0);
  const auto full = stage_budgets(example.c, example.exact, example.rows, profile);
  TermSet on = 0;
  std::vector<float> last(6, 0.0f);
  for (const BudgetTerm term : budget_terms()) {
    on |= TermSet{1} << static_cast<unsigned>(term);
    const std::vector<float> now =
        stage_budgets(example.c, example.exact, example.rows, profile, on)[QKCTS_STAGE_OUTPUT].delta;
    for (std::size_t i = 0; i < now.size(); ++i) EXPECT_GE(now[i], last[i]) << budget_term_id(term);
    last = now;
  }
  EXPECT_EQ(last, full[QKCTS_STAGE_OUTPUT].delta);
  for (const float d : none[QKCTS_STAGE_LSE].delta) EXPECT_EQ(d, 0);
  EXPECT_LT(none[QKCTS_STAGE_OUTPUT].delta[4], 1e-13);
}

// bfloat16 storage is a sum of terms, never the larger of two.
TEST(Budget, StorageAddsToArithmetic) {
  const Example narrow(Format::bfloat16);
  const Example wide;
  Profile profile;
  const auto with = stage_budgets(narrow.c, narrow.exact, narrow.rows, profile)[QKCTS_STAGE_OUTPUT].delta[4];
  const auto without = stage_budgets(wide.c, wide.exact, wide.rows, profile)[QKCTS_STAGE_OUTPUT].delta[4];
  const double z = narrow.exact.values[QKCTS_STAGE_OUTPUT][4];
  EXPECT_GT(static_cast<double>(with), 0x1p-8 * z + 0.9 * (static_cast<double>(without) - 0x1p-24 * z));
}

TEST(Budget, MistrustsWhatItCannotTell) {
  Example example;
  example.fill(Input::q, {1, 2, 1, 1, 0x1p25, 0x1p25 + 4}, 3, 2);  // scores of size 2^25: the difference is lost
  example.fill(Input::k, {1, 0, 0, 1, 1, 1}, 3, 2);
  example.exact.values[QKCTS_STAGE_SCORES] = {1, 2, 3, 1, 1, 2, 0x1p25, 0x1p25 + 4, 0x1p26};
  const double e = std::exp(4.0);
  example.exact.values[QKCTS_STAGE_PROBS] = {0, 0, 0, 1, 0, 0, 1 / (1 + e), e / (1 + e), 0};
  example.exact.values[QKCTS_STAGE_LSE][2] = 0x1p25 + 4 + std::log1p(1 / e);
  example.exact.values[QKCTS_STAGE_OUTPUT][4] = (1 + 2 * e) / (1 + e);
  const auto budgets = stage_budgets(example.c, example.exact, example.rows, Profile{});
  EXPECT_EQ(budgets[QKCTS_STAGE_PROBS].trust[6], Trust::mistrusted);
  EXPECT_EQ(budgets[QKCTS_STAGE_OUTPUT].trust[4], Trust::mistrusted);
  // All values are 5, but parts merged through log-sum-exps of that size have weights that sum to anything.
  EXPECT_EQ(budgets[QKCTS_STAGE_OUTPUT].trust[5], Trust::mistrusted);
  EXPECT_EQ(budgets[QKCTS_STAGE_OUTPUT].trust[2], Trust::judged);  // another row
  EXPECT_TRUE(std::isfinite(budgets[QKCTS_STAGE_OUTPUT].delta[4]));
}

TEST(Budget, DomainIsNotJudged) {
  Example example;
  example.fill(Input::q, {1, 2, 1, 1, 2e38, 2e38}, 3, 2);
  example.fill(Input::k, {1, 1, 1, 1, 1, 1}, 3, 2);
  example.exact.values[QKCTS_STAGE_SCORES] = {3, 3, 3, 2, 2, 2, 4e38, 4e38, 4e38};
  example.exact.values[QKCTS_STAGE_PROBS] = {0, 0, 0, 1, 0, 0, 0.5, 0.5, 0};
  const auto budgets = stage_budgets(example.c, example.exact, example.rows, Profile{});
  EXPECT_EQ(budgets[QKCTS_STAGE_SCORES].trust[6], Trust::domain);
  EXPECT_EQ(budgets[QKCTS_STAGE_PROBS].trust[6], Trust::domain);
  EXPECT_EQ(budgets[QKCTS_STAGE_LSE].trust[2], Trust::domain);
  EXPECT_EQ(budgets[QKCTS_STAGE_OUTPUT].trust[5], Trust::domain);
  EXPECT_EQ(budgets[QKCTS_STAGE_OUTPUT].trust[3], Trust::judged);
  EXPECT_TRUE(std::isinf(budgets[QKCTS_STAGE_OUTPUT].delta[5]));
}

}  // namespace
}  // namespace qkcts
