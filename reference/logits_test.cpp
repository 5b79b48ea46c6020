// SPDX-License-Identifier: Apache-2.0
// Learned scales, temperature by position, linear bias: values known in closed form, and values on a boundary.
#include "reference/score.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "reference/attention.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

// Heads of one lane: <q, k> = 1 for every head, query and key.
Case unit_case(void (*change)(qkcts_contract&), qkcts_shape shape = {1, 2, 1, 3, 4, 1, 1}) {
  Contract contract = shipped_contract("plain_sdpa");
  contract.name = "logits";
  contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
  contract.terms.score.scale_value = 1;
  change(contract.terms);
  SampleSpec spec;
  spec.format = Format::binary64;
  spec.shape = shape;
  Case c = sample_case(contract, spec);
  for (const Input input : {Input::q, Input::k})
    set_values(c, input, std::vector<double>(c.inputs.at(input).count(), 1.0));
  return c;
}

std::vector<double> stage_of(const Case& c, qkcts_stage stage) {
  return evaluate(c, every_row(c)).stages[stage].hi;
}

TEST(Logits, ScalePerHead) {
  Case c = unit_case([](qkcts_contract& terms) {
    terms.score.scale_form = QKCTS_SCALE_LEARNED_SCALAR;
    terms.logits.scale_axes = QKCTS_SCALE_PER_HEAD;
  });
  set_values(c, Input::scale, std::vector<double>{0.75, -3});
  const std::vector<double> scores = stage_of(c, QKCTS_STAGE_SCORES);
  for (std::size_t i = 0; i < scores.size(); ++i) EXPECT_EQ(scores[i], i < 12 ? 0.75 : -3.0);
}

TEST(Logits, ScaleIsAClampedExponential) {
  Case c = unit_case([](qkcts_contract& terms) {
    terms.score.scale_form = QKCTS_SCALE_LEARNED_SCALAR;
    terms.logits.scale_axes = QKCTS_SCALE_PER_HEAD;
    terms.logits.scale_exp_cap = 1.5;
  });
  const auto scores = [&](double t0, double t1) {
    set_values(c, Input::scale, std::vector<double>{t0, t1});
    return stage_of(c, QKCTS_STAGE_SCORES);
  };
  const double cap = std::exp(1.5);
  EXPECT_NEAR(scores(1, 1.5)[0], std::exp(1.0), 1e-15);
  EXPECT_NEAR(scores(1, 1.5)[12], cap, 1e-14);
  EXPECT_EQ(scores(1.5, 1.5 + 0x1p-52)[12], scores(1.5, 7)[0]);
  EXPECT_NE(scores(1.5 - 0x1p-52, 7)[0], scores(1.5, 7)[0]);
  EXPECT_EQ(scores(0, -1e6)[0], 1.0);
  EXPECT_EQ(scores(0, -1e6)[12], 0.0);
  EXPECT_NEAR(scores(-3, 0)[0], std::exp(-3.0), 1e-16);
}

TEST(Logits, TemperatureByPosition) {
  Case c = unit_case([](qkcts_contract& terms) {
    terms.logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG;
    terms.logits.query_alpha = 0.1;
    terms.logits.query_period = 8;
    terms.logits.query_shift = 1;
  });
  set_values(c, Input::q_position_ids, std::vector<double>{6, 7, 1000000});
  const std::vector<double> scores = stage_of(c, QKCTS_STAGE_SCORES);
  EXPECT_EQ(scores[0], 1.0);  // floor(7 / 8) = 0
  EXPECT_NEAR(scores[4], 1 + 0.1 * std::log(2.0), 1e-15);
  EXPECT_NEAR(scores[8], 1 + 0.1 * std::log(125001.0), 1e-15);
  EXPECT_EQ(scores[12], scores[0]);  // the same for every head
  c.contract.terms.logits.query_shift = 0;
  EXPECT_EQ(stage_of(c, QKCTS_STAGE_SCORES)[4], 1.0);
  c.contract.terms.logits.query_alpha = 0;
  EXPECT_EQ(stage_of(c, QKCTS_STAGE_SCORES)[8], 1.0);
}

// At least 1 before the logarithm, and not rounded down: what separates it from `log`.
TEST(Logits, TemperatureByRatio) {
  Case c = unit_case([](qkcts_contract& terms) {
    terms.logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG_RATIO;
    terms.logits.query_alpha = 0.1;
    terms.logits.query_period = 8;
    terms.logits.query_shift = 1;
  });
  const auto at = [&c](double first, double second, double third) {
    set_values(c, Input::q_position_ids, std::vector<double>{first, second, third});
    return stage_of(c, QKCTS_STAGE_SCORES);
  };
  const std::vector<double> scores = at(0, 8, 1000000);
  EXPECT_EQ(scores[0], 1.0);  // 1/8, taken as 1
  EXPECT_NEAR(scores[4], 1 + 0.1 * std::log(9.0 / 8), 1e-15);
  EXPECT_NEAR(scores[8], 1 + 0.1 * std::log(1000001.0 / 8), 1e-15);
  EXPECT_EQ(scores[12], scores[0]);
  EXPECT_EQ(at(7, 7, 7)[0], 1.0);  // 8/8
  // A whole ratio n + 1 is that of `log` with n periods.
  const std::vector<double> whole = at(15, 31, 63);
  c.contract.terms.logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG;
  EXPECT_EQ(at(7, 23, 55), whole);
  EXPECT_NE(at(15, 31, 63), whole) << "the control: the same positions";
}

