// SPDX-License-Identifier: Apache-2.0
// Projections: relations to cases without one, and values on a rounding boundary.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "reference/attention.hpp"
#include "reference/exact_vector.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

using Values = std::vector<double>;

struct Stage {
  std::vector<double> hi;
  std::vector<std::int16_t> lo;
  bool operator==(const Stage&) const = default;
};

Stage stage(const Case& c, qkcts_stage which, Tier tier = Tier::automatic) {
  const ReferenceResult result = evaluate(c, every_row(c), tier);
  return {result.stages[which].hi, result.stages[which].lo};
}

// The same case with rows of q and k that hold all heads of a token, and matrices that take them apart again.
Case projected(const Case& plain) {
  Case c = plain;
  c.contract.terms.projection.form = QKCTS_PROJECTION_LINEAR;
  const struct {
    Input x, rows, weight;
    std::int64_t heads, length;
  } sides[] = {{Input::q, Input::q_x, Input::q_weight, c.shape.q_heads, c.shape.q_len},
               {Input::k, Input::k_x, Input::k_weight, c.shape.kv_heads, c.shape.k_len}};
  for (const auto& side : sides) {
    const Tensor& x = plain.inputs.at(side.x);
    const std::int64_t width = side.heads * c.shape.head_dim;
    Tensor rows = Tensor::zeros(x.type, {c.shape.batch, side.length, width});
    for (std::int64_t row = 0; row < c.shape.batch * side.heads * side.length; ++row)
      for (std::int64_t d = 0; d < c.shape.head_dim; ++d) {
        const std::int64_t token = row / (side.heads * side.length) * side.length + row % side.length;
        const std::int64_t lane = row / side.length % side.heads * c.shape.head_dim + d;
        rows.set_pattern(static_cast<std::size_t>(token * width + lane),
                         x.pattern(static_cast<std::size_t>(row * c.shape.head_dim + d)));
      }
    Tensor weight = Tensor::zeros(x.type, {width, width});
    for (std::int64_t e = 0; e < width; ++e)
      weight.set_pattern(static_cast<std::size_t>(e * (width + 1)), encode(c.inputs.format, 1.0));
    c.inputs.tensors[static_cast<std::size_t>(side.x)].reset();
    c.inputs.set(side.rows, std::move(rows));
    c.inputs.set(side.weight, std::move(weight));
  }
  return c;
}

TEST(Projection, IdentityWeightsAreNoProjection) {
  for (const char* name : {"plain_sdpa", "qwen3_rmsnorm", "olmo2_full_width", "flax_qk_layernorm",
                           "clause_rope_then_norm", "clause_rope_computed", "clause_clip_before"}) {
    for (const Tier tier : {Tier::automatic, Tier::mpfr}) {
      SampleSpec spec;
      spec.shape = {2, 4, 2, 3, 4, 8, 2};
      const Case plain = sample_case(shipped_contract(name), spec);
      Case c = projected(plain);
      for (const qkcts_stage s : all_stages) {
        if ((stages_of(plain.contract.terms) & bit(s)) == 0) continue;
        EXPECT_EQ(stage(c, s, tier), stage(plain, s, tier)) << name;
      }
      EXPECT_EQ(stage(c, QKCTS_STAGE_Q_PROJ, tier).hi, plain.inputs.at(Input::q).values()) << name;
      EXPECT_EQ(stage(c, QKCTS_STAGE_K_PROJ, tier).hi, plain.inputs.at(Input::k).values()) << name;
      // The control: one weight more.
      Values weight = c.inputs.at(Input::k_weight).values();
      weight[1] = 0x1p-20;
      set_values(c, Input::k_weight, weight);
      EXPECT_NE(stage(c, QKCTS_STAGE_SCORES, tier), stage(plain, QKCTS_STAGE_SCORES, tier)) << name;
    }
  }
}

