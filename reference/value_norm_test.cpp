// SPDX-License-Identifier: Apache-2.0
// The norm of v: relations to the norm of k and to a contract without one, outputs on a rounding boundary, what is not
// judged and what is refused.
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "reference/attention.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

using Values = std::vector<double>;

struct Stage {
  std::vector<double> hi;
  std::vector<std::int16_t> lo;
  std::vector<ElementRule> rule;
  bool operator==(const Stage& other) const { return hi == other.hi && lo == other.lo; }
};

Stage stage(const Case& c, qkcts_stage which, Tier tier = Tier::automatic) {
  const ReferenceResult result = evaluate(c, every_row(c), tier);
  const ProvenStage& proven = result.stages[which];
  return {proven.hi, proven.lo, proven.rule};
}

std::string refusal(const Case& c) {
  try {
    evaluate(c, every_row(c));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

// v holds the numbers of k, under the norm of k.
TEST(ValueNorm, IsTheNormOfKAppliedToV) {
  for (const char* name : {"qwen3_rmsnorm", "olmo2_full_width", "flax_qk_layernorm", "henry2020_l2", "clause_norm_bias",
                           "clause_gain_head", "clause_clip_before", "clause_clip_after", "clause_clip_without_norm"}) {
    for (const Tier tier : {Tier::automatic, Tier::mpfr}) {
      Contract contract = shipped_contract(name);
      contract.terms.v_norm = contract.terms.k_norm;
      contract.terms.v_range = contract.terms.k_range;
      SampleSpec spec;
      spec.shape = {2, 4, 2, 3, 5, 8, 8};
      Case c = sample_case(contract, spec);
      set_values(c, Input::v, c.inputs.at(Input::k).values());
      for (const auto& [from, to] : {std::pair{Input::k_gain, Input::v_gain}, {Input::k_bias, Input::v_bias}})
        if (c.inputs.has(from)) set_values(c, to, c.inputs.at(from).values());
      EXPECT_EQ(stage(c, QKCTS_STAGE_V_NORM, tier), stage(c, QKCTS_STAGE_K_NORM, tier)) << name;
      Values v = c.inputs.at(Input::v).values();
      v[3] = -v[3];
      set_values(c, Input::v, v);
      EXPECT_NE(stage(c, QKCTS_STAGE_V_NORM, tier), stage(c, QKCTS_STAGE_K_NORM, tier)) << name;
    }
  }
}

// Where v^ is representable, the output is that of a contract without the norm for v^.
TEST(ValueNorm, OutputIsThatOfTheNormedValues) {
  for (const Tier tier : {Tier::automatic, Tier::mpfr}) {
    Contract contract = shipped_contract("qwen3_rmsnorm");
    qkcts_norm& norm = contract.terms.v_norm;
    norm.applied = 1;
    norm.statistic = QKCTS_SUM_SQUARE;
    SampleSpec spec;
    spec.shape = {1, 4, 2, 3, 5, 8, 2};
    Case normed = sample_case(contract, spec);
    contract.terms.v_norm.applied = 0;
    Case plain = sample_case(contract, spec);
    Values v, unit;
    for (std::size_t row = 0; row < 10; ++row) {  // multiples of (1, 0), (0, 1) and their opposites
      const double sign = row % 3 == 0 ? -1 : 1, size = 0.25 + static_cast<double>(row);
      for (const bool lane : {row % 2 == 0, row % 2 == 1}) {
        unit.push_back(lane ? sign : 0.0);
        v.push_back(lane ? sign * size : 0.0);
      }
    }
    set_values(normed, Input::v, v);
    set_values(plain, Input::v, unit);
    EXPECT_EQ(stage(normed, QKCTS_STAGE_OUTPUT, tier), stage(plain, QKCTS_STAGE_OUTPUT, tier));
    EXPECT_EQ(stage(normed, QKCTS_STAGE_V_NORM, tier).hi, unit);
    set_values(plain, Input::v, v);
    EXPECT_NE(stage(normed, QKCTS_STAGE_OUTPUT, tier), stage(plain, QKCTS_STAGE_OUTPUT, tier)) << "the control";
  }
}

TEST(ValueNorm, NotAppliedIsNoNorm) {
  Contract contract = shipped_contract("qwen3_rmsnorm");
  const Case plain = sample_case(contract, {});
  contract.terms.v_norm.center = 1;  // ignored
  contract.terms.v_norm.eps = 3;
  contract.terms.v_range.multiplier = 1;
  const Case same = sample_case(contract, {});
  EXPECT_EQ(stages_of(contract.terms) & bit(QKCTS_STAGE_V_NORM), 0u);
  EXPECT_EQ(stage(same, QKCTS_STAGE_OUTPUT), stage(plain, QKCTS_STAGE_OUTPUT));
}

// One query, one head, nine lanes of v, mean of squares without epsilon, gain w: of a row with one number only, that
// number becomes +-3 w.
struct SmallValues {
  explicit SmallValues(
      std::int64_t keys, const std::function<void(qkcts_contract&)>& change = [](qkcts_contract&) {}) {
    Contract contract = shipped_contract("plain_sdpa");
    contract.name = "value_tie";
    contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
    contract.terms.score.scale_value = 0.7;
    contract.terms.v_norm.applied = 1;
    contract.terms.v_norm.gain = QKCTS_GAIN_W;
    contract.terms.v_norm.gain_axes = QKCTS_AXES_SCALAR;
    change(contract.terms);
    SampleSpec spec;
    spec.format = Format::bfloat16;
    spec.shape = {1, 1, 1, 1, keys, 1, 9};
    c = sample_case(contract, spec);
    set_values(c, Input::q, Values{1});
    set_values(c, Input::k, Values(static_cast<std::size_t>(keys), 1.0));
    if (c.inputs.has(Input::v_gain)) set_values(c, Input::v_gain, Values{gain});
    v_.assign(static_cast<std::size_t>(9 * keys), 0.0);
  }

  void row(std::size_t key, double first, double second = 0) {
    v_[9 * key] = first;
    v_[9 * key + 1] = second;
    set_values(c, Input::v, v_);
  }
  struct Element {
    double value, hi;
    int lo;
    ElementRule rule;
  };
  Element output(Tier tier = Tier::automatic) const {
    const ReferenceResult result = evaluate(c, every_row(c), tier);
    const ProvenStage& proven = result.stages[QKCTS_STAGE_OUTPUT];
    return {decode(c.inputs.format, proven.expected[0]), proven.hi[0], proven.lo[0], proven.rule[0]};
  }

  static constexpr double gain = 1 + 0x1p-7;
  static constexpr double tie = 3 * gain;  // in the middle of two bfloat16 numbers
  static constexpr double even = 3 + 0x1p-5;
  Case c;

 private:
  Values v_;
};

TEST(ValueNorm, OneVisibleKeyOnATie) {
  SmallValues values(1);
  values.row(0, 5);
  for (const Tier tier : {Tier::automatic, Tier::mpfr}) {
    const SmallValues::Element o = values.output(tier);
    EXPECT_EQ(o.hi, SmallValues::tie);
    EXPECT_EQ(o.lo, 0);
    EXPECT_EQ(o.value, SmallValues::even);
    EXPECT_EQ(o.rule, ElementRule::budget_exact);
  }
  values.row(0, 5, 0x1p-40);
  EXPECT_EQ(values.output().rule, ElementRule::budget);
  EXPECT_EQ(values.output().value, 3 + 0x1p-6) << "the control: below the tie";
}

TEST(ValueNorm, EqualScoresAndAMeanOnATie) {
  SmallValues values(2);
  values.row(0, 5);
  values.row(1, 7);
  const SmallValues::Element o = values.output();
  EXPECT_EQ(o.hi, SmallValues::tie);
  EXPECT_EQ(o.value, SmallValues::even);
  EXPECT_EQ(o.rule, ElementRule::budget_exact);
  values.row(1, -7);
  EXPECT_EQ(values.output().hi, 0.0);
  set_values(values.c, Input::k, Values{1, 1.125});
  EXPECT_NE(values.output().rule, ElementRule::budget_exact) << "the control: other scores";
}

// Roots of different numbers that are multiples of each other: 3/sqrt 2 and -3/sqrt 2 from (1, 1) and (-6, 6).
TEST(ValueNorm, IrrationalValuesThatCancel) {
  SmallValues values(4);
  values.row(0, 1, 1);
  values.row(1, -6, 6);
  values.row(2, 5);
  values.row(3, 5);
  const SmallValues::Element o = values.output();  // (6 w)/4
  EXPECT_EQ(o.hi, SmallValues::tie / 2);
  EXPECT_EQ(o.value, SmallValues::even / 2);
  EXPECT_EQ(o.rule, ElementRule::budget_exact);
  values.row(1, -6, 5);
  EXPECT_EQ(values.output().rule, ElementRule::budget);
}

// Of many keys, where a RootSum would have 2^40 terms.
TEST(ValueNorm, ManyKeysWithDifferentRoots) {
  SmallValues values(80);
  for (std::size_t i = 0; i < 40; ++i) {
    values.row(2 * i, 1 + static_cast<double>(i));
    values.row(2 * i + 1, 1 + static_cast<double>(i));
  }
  EXPECT_EQ(values.output().value, SmallValues::even);
  for (std::size_t i = 0; i < 40; ++i) {  // as many opposites
    values.row(2 * i, 1 + static_cast<double>(i), 1);
    values.row(2 * i + 1, -1 - static_cast<double>(i), 1);
  }
  const SmallValues::Element o = values.output();
  EXPECT_EQ(o.hi, 0.0);
  EXPECT_EQ(o.rule, ElementRule::budget_exact);
}

void hide_all(qkcts_contract& terms) {
  terms.mask.boolean = 1;
  terms.mask.empty_row = QKCTS_EMPTY_UNIFORM;
}

TEST(ValueNorm, MeanOfAnEmptyRow) {
  SmallValues values(3, hide_all);
  set_values(values.c, Input::mask, Values{0, 0, 0});
  for (std::size_t key = 0; key < 3; ++key) values.row(key, 2 + static_cast<double>(key));
  for (const Tier tier : {Tier::automatic, Tier::mpfr}) {
    const SmallValues::Element tie = values.output(tier);
    EXPECT_EQ(tie.hi, SmallValues::tie);
    EXPECT_EQ(tie.value, SmallValues::even);
    EXPECT_EQ(tie.rule, ElementRule::budget_exact);
  }
  values.row(2, 1, 2);  // 3 w (2 + 1/sqrt 5) / 3
  const SmallValues::Element o = values.output();
  EXPECT_NEAR(o.hi, SmallValues::gain * (2 + 1 / std::sqrt(5.0)), 1e-14);
  EXPECT_NE(o.lo, 0);
  EXPECT_EQ(o.rule, ElementRule::budget);
}

// Rows of v that no query sees may hold anything; what they hold reaches nothing, and they are not judged.
TEST(ValueNorm, UnseenRowsAreNotJudged) {
  Contract contract = shipped_contract("clause_hidden_excluded");
  for (const std::uint32_t axis : {QKCTS_AXIS_HEAD, QKCTS_AXIS_FULL_WIDTH}) {
    contract.terms.v_norm = shipped_contract("clause_v_norm").terms.v_norm;
    contract.terms.v_norm.axis = axis;
    SampleSpec spec;
    spec.seed = 3;
    Case c = sample_case(contract, spec);
    set_values(c, Input::kv_len, Values{3});
    set_values(c, Input::k, Values(c.inputs.at(Input::k).count(), 0.75));  // nothing poisoned there
    Values v(c.inputs.at(Input::v).count());
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i * 37 % 64) / 16 - 1.75;
    const std::size_t width = 6, keys = 5;
    const auto fill = [&](double anything) {
      for (std::size_t i = 0; i < v.size(); ++i)
        if (i / width % keys >= 3) v[i] = anything;
      Tensor tensor = c.inputs.at(Input::v);
      for (std::size_t i = 0; i < v.size(); ++i) tensor.set_pattern(i, encode(Format::binary32, v[i]));
      c.inputs.set(Input::v, std::move(tensor));
    };
    fill(0.5);
    const Stage finite = stage(c, QKCTS_STAGE_V_NORM), finite_output = stage(c, QKCTS_STAGE_OUTPUT);
    fill(std::numeric_limits<double>::quiet_NaN());
    ASSERT_EQ(case_fault(c), "");
    const Stage poisoned = stage(c, QKCTS_STAGE_V_NORM);
    EXPECT_EQ(stage(c, QKCTS_STAGE_OUTPUT), finite_output);
    for (std::size_t i = 0; i < v.size(); ++i) {
      const bool seen = i / width % keys < 3;
      EXPECT_EQ(poisoned.rule[i] == ElementRule::hidden, !seen) << i;
      EXPECT_EQ(std::isnan(poisoned.hi[i]), !seen) << i;
      if (seen) {
        EXPECT_EQ(poisoned.hi[i], finite.hi[i]) << i;
      }
    }
  }
}

TEST(ValueNorm, ZeroOverZeroNamesV) {
  SmallValues values(2);
  values.row(0, 5);  // the other row is 0
  EXPECT_NE(refusal(values.c).find("the norm of v divides 0 by 0"), std::string::npos) << refusal(values.c);
}

// Under base two a root in v may cancel against a weight: -1 + sqrt(2) / sqrt(2). No rule says so, nothing is guessed.
TEST(ValueNorm, RootsAgainstWeightsAreRefused) {
  SmallValues values(2, [](qkcts_contract& terms) {
    terms.softmax.base = QKCTS_BASE_TWO;
    terms.score.scale_value = 0.5;
  });
  set_values(values.c, Input::k, Values{1, 2});
  values.row(0, -1);
  values.row(1, 1, 1);
  EXPECT_NE(refusal(values.c).find("output[b0 h0 t0 c0]: rounding not proven"), std::string::npos) << refusal(values.c);
  set_values(values.c, Input::k, Values{1, 1.5});
  EXPECT_EQ(refusal(values.c), "") << "the control: they do not cancel";
}

}  // namespace
}  // namespace qkcts
