// SPDX-License-Identifier: Apache-2.0
#include "vectors/work_order.hpp"

#include <gtest/gtest.h>

#include "conformance/contract.hpp"
#include "vectors/estimate.hpp"

namespace qkcts {
namespace {

PlannedCase with_cache(std::int64_t keys) {
  PlannedCase planned;
  planned.contract = shipped_contract("qwen3_rmsnorm");
  planned.shape = {1, 4, 2, 1, keys, 64, 48};
  planned.format = Format::binary32;
  planned.family = "gaussian";
  planned.rows = 2;
  return planned;
}

Plan plan_of(std::initializer_list<std::int64_t> caches) {
  Plan plan;
  for (const std::int64_t keys : caches) plan.cases.push_back(with_cache(keys));
  return plan;
}

TEST(WorkOrder, IsThatOfThePlanWhereAllFits) {
  const Plan plan = plan_of({8, 9, 10});
  WorkOrder order(plan);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(order.all_started());
    EXPECT_EQ(order.start(), i);
  }
  EXPECT_TRUE(order.all_started());
  EXPECT_FALSE(order.start());
}

TEST(WorkOrder, TwoLongCachesAreNotInWorkTogether) {
  const Plan plan = plan_of({24576, 24576, 16, 17});
  WorkOrder order(plan);
  EXPECT_EQ(order.start(), 0U);
  EXPECT_EQ(order.start(), 2U);  // passes the second
  EXPECT_EQ(order.start(), 3U);
  EXPECT_FALSE(order.start());
  EXPECT_FALSE(order.all_started());
  order.finish(3);
  EXPECT_FALSE(order.start());
  order.finish(0);
  EXPECT_EQ(order.start(), 1U);
  EXPECT_TRUE(order.all_started());
}

TEST(WorkOrder, WhatIsLargerThanAllRoomIsInWorkAlone) {
  const Plan plan = plan_of({16, 32768, 16, 16});
  WorkOrder order(plan);
  EXPECT_EQ(order.start(), 0U);
  EXPECT_EQ(order.start(), 2U);
  order.finish(0);
  order.finish(2);
  EXPECT_EQ(order.start(), 1U);
  EXPECT_FALSE(order.start());  // nothing beside it
  EXPECT_FALSE(order.all_started());
  order.finish(1);
  EXPECT_EQ(order.start(), 3U);
}

// However many are finished while the first is in work, a bounded number waits.
TEST(WorkOrder, OutcomesThatWaitAreLimited) {
  Plan plan;
  double waiting = 0;
  for (int i = 0; i < 3000; ++i) {
    plan.cases.push_back(with_cache(256));
    waiting += estimated_bytes(plan.cases.back());
  }
  ASSERT_GT(waiting, 512e6);
  WorkOrder order(plan);
  EXPECT_EQ(order.start(), 0U);
  std::size_t ahead = 0;
  while (const std::optional<std::size_t> index = order.start()) {
    order.finish(*index);
    ++ahead;
  }
  EXPECT_GT(ahead, 10U);
  EXPECT_LT(static_cast<double>(ahead) * estimated_bytes(plan.cases.back()), 128e6);
  order.finish(0);
  order.take(0);
  EXPECT_TRUE(order.start());
}

}  // namespace
}  // namespace qkcts
