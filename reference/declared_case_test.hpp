// SPDX-License-Identifier: Apache-2.0
// Cases of one query for the tests of rounding points, and what their reference says of one element.
#pragma once

#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "reference/attention.hpp"
#include "reference/sample_case.hpp"

namespace qkcts::declared {

using Change = std::function<void(qkcts_contract&)>;

// One query and one head; nothing but a constant scale, until `change` says otherwise.
inline Case small_case(Format format, std::int64_t keys, std::int64_t width, const Change& change) {
  Contract contract = shipped_contract("plain_sdpa");
  contract.name = "declared";
  contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
  contract.terms.score.scale_value = 1;
  change(contract.terms);
  SampleSpec spec;
  spec.format = format;
  spec.shape = {1, 1, 1, 1, keys, width, 1};
  return sample_case(contract, spec);
}

inline void set(Case& c, Input input, const std::vector<double>& values) {
  set_values(c, input, values);
}

inline void l2(qkcts_norm& norm) {
  norm.applied = 1;
  norm.statistic = QKCTS_SUM_SQUARE;
}

inline ReferenceResult evaluated(const Case& c) {
  return evaluate(c, every_row(c));
}

struct Element {
  double stored;  // decoded `expected`
  double hi;
  double before;
  ElementRule rule;
};

inline Element element(const Case& c, const ReferenceResult& result, qkcts_stage stage, std::size_t i = 0) {
  const ProvenStage& proven = result.stages[stage];
  EXPECT_EQ(result.exact.values[stage][i], proven.hi[i]);
  EXPECT_EQ(proven.lo[i], 0);
  return {decode(stage_format(stage, c.inputs.format), proven.expected[i]), proven.hi[i],
          result.exact.before[stage].at(i), proven.rule[i]};
}

inline void expect_rounded(const Case& c, qkcts_stage stage, double before, double after, std::size_t i = 0) {
  const Element found = element(c, evaluated(c), stage, i);
  EXPECT_EQ(found.hi, after) << stage_name(stage);
  EXPECT_EQ(found.stored, after);
  EXPECT_EQ(found.before, before);
  EXPECT_EQ(found.rule, ElementRule::budget_exact);
}

constexpr double low_tie = 1 + 0x1p-8;       // of bfloat16: between 1 and 1 + 2^-7, and 1 is even
constexpr double high_tie = 1 + 3 * 0x1p-8;  // between 1 + 2^-7 and 1 + 2^-6, which is even

}  // namespace qkcts::declared