// A row that is normalised before an identity projection is a vector that is normalised over the full width.
TEST(Projection, NormBeforeAnIdentityIsTheFullWidthNorm) {
  Contract contract = shipped_contract("olmo2_full_width");
  SampleSpec spec;
  spec.shape = {2, 4, 2, 3, 4, 8, 2};
  const Case plain = sample_case(contract, spec);
  Case c = projected(plain);
  qkcts_contract& terms = c.contract.terms;
  terms.projection.q_input = terms.q_norm;
  terms.projection.k_input = terms.k_norm;
  terms.q_norm = terms.k_norm = qkcts_norm{};
  for (const auto& [from, to] : {std::pair{Input::q_gain, Input::q_x_gain}, {Input::k_gain, Input::k_x_gain}}) {
    c.inputs.set(to, plain.inputs.at(from));
    c.inputs.tensors[static_cast<std::size_t>(from)].reset();
  }
  EXPECT_EQ(stage(c, QKCTS_STAGE_Q_PROJ), stage(plain, QKCTS_STAGE_Q_NORM));
  EXPECT_EQ(stage(c, QKCTS_STAGE_K_PROJ), stage(plain, QKCTS_STAGE_K_NORM));
  EXPECT_EQ(stage(c, QKCTS_STAGE_OUTPUT), stage(plain, QKCTS_STAGE_OUTPUT));
  terms.projection.q_input.eps *= 1.0001;
  EXPECT_NE(stage(c, QKCTS_STAGE_Q_PROJ), stage(plain, QKCTS_STAGE_Q_NORM)) << "the control: another epsilon";
}

// P10: a key head that several query heads read is a head whose columns of the matrix are repeated.
TEST(Projection, GroupedHeadsAreRepeatedColumns) {
  SampleSpec spec;
  spec.shape = {1, 4, 2, 3, 4, 8, 2};
  const Case grouped = sample_case(shipped_contract("clause_projection"), spec);
  const auto repeated = [&](bool tile) {
    Case c = grouped;
    c.shape.kv_heads = 4;
    const auto repeat = [&](Input input, std::int64_t before, std::int64_t block) {
      const Tensor& few = grouped.inputs.at(input);
      std::vector<std::int64_t> extents = few.shape;
      for (std::int64_t& extent : extents)
        if (extent == 2 || extent == 16) extent *= 2;
      Tensor many = Tensor::zeros(few.type, extents);
      for (std::int64_t e = 0; e < before; ++e)
        for (std::int64_t h = 0; h < 4; ++h)
          for (std::int64_t i = 0; i < block; ++i)
            many.set_pattern(static_cast<std::size_t>((e * 4 + h) * block + i),
                             few.pattern(static_cast<std::size_t>((e * 2 + (tile ? h % 2 : h / 2)) * block + i)));
      c.inputs.set(input, std::move(many));
    };
    repeat(Input::k_weight, spec.width, 8);
    Tensor v = Tensor::zeros(ElementType::binary32, {1, 4, 4, 2});
    for (std::size_t i = 0; i < v.count(); ++i) {
      const std::size_t h = i / 8;
      v.set_pattern(i, grouped.inputs.at(Input::v).pattern((tile ? h % 2 : h / 2) * 8 + i % 8));
    }
    c.inputs.set(Input::v, std::move(v));
    return stage(c, QKCTS_STAGE_OUTPUT);
  };
  EXPECT_EQ(repeated(false), stage(grouped, QKCTS_STAGE_OUTPUT));
  EXPECT_NE(repeated(true), stage(grouped, QKCTS_STAGE_OUTPUT)) << "the control: the other mapping";
}

// One query, one head of `width` lanes, rows of two numbers.
struct SmallProjection {
  SmallProjection(Format format, std::int64_t keys, std::int64_t width,
                  const std::function<void(qkcts_contract&)>& change) {
    Contract contract = shipped_contract("plain_sdpa");
    contract.name = "projection_tie";
    contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
    contract.terms.score.scale_value = 1;
    contract.terms.projection.form = QKCTS_PROJECTION_LINEAR;
    change(contract.terms);
    SampleSpec spec;
    spec.format = format;
    spec.shape = {1, 1, 1, 1, keys, width, 1};
    spec.width = 2;
    c = sample_case(contract, spec);
  }

  struct Element {
    double value, hi;
    int lo;
    ElementRule rule;
  };
  Element only(qkcts_stage which, std::size_t i = 0) const {
    const ReferenceResult result = evaluate(c, every_row(c));
    const ProvenStage& proven = result.stages[which];
    return {decode(stage_format(which, c.inputs.format), proven.expected[i]), proven.hi[i], proven.lo[i],
            proven.rule[i]};
  }
  void set(Input input, const Values& values) { set_values(c, input, values); }

