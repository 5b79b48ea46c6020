// SPDX-License-Identifier: Apache-2.0
// Sinks and bases: values known in closed form, and values on a rounding boundary.
#include "reference/softmax.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "reference/attention.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

struct Sinks {
  std::uint32_t form = QKCTS_SINK_NONE;
  double logit = 0;
};

// One query that sees all keys: the scores are `scores`, exactly. Under a mask the query sees nothing.
Case scores_case(const std::vector<double>& scores, const std::vector<double>& v, Sinks sinks = {},
                 Format format = Format::binary32) {
  Contract contract = shipped_contract("plain_sdpa");
  contract.name = "softmax";
  contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
  contract.terms.score.scale_value = 1;
  contract.terms.softmax.sink = sinks.form;
  SampleSpec spec;
  spec.format = format;
  spec.shape = {1, 1, 1, 1, static_cast<std::int64_t>(scores.size()), 1, 1};
  Case c = sample_case(contract, spec);
  set_values(c, Input::q, std::vector<double>{1});
  set_values(c, Input::k, scores);
  set_values(c, Input::v, v);
  if (sinks.form != QKCTS_SINK_NONE) set_values(c, Input::sink, std::vector<double>{sinks.logit});
  return c;
}

Case blinded(Case c, std::uint32_t empty_row) {
  c.contract.terms.mask.boolean = 1;
  c.contract.terms.mask.empty_row = empty_row;
  c.inputs.set(Input::mask, Tensor::zeros(ElementType::boolean, {1, 1, 1, c.shape.k_len}));
  return c;
}

ReferenceResult evaluated(const Case& c) {
  return evaluate(c, every_row(c));
}

double hi(const ReferenceResult& result, qkcts_stage stage, std::size_t i = 0) {
  return result.stages[stage].hi[i];
}

double stored(const Case& c, const ReferenceResult& result, qkcts_stage stage, std::size_t i = 0) {
  return decode(stage_format(stage, c.inputs.format), result.stages[stage].expected[i]);
}

ElementRule rule(const ReferenceResult& result, qkcts_stage stage, std::size_t i = 0) {
  return result.stages[stage].rule[i];
}

TEST(Softmax, ColumnIsOneMoreLogit) {
  const Case c = scores_case({0, 0}, {3, 4.5}, {QKCTS_SINK_COLUMN, 0});
  const ReferenceResult result = evaluated(c);
  EXPECT_EQ(hi(result, QKCTS_STAGE_PROBS, 1), 1.0 / 3);
  EXPECT_EQ(hi(result, QKCTS_STAGE_OUTPUT), 2.5);
  EXPECT_NEAR(hi(result, QKCTS_STAGE_LSE), std::log(3.0), 1e-15);
  EXPECT_NEAR(result.statistics.entropy[0], std::log(3.0), 1e-6);
  EXPECT_NEAR(result.statistics.p_max[0], 1.0 / 3, 1e-6);
  EXPECT_EQ(result.statistics.score_max[0], 0.0);
  const ReferenceResult without = evaluated(scores_case({0, 0}, {3, 4.5}));
  EXPECT_EQ(hi(without, QKCTS_STAGE_PROBS, 1), 0.5);
  EXPECT_EQ(hi(without, QKCTS_STAGE_OUTPUT), 3.75);
}

TEST(Softmax, BothFormsOfASinkHaveOneOutput) {
  for (const double logit : {-30.0, -1.25, 0.0, 0.75, 40.0}) {
    const ReferenceResult column = evaluated(scores_case({1, -0.5, 2}, {3, -4.5, 1}, {QKCTS_SINK_COLUMN, logit}));
    const ReferenceResult post = evaluated(scores_case({1, -0.5, 2}, {3, -4.5, 1}, {QKCTS_SINK_POST_SCALE, logit}));
    const ReferenceResult none = evaluated(scores_case({1, -0.5, 2}, {3, -4.5, 1}));
    const auto same = [](const ReferenceResult& x, const ReferenceResult& y, qkcts_stage stage) {
      return x.stages[stage].expected == y.stages[stage].expected && x.stages[stage].hi == y.stages[stage].hi &&
             x.stages[stage].lo == y.stages[stage].lo;
    };
    EXPECT_TRUE(same(column, post, QKCTS_STAGE_OUTPUT)) << logit;
    EXPECT_FALSE(same(none, post, QKCTS_STAGE_OUTPUT)) << logit;
    for (const qkcts_stage stage : {QKCTS_STAGE_PROBS, QKCTS_STAGE_LSE}) {
      EXPECT_TRUE(same(none, post, stage)) << logit;
      EXPECT_FALSE(same(none, column, stage)) << logit;
    }
  }
}

