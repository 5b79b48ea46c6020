// SPDX-License-Identifier: Apache-2.0
#include "harness/limits.hpp"

#include <gtest/gtest.h>

namespace qkcts {
namespace {

std::string fault(const std::string& rules) {
  try {
    limits_from_json(R"({"schema": "qkcts-limits/1", "limits": )" + rules + "}", "mine.json");
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(Limits, FirstMatchingRuleHolds) {
  const LimitTable table = limits_from_json(
      R"({"schema": "qkcts-limits/1", "limits": [
          {"stage": "output", "format": "bfloat16", "max_ulp": 1},
          {"stage": "output", "atol": 1e-5, "rtol": 1e-3},
          {"stage": "*", "format": "binary32", "max_error_over_delta": 0.5}]})",
      "mine.json");
  EXPECT_EQ(table.find(QKCTS_STAGE_OUTPUT, Format::bfloat16)->max_ulp, 1.0);
  EXPECT_EQ(table.find(QKCTS_STAGE_OUTPUT, Format::binary32)->rtol, 1e-3);
  EXPECT_EQ(table.find(QKCTS_STAGE_OUTPUT, Format::binary32)->max_ulp, std::nullopt);
  EXPECT_EQ(table.find(QKCTS_STAGE_PROBS, Format::binary32)->max_ratio, 0.5);
  EXPECT_FALSE(table.find(QKCTS_STAGE_PROBS, Format::bfloat16).has_value());
}

TEST(Limits, FaultsNameTheirPlace) {
  EXPECT_EQ(fault(R"([{"stage": "output", "max_ulp": 1}])"), "");
  EXPECT_NE(fault(R"([{"stage": "result", "max_ulp": 1}])").find("mine.json"), std::string::npos);
  EXPECT_NE(fault(R"([{"stage": "output"}])"), "");
  EXPECT_NE(fault(R"([{"stage": "output", "max_ulp": -1}])"), "");
  EXPECT_NE(fault(R"([{"stage": "output", "max_ulps": 1}])"), "");
  EXPECT_NE(fault("[]"), "");
}

}  // namespace
}  // namespace qkcts
