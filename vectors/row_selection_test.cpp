// SPDX-License-Identifier: Apache-2.0
#include "vectors/row_selection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "conformance/contract.hpp"

namespace qkcts {
namespace {

constexpr qkcts_shape shape{2, 4, 2, 300, 260, 16, 8};

TEST(RowSelection, StoresEveryRowOfOutputAndLse) {
  const StageRows rows = select_rows(shipped_contract("qwen3_rmsnorm").terms, shape, 12, 3);
  for (const qkcts_stage stage : {QKCTS_STAGE_OUTPUT, QKCTS_STAGE_LSE}) {
    ASSERT_EQ(rows[stage].size(), 2400U);
    EXPECT_EQ(rows[stage].front(), 0U);
    EXPECT_EQ(rows[stage].back(), 2399U);
  }
}

TEST(RowSelection, TakesEndsAndTileEdgesAndKeepsTheLimit) {
  const StageRows rows = select_rows(shipped_contract("qwen3_rmsnorm").terms, shape, 14, 3);
  const std::vector<std::uint32_t>& scores = rows[QKCTS_STAGE_SCORES];
  ASSERT_EQ(scores.size(), 14U);
  EXPECT_TRUE(std::is_sorted(scores.begin(), scores.end()));
  EXPECT_EQ(scores.front(), 0U);
  EXPECT_EQ(scores.back(), 2399U);
  std::set<std::uint32_t> tokens;
  for (const std::uint32_t row : scores) tokens.insert(row % 300);
  for (const std::uint32_t edge : {127U, 128U, 255U, 256U, 63U, 64U, 15U, 16U, 31U, 32U})
    EXPECT_EQ(tokens.count(edge), 1U) << edge;
  const std::vector<std::uint32_t>& keys = rows[QKCTS_STAGE_K_NORM];
  EXPECT_EQ(keys.size(), 14U);
  EXPECT_EQ(keys.back(), 2U * 2 * 260 - 1);
}

TEST(RowSelection, LimitZeroOrLargeMeansAllAndAbsentStagesStayEmpty) {
  const qkcts_contract terms = shipped_contract("plain_sdpa").terms;
  EXPECT_EQ(select_rows(terms, shape, 0, 3)[QKCTS_STAGE_PROBS].size(), 2400U);
  EXPECT_EQ(select_rows(terms, shape, 5000, 3)[QKCTS_STAGE_PROBS].size(), 2400U);
  EXPECT_TRUE(select_rows(terms, shape, 0, 3)[QKCTS_STAGE_Q_NORM].empty());
}

TEST(RowSelection, SelectsOfTheStagesOfKeysAndValuesRowsOfKeys) {
  for (const auto& [contract, stage] :
       {std::pair{"clause_projection", QKCTS_STAGE_K_PROJ}, {"clause_v_norm", QKCTS_STAGE_V_NORM}}) {
    const std::vector<std::uint32_t> rows = select_rows(shipped_contract(contract).terms, shape, 14, 3)[stage];
    ASSERT_EQ(rows.size(), 14U) << contract;
    EXPECT_EQ(rows.back(), 2U * 2 * 260 - 1) << contract;
  }
  EXPECT_EQ(select_rows(shipped_contract("clause_projection").terms, shape, 14, 3)[QKCTS_STAGE_Q_PROJ].back(), 2399U);
}

TEST(RowSelection, DependsOnTheSeedOnlyWhereItDraws) {
  const qkcts_contract terms = shipped_contract("plain_sdpa").terms;
  EXPECT_EQ(select_rows(terms, shape, 40, 3), select_rows(terms, shape, 40, 3));
  EXPECT_NE(select_rows(terms, shape, 40, 3), select_rows(terms, shape, 40, 4));
  EXPECT_EQ(select_rows(terms, shape, 1, 3)[QKCTS_STAGE_SCORES].size(), 1U);
}

}  // namespace
}  // namespace qkcts