TEST(Softmax, OneVisibleKeyBesideASink) {
  const double p = 1 / (1 + std::exp(0.5));
  for (const std::uint32_t form : {QKCTS_SINK_COLUMN, QKCTS_SINK_POST_SCALE}) {
    const ReferenceResult result = evaluated(scores_case({1}, {8}, {form, 1.5}));
    EXPECT_NEAR(hi(result, QKCTS_STAGE_PROBS), form == QKCTS_SINK_COLUMN ? p : 1.0, 1e-15);
    EXPECT_NEAR(hi(result, QKCTS_STAGE_OUTPUT), 8 * p, 1e-14);
    EXPECT_NEAR(hi(result, QKCTS_STAGE_LSE), form == QKCTS_SINK_COLUMN ? std::log(std::exp(1.0) + std::exp(1.5)) : 1.0,
                1e-15);
    const double q = 1 - p;
    EXPECT_NEAR(result.statistics.entropy[0], form == QKCTS_SINK_COLUMN ? -p * std::log(p) - q * std::log(q) : 0.0,
                1e-6);
    EXPECT_NEAR(result.statistics.p_max[0], form == QKCTS_SINK_COLUMN ? q : 1.0, 1e-6);
  }
}

TEST(Softmax, RowWithoutKeysBesideAColumn) {
  for (const std::uint32_t policy : {QKCTS_EMPTY_ZERO, QKCTS_EMPTY_NAN, QKCTS_EMPTY_UNIFORM}) {
    const Case c = blinded(scores_case({1, 2}, {3, 4}, {QKCTS_SINK_COLUMN, 0.1f}), policy);
    const ReferenceResult result = evaluated(c);
    EXPECT_EQ(hi(result, QKCTS_STAGE_PROBS, 1), 0.0);
    EXPECT_EQ(rule(result, QKCTS_STAGE_PROBS, 1), ElementRule::exact_clause);
    EXPECT_EQ(hi(result, QKCTS_STAGE_OUTPUT), 0.0);
    EXPECT_EQ(rule(result, QKCTS_STAGE_OUTPUT), ElementRule::exact_clause);
    EXPECT_EQ(hi(result, QKCTS_STAGE_LSE), static_cast<double>(0.1f));
    EXPECT_EQ(rule(result, QKCTS_STAGE_LSE), ElementRule::budget);
    EXPECT_TRUE(std::isnan(result.statistics.entropy[0]));
  }
  const Case post = blinded(scores_case({1, 2}, {3, 4}, {QKCTS_SINK_POST_SCALE, 0.5}), QKCTS_EMPTY_UNIFORM);
  EXPECT_EQ(hi(evaluated(post), QKCTS_STAGE_OUTPUT), 3.5);
  EXPECT_EQ(hi(evaluated(post), QKCTS_STAGE_LSE), -std::numeric_limits<double>::infinity());
}

TEST(Softmax, RowWithoutKeysBesideAColumnInTheOtherBase) {
  Case c = blinded(scores_case({1}, {3}, {QKCTS_SINK_COLUMN, 3}), QKCTS_EMPTY_ZERO);
  c.contract.terms.softmax.lse_base = QKCTS_BASE_TWO;
  EXPECT_NEAR(hi(evaluated(c), QKCTS_STAGE_LSE), 3 / std::log(2.0), 1e-15);
  c.contract.terms.softmax.base = QKCTS_BASE_TWO;
  EXPECT_EQ(hi(evaluated(c), QKCTS_STAGE_LSE), 3.0);
  c.contract.terms.softmax.lse_base = QKCTS_BASE_E;
  EXPECT_NEAR(hi(evaluated(c), QKCTS_STAGE_LSE), 3 * std::log(2.0), 1e-15);
}