// Added to the score 1 of every key, per head of slope 0.5 and -2, Lq = 3, Lk = 4.
TEST(Logits, LinearBias) {
  const auto added = [](std::uint32_t form, std::uint32_t alignment) {
    Case c = unit_case([](qkcts_contract& terms) { terms.logits.alibi = QKCTS_ALIBI_RELATIVE; });
    c.contract.terms.logits.alibi = form;
    c.contract.terms.mask.alignment = alignment;
    set_values(c, Input::alibi_slopes, std::vector<double>{0.5, -2});
    std::vector<double> rest = stage_of(c, QKCTS_STAGE_CAPPED);
    for (double& x : rest) x -= 1;
    return rest;
  };
  for (const std::size_t t : {0u, 1u, 2u}) {
    for (const std::size_t j : {0u, 1u, 2u, 3u}) {
      const double distance = static_cast<double>(j) - static_cast<double>(t);
      const std::size_t first = t * 4 + j;
      const std::size_t second = first + 12;
      EXPECT_EQ(added(QKCTS_ALIBI_RELATIVE, QKCTS_TOP_LEFT)[first], 0.5 * distance);
      EXPECT_EQ(added(QKCTS_ALIBI_RELATIVE, QKCTS_TOP_LEFT)[second], -2 * distance);
      EXPECT_EQ(added(QKCTS_ALIBI_RELATIVE, QKCTS_BOTTOM_RIGHT)[first], 0.5 * (distance - 1));
      EXPECT_EQ(added(QKCTS_ALIBI_SYMMETRIC, QKCTS_TOP_LEFT)[first], -0.5 * std::fabs(distance));
      EXPECT_EQ(added(QKCTS_ALIBI_SYMMETRIC, QKCTS_BOTTOM_RIGHT)[second], 2 * std::fabs(distance - 1));
      EXPECT_EQ(added(QKCTS_ALIBI_LAST_KEY, QKCTS_BOTTOM_RIGHT)[first], 0.5 * (static_cast<double>(j) - 3));
    }
  }
}

TEST(Logits, LinearBiasStandsAfterTheCapAndBesideTheBias) {
  Case c = unit_case(
      [](qkcts_contract& terms) {
        terms.logits.alibi = QKCTS_ALIBI_LAST_KEY;
        terms.score.softcap = 2;
        terms.score.bias_order = QKCTS_BIAS_AFTER_SOFTCAP;
      },
      {1, 1, 1, 1, 2, 1, 1});
  set_values(c, Input::alibi_slopes, std::vector<double>{3});
  set_values(c, Input::bias, std::vector<double>{0.25, 5});
  const std::vector<double> capped = stage_of(c, QKCTS_STAGE_CAPPED);
  EXPECT_NEAR(capped[0], 2 * std::tanh(0.5) + 0.25 - 3, 1e-15);
  EXPECT_NEAR(capped[1], 2 * std::tanh(0.5) + 5, 1e-15);
  c.contract.terms.score.bias_order = QKCTS_BIAS_BEFORE_SOFTCAP;
  set_values(c, Input::bias, std::vector<double>{-INFINITY, 5});
  const ReferenceResult result = evaluate(c, every_row(c));
  EXPECT_EQ(result.stages[QKCTS_STAGE_CAPPED].hi[0], -5.0);  // -c and the linear bias
  EXPECT_EQ(result.stages[QKCTS_STAGE_CAPPED].rule[0], ElementRule::hidden);
  EXPECT_NEAR(result.stages[QKCTS_STAGE_CAPPED].hi[1], 2 * std::tanh(3.0), 1e-15);
}

// ---- rounding boundaries: unit vectors under L2 norms, so that <q^, k^> is 1 by way of roots

Case rooted_case(void (*change)(qkcts_contract&), std::vector<double> k, std::vector<double> v) {
  Contract contract = shipped_contract("plain_sdpa");
  contract.name = "rooted";
  contract.terms.q_norm.applied = contract.terms.k_norm.applied = 1;
  contract.terms.q_norm.statistic = contract.terms.k_norm.statistic = QKCTS_SUM_SQUARE;
  contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
  contract.terms.score.scale_value = 1;
  change(contract.terms);
  SampleSpec spec;
  spec.format = Format::bfloat16;
  spec.shape = {1, 1, 1, 1, static_cast<std::int64_t>(v.size()), 2, 1};
  Case c = sample_case(contract, spec);
  set_values(c, Input::q, std::vector<double>{1, 1});
  set_values(c, Input::k, k);
  set_values(c, Input::v, v);
  return c;
}