  Case c;
};

void use_l2(qkcts_norm& norm) {
  norm.applied = 1;
  norm.statistic = QKCTS_SUM_SQUARE;
}

TEST(Projection, ProductOnATie) {
  SmallProjection p(Format::bfloat16, 1, 1, [](qkcts_contract&) {});
  p.set(Input::q_x, {1, 1});
  p.set(Input::q_weight, {1, 0x1p-8});
  const auto tie = p.only(QKCTS_STAGE_Q_PROJ);
  EXPECT_EQ(tie.hi, 1 + 0x1p-8);
  EXPECT_EQ(tie.value, 1.0);
  p.set(Input::q_weight, {1, 0x1.02p-8});
  EXPECT_EQ(p.only(QKCTS_STAGE_Q_PROJ).value, 1 + 0x1p-7) << "the control: a little more";
}

TEST(Projection, ProductThatCancels) {
  SmallProjection p(Format::binary64, 1, 1, [](qkcts_contract& terms) { terms.projection.bias = 1; });
  p.set(Input::q_x, {0x1.8p+400, -0x1p+400});
  p.set(Input::q_weight, {0x1p+401, 0x1.8p+401});
  p.set(Input::q_weight_bias, {0});
  EXPECT_EQ(p.only(QKCTS_STAGE_Q_PROJ).hi, 0.0);
  p.set(Input::q_weight_bias, {-0x1p-1000});
  EXPECT_EQ(p.only(QKCTS_STAGE_Q_PROJ).hi, -0x1p-1000);
}

TEST(Projection, NormedRowOnATie) {
  SmallProjection p(Format::bfloat16, 1, 1, [](qkcts_contract& terms) { use_l2(terms.projection.q_input); });
  p.set(Input::q_x, {3, 4});
  p.set(Input::q_weight, {87.0 / 256, 1});  // (3 * 87/256 + 4) / 5 = 257/256
  const auto tie = p.only(QKCTS_STAGE_Q_PROJ);
  EXPECT_EQ(tie.hi, 1 + 0x1p-8);
  EXPECT_EQ(tie.lo, 0);
  EXPECT_EQ(tie.value, 1.0);
  EXPECT_EQ(tie.rule, ElementRule::budget_exact);
  p.set(Input::q_weight, {87.5 / 256, 1});
  EXPECT_EQ(p.only(QKCTS_STAGE_Q_PROJ).rule, ElementRule::budget);
}

// RMS over nine lanes of which one is not 0: y = 3 w, whatever that one is.
constexpr std::int64_t nine = 9;
void use_rms_of_nine(qkcts_contract& terms) {
  terms.q_norm.applied = 1;
  terms.q_norm.gain = QKCTS_GAIN_W;
  terms.q_norm.gain_axes = QKCTS_AXES_SCALAR;
}
Values first_column(double a, double b) {
  Values weight(2 * nine, 0.0);
  weight[0] = a;
  weight[nine] = b;
  return weight;
}

TEST(Projection, NormAfterANormOnATie) {
  SmallProjection p(Format::bfloat16, 1, nine, [](qkcts_contract& terms) {
    use_l2(terms.projection.q_input);
    use_rms_of_nine(terms);
  });
  p.set(Input::q_x, {1, 1});
  p.set(Input::q_weight, first_column(2.5, 2.5));  // 5 / sqrt 2
  p.set(Input::q_gain, {1 + 0x1p-7});
  const auto tie = p.only(QKCTS_STAGE_Q_NORM);
  EXPECT_EQ(tie.hi, 3 + 3 * 0x1p-7);
  EXPECT_EQ(tie.value, 3 + 0x1p-5);
  EXPECT_EQ(tie.rule, ElementRule::budget_exact);
}