// Beyond the exponent range of any precision: the sink takes all, or nothing.
TEST(Softmax, ExtremeSinks) {
  const Case above = scores_case({-0x1p+90, -0x1p+91}, {-3, 4}, {QKCTS_SINK_COLUMN, 0x1p+100});
  const ReferenceResult all = evaluated(above);
  EXPECT_EQ(hi(all, QKCTS_STAGE_LSE), 0x1p+100);
  EXPECT_EQ(hi(all, QKCTS_STAGE_PROBS), 0.0);
  EXPECT_EQ(hi(all, QKCTS_STAGE_OUTPUT), 0.0);
  EXPECT_TRUE(std::signbit(hi(all, QKCTS_STAGE_OUTPUT)));  // a negative number too small to see
  EXPECT_EQ(all.statistics.p_max[0], 1.0);
  EXPECT_EQ(all.statistics.entropy[0], 0.0);
  const ReferenceResult none = evaluated(scores_case({1, -0.5}, {3, -4.5}));
  for (const std::uint32_t form : {QKCTS_SINK_COLUMN, QKCTS_SINK_POST_SCALE}) {
    const ReferenceResult nothing = evaluated(scores_case({1, -0.5}, {3, -4.5}, {form, -0x1p+100}));
    for (const qkcts_stage stage : {QKCTS_STAGE_PROBS, QKCTS_STAGE_LSE, QKCTS_STAGE_OUTPUT})
      EXPECT_EQ(nothing.stages[stage].hi, none.stages[stage].hi);
  }
}

TEST(Softmax, BaseTwo) {
  Case c = scores_case({1, 1, 2}, {1, 3, 5});
  c.contract.terms.softmax.base = c.contract.terms.softmax.lse_base = QKCTS_BASE_TWO;
  ReferenceResult result = evaluated(c);
  EXPECT_EQ(hi(result, QKCTS_STAGE_PROBS, 0), 0.25);
  EXPECT_EQ(hi(result, QKCTS_STAGE_PROBS, 2), 0.5);
  EXPECT_EQ(hi(result, QKCTS_STAGE_OUTPUT), 3.5);
  EXPECT_EQ(hi(result, QKCTS_STAGE_LSE), 3.0);
  EXPECT_NEAR(result.statistics.entropy[0], 1.5 * std::log(2.0), 1e-6);
  c.contract.terms.softmax.lse_base = QKCTS_BASE_E;
  EXPECT_NEAR(hi(evaluated(c), QKCTS_STAGE_LSE), 3 * std::log(2.0), 1e-15);
  c.contract.terms.softmax.base = QKCTS_BASE_E;
  result = evaluated(c);
  EXPECT_NEAR(hi(result, QKCTS_STAGE_PROBS, 2), 1 / (1 + 2 * std::exp(-1.0)), 1e-15);
  c.contract.terms.softmax.lse_base = QKCTS_BASE_TWO;
  EXPECT_NEAR(hi(evaluated(c), QKCTS_STAGE_LSE), hi(result, QKCTS_STAGE_LSE) / std::log(2.0), 1e-14);
}

TEST(Softmax, BaseTwoBesideAColumn) {
  Case c = scores_case({1, 1}, {1, 7}, {QKCTS_SINK_COLUMN, 2});
  c.contract.terms.softmax.base = c.contract.terms.softmax.lse_base = QKCTS_BASE_TWO;
  const ReferenceResult result = evaluated(c);
  EXPECT_EQ(hi(result, QKCTS_STAGE_PROBS), 0.25);
  EXPECT_EQ(hi(result, QKCTS_STAGE_OUTPUT), 2.0);
  EXPECT_EQ(hi(result, QKCTS_STAGE_LSE), 3.0);
  EXPECT_NEAR(result.statistics.p_max[0], 0.5, 1e-6);
}

