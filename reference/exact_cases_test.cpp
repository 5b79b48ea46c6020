// SPDX-License-Identifier: Apache-2.0
// Values that stand exactly on a rounding boundary, or beside one by less than any precision resolves.
#include "reference/exact_cases.hpp"

#include <cmath>
#include <initializer_list>

#include <gtest/gtest.h>

#include "reference/attention.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

struct Element {
  double value;  // decoded `expected`
  double hi;
  int lo;
  ElementRule rule;
};

Element element(const Case& c, const ReferenceResult& result, qkcts_stage stage, std::size_t i = 0) {
  const ProvenStage& proven = result.stages[stage];
  return {decode(stage_format(stage, c.inputs.format), proven.expected[i]), proven.hi[i], proven.lo[i], proven.rule[i]};
}

Element only(const Case& c, qkcts_stage stage, std::size_t i = 0) {
  return element(c, evaluate(c, every_row(c)), stage, i);
}

// One query, one head; L2 norm with eps = 0 unless `plain`; scale a constant.
Case small_case(const char* kind, Format format, std::int64_t keys, std::int64_t width, double scale) {
  Contract contract = shipped_contract("plain_sdpa");
  contract.name = std::string("tie_") + kind;
  contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
  contract.terms.score.scale_value = scale;
  if (std::string(kind) == "l2") {
    contract.terms.q_norm.applied = contract.terms.k_norm.applied = 1;
    contract.terms.q_norm.statistic = contract.terms.k_norm.statistic = QKCTS_SUM_SQUARE;
  }
  SampleSpec spec;
  spec.format = format;
  spec.shape = {1, 1, 1, 1, keys, width, 1};
  return sample_case(contract, spec);
}

void set(Case& c, Input input, std::initializer_list<double> values) {
  set_values(c, input, std::vector<double>(values));
}

TEST(ExactCases, EqualIrrationalScoresAndAMeanOnATie) {
  Case c = small_case("l2", Format::bfloat16, 2, 3, 0.7);
  set(c, Input::q, {1, 1, 3});
  set(c, Input::k, {1, 2, 2, 1, 2, 2});
  set(c, Input::v, {1, 1 + 0x1p-7});
  const Element o = only(c, QKCTS_STAGE_OUTPUT);
  EXPECT_EQ(o.value, 1.0);  // 1 + 2^-8 is a tie, 1 is even
  EXPECT_EQ(o.hi, 1 + 0x1p-8);
  EXPECT_EQ(o.lo, 0);
  EXPECT_EQ(o.rule, ElementRule::budget_exact);
}

TEST(ExactCases, DifferentKeysWithEqualScoresAndAMeanOnATie) {
  Case c = small_case("l2", Format::binary32, 4, 3, 0.7);
  set(c, Input::q, {1, 1, 3});
  set(c, Input::k, {1, 2, 2, 2, 1, 2, 4, 2, 4, -1, 0, 0.5});
  set(c, Input::v, {1, 1 + 0x1p-22, 1 + 0x1p-23, 1 + 0x1p-23});
  const Element first = only(c, QKCTS_STAGE_OUTPUT);
  EXPECT_EQ(first.value, 1 + 0x1p-23);  // mean of every group: representable
  set(c, Input::v, {1, 1 + 0x1p-23, 1, 1});
  EXPECT_NE(only(c, QKCTS_STAGE_OUTPUT).rule, ElementRule::budget_exact);
}

// The control of those above: a score that is larger by 2^-120 moves o off the tie, to the side of its value.
TEST(ExactCases, NearlyEqualScoresAreNoTie) {
  Case c = small_case("plain", Format::bfloat16, 2, 3, 0.7);
  set(c, Input::q, {1, 0x1p-120, 3});
  set(c, Input::k, {1, 2, 2, 1, 3, 2});  // larger by 2^-120
  set(c, Input::v, {1, 1 + 0x1p-7});
  const Element o = only(c, QKCTS_STAGE_OUTPUT);
  EXPECT_EQ(o.value, 1 + 0x1p-7);
  set(c, Input::v, {1 + 0x1p-7, 1});
  EXPECT_EQ(only(c, QKCTS_STAGE_OUTPUT).value, 1.0);
}