// The bias makes the sum of squares irrational: (1 + sqrt 2)^2 / 9, and the root of it one of a root.
TEST(Projection, NormOfASumWithARootOnATie) {
  for (const double bias : {1.0, -1.5}) {
    SmallProjection p(Format::bfloat16, 1, nine, [](qkcts_contract& terms) {
      use_l2(terms.projection.q_input);
      use_rms_of_nine(terms);
      terms.projection.bias = 1;
    });
    p.set(Input::q_x, {1, 1});
    p.set(Input::q_weight, first_column(1, 1));  // sqrt 2
    Values biases(nine, 0.0);
    biases[0] = bias;
    p.set(Input::q_weight_bias, biases);
    p.set(Input::q_gain, {1 + 0x1p-7});
    const double sign = bias > -1 ? 1 : -1;
    const auto tie = p.only(QKCTS_STAGE_Q_NORM);
    EXPECT_EQ(tie.hi, sign * (3 + 3 * 0x1p-7));
    EXPECT_EQ(tie.value, sign * (3 + 0x1p-5));
    EXPECT_EQ(tie.rule, ElementRule::budget_exact);
    p.c.contract.terms.q_norm.eps = 0x1p-40;
    EXPECT_EQ(p.only(QKCTS_STAGE_Q_NORM).rule, ElementRule::budget) << "the control: no tie";
  }
}

// Different keys with equal irrational scores: their mean is a tie.
TEST(Projection, EqualScoresOfDifferentRows) {
  SmallProjection p(Format::bfloat16, 2, 2, [](qkcts_contract& terms) {
    use_l2(terms.projection.k_input);
    use_l2(terms.k_norm);
    terms.projection.bias = 1;
  });
  p.set(Input::q_x, {1, 1});
  p.set(Input::q_weight, {1, 0, 0, 1});
  p.set(Input::q_weight_bias, {0, 0});
  p.set(Input::k_x, {1, 2, 2, 1});
  p.set(Input::k_weight, {1, 0, 0, 1});
  p.set(Input::k_weight_bias, {0.5, 0.5});  // (1/r + 1/2, 2/r + 1/2) and the two exchanged
  p.set(Input::v, {1, 1 + 0x1p-7});
  const auto tie = p.only(QKCTS_STAGE_OUTPUT);
  EXPECT_EQ(tie.value, 1.0);
  EXPECT_EQ(tie.rule, ElementRule::budget_exact);
  p.set(Input::k_weight_bias, {0.5, 0.25});
  EXPECT_EQ(p.only(QKCTS_STAGE_OUTPUT).rule, ElementRule::budget);
}

TEST(Projection, ZeroOverZeroNamesTheNorm) {
  const auto message = [](const Case& c) -> std::string {
    try {
      evaluate(c, every_row(c));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  SmallProjection before(Format::binary32, 1, 2, [](qkcts_contract& terms) { use_l2(terms.projection.q_input); });
  before.set(Input::q_x, {0, 0});
  EXPECT_NE(message(before.c).find("the norm of q_x divides 0 by 0"), std::string::npos) << message(before.c);
  SmallProjection after(Format::binary32, 1, 2, [](qkcts_contract& terms) { use_l2(terms.k_norm); });
  after.set(Input::k_x, {1, -1});
  after.set(Input::k_weight, {2, 3, 2, 3});
  EXPECT_NE(message(after.c).find("the norm of k divides 0 by 0"), std::string::npos) << message(after.c);
}

// max(|x|, 1) = 1: numbers over a divisor that is written as 1, and offsets beside them.
TEST(Projection, OffsetsBesideADivisorOfOne) {
  SmallProjection p(Format::binary32, 1, 2, [](qkcts_contract& terms) {
    use_l2(terms.q_norm);
    terms.q_norm.root = QKCTS_MAX_ROOT;
    terms.q_norm.eps = 1;
    terms.q_norm.bias_axes = QKCTS_AXES_HEAD_DIM;
  });
  p.set(Input::q_x, {0.25, 0.5});
  p.set(Input::q_weight, {1, 0, 0, 1});
  p.set(Input::q_bias, {3, -7});
  const CaseValues values(p.c);
  const ExactVector y = exact_vector(values, Side::query, 0, Upto::norm);
  EXPECT_EQ((y.entry(0) - RootSum(Rational(3.25))).sign(), 0);
  EXPECT_EQ((y.entry(1) - RootSum(Rational(-6.5))).sign(), 0);
  EXPECT_NE((y.entry(1) - RootSum(Rational(-7))).sign(), 0);
}

}  // namespace
}  // namespace qkcts