TEST(LogitsExactCases, LinearBiasOnATie) {
  Case c = rooted_case([](qkcts_contract& terms) { terms.logits.alibi = QKCTS_ALIBI_LAST_KEY; }, {1, 1, 1, 1}, {1, 1});
  set_values(c, Input::alibi_slopes, std::vector<double>{-0x1.8p-23});
  const ReferenceResult result = evaluate(c, every_row(c));
  const ProvenStage& capped = result.stages[QKCTS_STAGE_CAPPED];
  EXPECT_EQ(capped.hi[0], 1 + 3 * 0x1p-24);
  EXPECT_EQ(decode(Format::binary32, capped.expected[0]), 1 + 0x1p-22);
  EXPECT_EQ(capped.rule[0], ElementRule::budget_exact);
}

TEST(LogitsExactCases, ARatioOfOneLeavesTies) {
  Case c = rooted_case(
      [](qkcts_contract& terms) {
        terms.logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG_RATIO;
        terms.logits.query_alpha = 0.1;
        terms.logits.query_period = 3;
        terms.logits.alibi = QKCTS_ALIBI_LAST_KEY;
      },
      {1, 1, 1, 1}, {1, 1});
  set_values(c, Input::alibi_slopes, std::vector<double>{-0x1.8p-23});
  for (const double position : {2.0, 3.0, 4.0}) {
    set_values(c, Input::q_position_ids, std::vector<double>{position});
    const bool is_tie = evaluate(c, every_row(c)).stages[QKCTS_STAGE_CAPPED].rule[0] == ElementRule::budget_exact;
    EXPECT_EQ(is_tie, position <= 3);
  }
}

TEST(LogitsExactCases, ExponentialOfZeroIsOne) {
  Case c = rooted_case(
      [](qkcts_contract& terms) {
        terms.score.scale_form = QKCTS_SCALE_LEARNED_SCALAR;
        terms.logits.scale_exp_cap = 2;
        terms.logits.alibi = QKCTS_ALIBI_LAST_KEY;
      },
      {1, 1, 1, 1}, {1, 1});
  set_values(c, Input::alibi_slopes, std::vector<double>{-0x1.8p-23});
  set_values(c, Input::scale, std::vector<double>{0});
  EXPECT_EQ(evaluate(c, every_row(c)).stages[QKCTS_STAGE_CAPPED].rule[0], ElementRule::budget_exact);
  set_values(c, Input::scale, std::vector<double>{0x1p-40});
  const ReferenceResult result = evaluate(c, every_row(c));
  EXPECT_EQ(result.stages[QKCTS_STAGE_CAPPED].rule[0], ElementRule::budget);
  EXPECT_GT(result.stages[QKCTS_STAGE_CAPPED].hi[0], 1 + 3 * 0x1p-24);
}

// Equal scores stay equal under a transcendental factor; a score of 0 stays 0; other scores are no boundary.
TEST(LogitsExactCases, TranscendentalFactors) {
  for (void (*factor)(qkcts_contract&) : {+[](qkcts_contract& terms) {
                                            terms.score.scale_form = QKCTS_SCALE_LEARNED_SCALAR;
                                            terms.logits.scale_exp_cap = 0.5;
                                          },
                                          +[](qkcts_contract& terms) {
                                            terms.logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG;
                                            terms.logits.query_alpha = 0.1;
                                            terms.logits.query_period = 1;
                                          },
                                          +[](qkcts_contract& terms) {
                                            terms.logits.query_temperature = QKCTS_QUERY_TEMPERATURE_LOG_RATIO;
                                            terms.logits.query_alpha = 0.1;
                                            terms.logits.query_period = 3;
                                          }}) {
    const auto placed = [&](const std::vector<double>& k, const std::vector<double>& v) {
      Case c = rooted_case(factor, k, v);
      if (c.inputs.has(Input::scale)) set_values(c, Input::scale, std::vector<double>{0.25});
      if (c.inputs.has(Input::q_position_ids)) set_values(c, Input::q_position_ids, std::vector<double>{5});
      return evaluate(c, every_row(c));
    };
    const ReferenceResult equal = placed({1, 2, 2, 1}, {1, 1 + 0x1p-7});
    EXPECT_EQ(equal.stages[QKCTS_STAGE_OUTPUT].hi[0], 1 + 0x1p-8);
    EXPECT_EQ(equal.stages[QKCTS_STAGE_OUTPUT].rule[0], ElementRule::budget_exact);
    EXPECT_EQ(equal.stages[QKCTS_STAGE_SCORES].rule[0], ElementRule::budget);
    const ReferenceResult different = placed({1, 2, 2, 1.0078125}, {1, 1 + 0x1p-7});
    EXPECT_EQ(different.stages[QKCTS_STAGE_OUTPUT].rule[0], ElementRule::budget);
    const ReferenceResult zero = placed({3, -3, 2, 1}, {1, 1});
    EXPECT_EQ(zero.stages[QKCTS_STAGE_SCORES].hi[0], 0.0);
    EXPECT_EQ(zero.stages[QKCTS_STAGE_SCORES].rule[0], ElementRule::budget_exact);
  }
}

}  // namespace
}  // namespace qkcts