TEST(ExactCases, UniformMeanOnATieOfBinary32) {
  Case c = small_case("l2", Format::binary32, 4, 2, 3.0);
  set(c, Input::q, {1, 1});
  set(c, Input::k, {1, 2, 2, 1, 4, 2, 3, 6});
  set(c, Input::v, {1, 1 + 0x1p-23, 1 + 0x1p-23, 1 + 0x1p-22});
  EXPECT_EQ(only(c, QKCTS_STAGE_OUTPUT).value, 1 + 0x1p-23);
  set(c, Input::v, {1, 1 + 0x1p-23, 1 + 0x1p-22, 1 + 0x1.8p-22});  // mean 1 + 1.5 * 2^-23
  const Element o = only(c, QKCTS_STAGE_OUTPUT);
  EXPECT_EQ(o.value, 1 + 0x1p-22);
  EXPECT_EQ(o.rule, ElementRule::budget_exact);
  EXPECT_EQ(only(c, QKCTS_STAGE_PROBS, 2).value, 0.25);
}

TEST(ExactCases, ScoreOfEqualVectorsOnATie) {
  Case c = small_case("l2", Format::binary32, 1, 2, 1 + 3 * 0x1p-24);
  set(c, Input::q, {1, 1});
  set(c, Input::k, {1, 1});  // (1/sqrt 2)^2 + (1/sqrt 2)^2 = 1
  for (const qkcts_stage stage : {QKCTS_STAGE_SCORES, QKCTS_STAGE_LSE}) {
    const Element s = only(c, stage);
    EXPECT_EQ(s.value, 1 + 0x1p-22);
    EXPECT_EQ(s.hi, 1 + 3 * 0x1p-24);
    EXPECT_EQ(s.lo, 0);
    EXPECT_EQ(s.rule, ElementRule::budget_exact);
  }
}

TEST(ExactCases, ScoreOfUnitVectorsUnderAnIrrationalScale) {
  Case c = small_case("l2", Format::binary32, 1, 2, 1.0);
  c.contract.terms.score.scale_form = QKCTS_SCALE_INV_SQRT_SCALAR;
  c.contract.terms.score.scale_value = 2;
  set(c, Input::q, {1, 1});
  set(c, Input::k, {1, 0});  // tau <q,k> = (1/sqrt 2)(1/sqrt 2) = 1/2
  c.contract.terms.score.temperature = 1 / (1 + 3 * 0x1p-24);
  const double t = c.contract.terms.score.temperature;
  EXPECT_NE(only(c, QKCTS_STAGE_SCORES).rule, ElementRule::budget_exact);  // 1/t is no boundary
  EXPECT_EQ(only(c, QKCTS_STAGE_SCORES).hi, 0.5 / t);
  c.contract.terms.score.temperature = 1;
  EXPECT_EQ(only(c, QKCTS_STAGE_SCORES).value, 0.5);
}

TEST(ExactCases, CancelledScoreIsExactlyZero) {
  Case c = small_case("l2", Format::binary32, 2, 2, 1.0);
  set(c, Input::q, {1, 3});
  set(c, Input::k, {3, -1, 1, 1});
  const Element s = only(c, QKCTS_STAGE_SCORES);
  EXPECT_EQ(s.value, 0.0);
  EXPECT_FALSE(std::signbit(s.value));
  EXPECT_EQ(s.hi, 0.0);
  EXPECT_EQ(s.rule, ElementRule::budget_exact);
  EXPECT_EQ(only(c, QKCTS_STAGE_SCORES, 1).rule, ElementRule::budget);
}

TEST(ExactCases, CancelledScoreWithNormBias) {
  Case c = small_case("l2", Format::binary32, 1, 2, 1.0);
  c.contract.terms.q_norm.bias_axes = c.contract.terms.k_norm.bias_axes = QKCTS_AXES_HEAD_DIM;
  c.inputs.set(Input::q_bias, Tensor::zeros(ElementType::binary32, {2}));
  c.inputs.set(Input::k_bias, Tensor::zeros(ElementType::binary32, {2}));
  set(c, Input::q, {1, 1});
  set(c, Input::k, {1, -1});
  set(c, Input::q_bias, {2, 2});
  set(c, Input::k_bias, {5, -5});  // (1/r + 2)(1/r + 5) - (1/r + 2)(1/r + 5)
  EXPECT_EQ(only(c, QKCTS_STAGE_SCORES).rule, ElementRule::budget_exact);
  set(c, Input::k_bias, {5, -4});
  EXPECT_EQ(only(c, QKCTS_STAGE_SCORES).rule, ElementRule::budget);
}

