// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace qkcts {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(ContractFault, AcceptsEveryShippedContractAndTheZeroContract) {
  EXPECT_EQ(contract_fault(qkcts_contract{}), "");
  for (const std::string& name : shipped_contracts())
    EXPECT_EQ(contract_fault(shipped_contract(name).terms), "") << name;
}

// The C struct may come from anywhere: every field out of its range is named.
TEST(ContractFault, NamesTheField) {
  struct Row {
    const char* expected;
    void (*spoil)(qkcts_contract&);
  };
  const Row rows[] = {
      {"q_norm.applied", [](qkcts_contract& t) { t.q_norm.applied = 2; }},
      {"q_norm.center", [](qkcts_contract& t) { t.q_norm.center = 2; }},
      {"k_norm.statistic", [](qkcts_contract& t) { t.k_norm.statistic = 2; }},
      {"q_norm.root", [](qkcts_contract& t) { t.q_norm.root = 4; }},
      {"q_norm.axis", [](qkcts_contract& t) { t.q_norm.axis = 2; }},
      {"q_norm.variance", [](qkcts_contract& t) { t.q_norm.variance = 2; }},
      {"one_pass_clipped", [](qkcts_contract& t) { t.q_norm.variance = QKCTS_VARIANCE_ONE_PASS_CLIPPED; }},
      {"q_norm.gain ", [](qkcts_contract& t) { t.q_norm.gain = 3; }},
      {"q_norm.gain_axes", [](qkcts_contract& t) { t.q_norm.gain_axes = 6; }},
      {"q_norm.gain_axes", [](qkcts_contract& t) { t.q_norm.gain_axes = QKCTS_AXES_NONE; }},
      {"q_norm.bias_axes", [](qkcts_contract& t) { t.q_norm.bias_axes = 99; }},
      {"q_norm.eps", [](qkcts_contract& t) { t.q_norm.eps = -1; }},
      {"q_norm.eps", [](qkcts_contract& t) { t.q_norm.eps = nan; }},
      {"rope.order", [](qkcts_contract& t) { t.rope.order = 3; }},
      {"rope.pairing", [](qkcts_contract& t) { t.rope.pairing = 2; }},
      {"rope.span", [](qkcts_contract& t) { t.rope.span = 2; }},
      {"rope.rotated", [](qkcts_contract& t) { t.rope.rotated = 3; }},
      {"rope.theta", [](qkcts_contract& t) { t.rope.theta = 1; }},
      {"rope.theta", [](qkcts_contract& t) { t.rope.theta = nan; }},
      {"rope_then_norm needs a norm",
       [](qkcts_contract& t) {
         t.rope.order = QKCTS_ROPE_THEN_NORM;
         t.q_norm.applied = t.k_norm.applied = 0;
       }},
      {"score.scale_form", [](qkcts_contract& t) { t.score.scale_form = 4; }},
      {"score.scale_value",
       [](qkcts_contract& t) {
         t.score.scale_form = QKCTS_SCALE_CONSTANT;
         t.score.scale_value = 0;
       }},
      {"score.temperature", [](qkcts_contract& t) { t.score.temperature = -1; }},
      {"score.softcap", [](qkcts_contract& t) { t.score.softcap = nan; }},
      {"score.bias_order", [](qkcts_contract& t) { t.score.bias_order = 3; }},
      {"mask.alignment", [](qkcts_contract& t) { t.mask.alignment = 4; }},
      {"mask.alignment bottom_right_valid needs",
       [](qkcts_contract& t) { t.mask.alignment = QKCTS_BOTTOM_RIGHT_VALID; }},
      {"mask.causal", [](qkcts_contract& t) { t.mask.causal = 7; }},
      {"mask.empty_row", [](qkcts_contract& t) { t.mask.empty_row = 3; }},
      {"mask.offset",
       [](qkcts_contract& t) {
         t.mask.alignment = QKCTS_OFFSET;
         t.mask.offset = std::numeric_limits<std::int64_t>::min();
       }},
      {"mask.window",
       [](qkcts_contract& t) {
         t.mask.has_window = 1;
         t.mask.window_left = std::numeric_limits<std::int64_t>::max();
       }},
  };
  for (const Row& row : rows) {
    qkcts_contract terms = shipped_contract("qwen3_rmsnorm").terms;
    row.spoil(terms);
    EXPECT_NE(contract_fault(terms).find(row.expected), std::string::npos)
        << row.expected << ": " << contract_fault(terms);
  }
}

}  // namespace
}  // namespace qkcts