// ---- rounding boundaries. Scores that need a root to be formed: 1/sqrt(n) (x) 1/sqrt(n), so no enclosure is a point.

// Unit vectors under L2 norms, all equal: each score is `scale` plus the bias of the key.
Case rooted_case(Format format, double scale, const std::vector<double>& bias, const std::vector<double>& v,
                 Sinks sinks = {}) {
  Contract contract = shipped_contract("plain_sdpa");
  contract.name = "rooted";
  contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
  contract.terms.score.scale_value = scale;
  contract.terms.score.bias_order = QKCTS_BIAS_AFTER_SOFTCAP;
  contract.terms.q_norm.applied = contract.terms.k_norm.applied = 1;
  contract.terms.q_norm.statistic = contract.terms.k_norm.statistic = QKCTS_SUM_SQUARE;
  contract.terms.softmax.sink = sinks.form;
  SampleSpec spec;
  spec.format = format;
  spec.shape = {1, 1, 1, 1, static_cast<std::int64_t>(v.size()), 2, 1};
  Case c = sample_case(contract, spec);
  set_values(c, Input::q, std::vector<double>(2, 1.0));
  set_values(c, Input::k, std::vector<double>(2 * v.size(), 1.0));
  set_values(c, Input::bias, bias);
  set_values(c, Input::v, v);
  if (sinks.form != QKCTS_SINK_NONE) set_values(c, Input::sink, std::vector<double>{sinks.logit});
  return c;
}

TEST(SoftmaxExactCases, SinkEqualToTheScores) {
  for (const std::uint32_t form : {QKCTS_SINK_COLUMN, QKCTS_SINK_POST_SCALE}) {
    Case c = rooted_case(Format::bfloat16, 0.5, {0, 0, 0}, {1 + 0x1p-7, 1, 1}, {form, 0.5});
    ReferenceResult result = evaluated(c);
    EXPECT_EQ(hi(result, QKCTS_STAGE_OUTPUT), 0.75 + 0x1p-9);  // (3 + 2^-7) / 4: a tie
    EXPECT_EQ(stored(c, result, QKCTS_STAGE_OUTPUT), 0.75);
    EXPECT_EQ(rule(result, QKCTS_STAGE_OUTPUT), ElementRule::budget_exact);
    set_values(c, Input::sink, std::vector<double>{0.498046875});
    result = evaluated(c);
    EXPECT_EQ(stored(c, result, QKCTS_STAGE_OUTPUT), 0.75390625);  // a smaller sink: above the tie
    EXPECT_EQ(rule(result, QKCTS_STAGE_OUTPUT), ElementRule::budget);
  }
}

TEST(SoftmaxExactCases, ScoresAWholeNumberApartInBaseTwo) {
  Case c = rooted_case(Format::bfloat16, 0.7, {0, 0, 1}, {1 + 0x1p-6, 1, 1});
  c.contract.terms.softmax.base = QKCTS_BASE_TWO;
  ReferenceResult result = evaluated(c);
  EXPECT_EQ(hi(result, QKCTS_STAGE_OUTPUT), 1 + 0x1p-8);
  EXPECT_EQ(stored(c, result, QKCTS_STAGE_OUTPUT), 1.0);
  EXPECT_EQ(rule(result, QKCTS_STAGE_OUTPUT), ElementRule::budget_exact);
  set_values(c, Input::bias, std::vector<double>{0, 0, 0.9921875});
  result = evaluated(c);
  EXPECT_EQ(stored(c, result, QKCTS_STAGE_OUTPUT), 1 + 0x1p-7);
  EXPECT_EQ(rule(result, QKCTS_STAGE_OUTPUT), ElementRule::budget);
  c.contract.terms.softmax.base = QKCTS_BASE_E;  // whole numbers mean nothing in base e
  set_values(c, Input::bias, std::vector<double>{0, 0, 1});
  EXPECT_EQ(rule(evaluated(c), QKCTS_STAGE_OUTPUT), ElementRule::budget);
}