TEST(ExactCases, NormEntryOnATie) {
  Case c = small_case("l2", Format::bfloat16, 1, 9, 1.0);
  c.contract.terms.q_norm.statistic = QKCTS_MEAN_SQUARE;
  c.contract.terms.q_norm.gain = QKCTS_GAIN_W;
  c.contract.terms.q_norm.gain_axes = QKCTS_AXES_SCALAR;
  c.inputs.set(Input::q_gain, Tensor::zeros(ElementType::bfloat16, {1}));
  set(c, Input::q_gain, {1 + 0x1p-7});
  set(c, Input::q, {5, 0, 0, 0, 0, 0, 0, 0, 0});  // d = sqrt(25/9) = 5/3, no binary number: y = 3 w
  const Element y = only(c, QKCTS_STAGE_Q_NORM);
  EXPECT_EQ(y.hi, 3 + 3 * 0x1p-7);
  EXPECT_EQ(y.value, 3 + 0x1p-5);  // between 3 + 2^-6 and 3 + 2^-5; the latter is even
  EXPECT_EQ(y.rule, ElementRule::budget_exact);
}

TEST(ExactCases, CentredEntryExactlyZero) {
  Case c = small_case("l2", Format::binary64, 1, 3, 1.0);
  c.contract.terms.q_norm.center = 1;
  set(c, Input::q, {0x1p+300 + 0x1p+250, 0x1p+299 + 0x1p+249 + 0x1p-300, 0x1p-299});
  const ReferenceResult result = evaluate(c, every_row(c));
  const Element y = element(c, result, QKCTS_STAGE_Q_NORM, 1);
  EXPECT_NE(y.value, 0.0);
  set(c, Input::q, {0x1p+300, 0x1p+299 + 0x1p+250, 0x1p+251});  // the second is the mean
  EXPECT_EQ(only(c, QKCTS_STAGE_Q_NORM, 1).value, 0.0);
}

// The clamped vector has the offset form: (1/sqrt 2)(1, 1) is cut to 1/2, so <q^, k^> = 1/2 sqrt 2 times the other
// side.
TEST(ExactCases, ScoreOfAClampedVectorOnATie) {
  Case c = small_case("l2", Format::binary32, 1, 2, 1 + 3 * 0x1p-24);
  c.contract.terms.q_range.clip_after = c.contract.terms.k_range.clip_after = 0.5;
  set(c, Input::q, {1, 1});
  set(c, Input::k, {1, 1});
  const Element s = only(c, QKCTS_STAGE_SCORES);
  EXPECT_EQ(s.hi, 0.5 * (1 + 3 * 0x1p-24));  // (1/2)^2 + (1/2)^2
  EXPECT_EQ(s.value, 0.5 * (1 + 0x1p-22));
  c.contract.terms.q_range.clip_after = 0;  // (1/sqrt 2)(1/2) twice: no tie
  EXPECT_EQ(only(c, QKCTS_STAGE_SCORES).rule, ElementRule::budget);
}

// A lane that is exactly c or beyond it, and one that is a root: their sum is decided.
TEST(ExactCases, CancelledScoreOfAClampedVector) {
  Case c = small_case("l2", Format::binary32, 1, 3, 1.0);
  c.contract.terms.q_range.clip_after = 0.5;
  set(c, Input::q, {1, 1, 0.25});  // the first two are cut to 1/2
  set(c, Input::k, {1, -1, 0});
  EXPECT_EQ(only(c, QKCTS_STAGE_SCORES).hi, 0.0);
  set(c, Input::q, {2, 1, 0.25});  // 1 / norm is below 1/2
  EXPECT_NE(only(c, QKCTS_STAGE_SCORES).hi, 0.0);
}