// Weights 2^-134, 2^-134, 2^-133, ..., 2^-1 of a sum 1: the first two stand half way between 0 and the smallest
// bfloat16.
TEST(SoftmaxExactCases, ProbabilityHalfOfTheSmallest) {
  std::vector<double> bias = {-134};
  for (int n = 134; n >= 1; --n) bias.push_back(-n);
  Case c = rooted_case(Format::bfloat16, 0.7, bias, std::vector<double>(bias.size(), 1.0));
  c.contract.terms.softmax.base = QKCTS_BASE_TWO;
  ReferenceResult result = evaluated(c);
  EXPECT_EQ(hi(result, QKCTS_STAGE_PROBS), 0x1p-134);
  EXPECT_EQ(stored(c, result, QKCTS_STAGE_PROBS), 0.0);
  EXPECT_EQ(rule(result, QKCTS_STAGE_PROBS), ElementRule::budget_exact);
  bias[1] = -136;  // a smaller sum: all others are larger
  set_values(c, Input::bias, bias);
  result = evaluated(c);
  EXPECT_EQ(stored(c, result, QKCTS_STAGE_PROBS), 0x1p-133);
}

TEST(SoftmaxExactCases, LseInBaseTwo) {
  Case c = rooted_case(Format::binary32, 1 + 0x1p-23, {0, 0}, {1, 1});
  c.contract.terms.softmax.base = c.contract.terms.softmax.lse_base = QKCTS_BASE_TWO;
  ReferenceResult result = evaluated(c);
  EXPECT_EQ(hi(result, QKCTS_STAGE_LSE), 2 + 0x1p-23);  // one more than the score: a tie
  EXPECT_EQ(stored(c, result, QKCTS_STAGE_LSE), 2.0);
  EXPECT_EQ(rule(result, QKCTS_STAGE_LSE), ElementRule::budget_exact);
  for (const double far : {-30000.0, -30000.5}) {  // a whole number below, and not
    c = rooted_case(Format::binary32, 1 + 0x1p-23, {0, 0, far}, {1, 1, 1});
    c.contract.terms.softmax.base = c.contract.terms.softmax.lse_base = QKCTS_BASE_TWO;
    result = evaluated(c);
    EXPECT_EQ(stored(c, result, QKCTS_STAGE_LSE), 2 + 0x1p-22);  // just above the tie
    EXPECT_EQ(rule(result, QKCTS_STAGE_LSE), ElementRule::budget_exact);
  }
}

TEST(SoftmaxExactCases, LseZeroInEitherBase) {
  Case c = rooted_case(Format::binary32, 1, {-2, -2}, {1, 1});  // 2^-1 + 2^-1 = 1
  c.contract.terms.softmax.base = QKCTS_BASE_TWO;
  for (const std::uint32_t lse_base : {QKCTS_BASE_E, QKCTS_BASE_TWO}) {
    c.contract.terms.softmax.lse_base = lse_base;
    const ReferenceResult result = evaluated(c);
    EXPECT_EQ(hi(result, QKCTS_STAGE_LSE), 0.0);
    EXPECT_EQ(rule(result, QKCTS_STAGE_LSE), ElementRule::budget_exact);
  }
  c.contract.terms.softmax.base = QKCTS_BASE_E;
  EXPECT_NE(hi(evaluated(c), QKCTS_STAGE_LSE), 0.0);
}

// A sink of 0 and keys 30000 below: lse is e^-30000, a positive zero.
TEST(SoftmaxExactCases, LseJustAboveASinkOfZero) {
  const ReferenceResult result =
      evaluated(rooted_case(Format::binary32, 1, {-30000, -30000}, {1, 1}, {QKCTS_SINK_COLUMN, 0}));
  EXPECT_EQ(hi(result, QKCTS_STAGE_LSE), 0.0);
  EXPECT_FALSE(std::signbit(hi(result, QKCTS_STAGE_LSE)));
}

}  // namespace
}  // namespace qkcts