// q k = 1 + 2^-11 + 2^-24 is a tie of binary32; a second key, e^-20000 below, lifts lse by 2^-28854 of it.
TEST(ExactCases, LseJustAboveATie) {
  Case c = small_case("plain", Format::binary32, 2, 1, 1.0);
  set(c, Input::q, {1 + 0x1p-12});
  set(c, Input::k, {1 + 0x1p-12, -20000});
  EXPECT_EQ(only(c, QKCTS_STAGE_SCORES).value, 1 + 0x1p-11);
  const Element lse = only(c, QKCTS_STAGE_LSE);
  EXPECT_EQ(lse.value, 1 + 0x1p-11 + 0x1p-23);
  EXPECT_EQ(lse.hi, 1 + 0x1p-11 + 0x1p-24);
  EXPECT_EQ(lse.rule, ElementRule::budget_exact);
}

TEST(ExactCases, SaturatedCapIsBelowTheCap) {
  Case c = small_case("plain", Format::binary32, 1, 1, 1.0);
  c.contract.terms.score.softcap = 1 + 3 * 0x1p-24;
  set(c, Input::q, {1e6f});
  for (const double sign : {1.0, -1.0}) {
    set(c, Input::k, {sign});
    const Element s = only(c, QKCTS_STAGE_CAPPED);
    EXPECT_EQ(s.value, sign * (1 + 0x1p-23));  // the tie itself would go to 1 + 2^-22
    EXPECT_EQ(s.rule, ElementRule::budget_exact);
  }
  set(c, Input::k, {0.0});
  EXPECT_EQ(only(c, QKCTS_STAGE_CAPPED).value, 0.0);
}

TEST(ExactCases, EqualArgumentsOfTheCap) {
  Case c = small_case("l2", Format::bfloat16, 2, 3, 0.7);
  c.contract.terms.score.softcap = 0.5;
  set(c, Input::q, {1, 1, 3});
  set(c, Input::k, {1, 2, 2, 2, 1, 2});
  set(c, Input::v, {1, 1 + 0x1p-7});
  const Element o = only(c, QKCTS_STAGE_OUTPUT);
  EXPECT_EQ(o.value, 1.0);
  EXPECT_EQ(o.rule, ElementRule::budget_exact);
}

TEST(ExactCases, EqualSumsOfScoreAndBias) {
  Case c = small_case("l2", Format::bfloat16, 2, 1, 2.0);
  c.contract.terms.score.bias_order = QKCTS_BIAS_AFTER_SOFTCAP;
  c.inputs.set(Input::bias, Tensor::zeros(ElementType::bfloat16, {1, 1, 1, 2}));
  set(c, Input::q, {3});
  set(c, Input::k, {5, -7});
  set(c, Input::bias, {1, 5});  // 2 + 1 = -2 + 5
  set(c, Input::v, {1, 1 + 0x1p-7});
  EXPECT_EQ(only(c, QKCTS_STAGE_OUTPUT).value, 1.0);
  set(c, Input::bias, {1, 5.03125});
  EXPECT_EQ(only(c, QKCTS_STAGE_OUTPUT).value, 1 + 0x1p-7);
}

TEST(ExactCases, OppositeValuesOfEqualScoresCancel) {
  Case c = small_case("l2", Format::binary32, 2, 3, 0.7);
  set(c, Input::q, {1, 1, 3});
  set(c, Input::k, {1, 2, 2, 2, 1, 2});
  set(c, Input::v, {0.3f, -0.3f});
  const Element o = only(c, QKCTS_STAGE_OUTPUT);
  EXPECT_EQ(o.hi, 0.0);
  EXPECT_EQ(o.rule, ElementRule::budget_exact);
}

// Two capped scores differ by about e^(-2e9): the output stands beside a tie on an unknown side. No rule, no guess.
TEST(ExactCases, UndecidableIsRefused) {
  Case c = small_case("plain", Format::bfloat16, 2, 1, 1.0);
  c.slug = "planted/undecidable";
  c.contract.terms.score.softcap = 1;
  set(c, Input::q, {0x1p+30});
  set(c, Input::k, {1, 2});
  set(c, Input::v, {1, 1 + 0x1p-7});
  try {
    evaluate(c, every_row(c));
    FAIL();
  } catch (const UndecidedError& error) {
    const std::string message = error.what();
    for (const char* part : {"planted/undecidable", "output[b0 h0 t0 c0]", "4098 bits", "between 1.00390625"})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  set(c, Input::v, {1, 1 + 0x1p-6});
  EXPECT_EQ(only(c, QKCTS_STAGE_OUTPUT).value, 1 + 0x1p-7);  // no tie: decided
}

}  // namespace
}  // namespace qkcts
