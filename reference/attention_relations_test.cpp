// SPDX-License-Identifier: Apache-2.0
// Relations between cases of a whole attention (P1, P4 to P6, P9 to P11), shown on proven values.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/attention.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

Case small_case(const char* contract, qkcts_shape shape, SampleValues values = SampleValues::full) {
  SampleSpec spec;
  spec.format = Format::binary64;
  spec.values = values;
  spec.shape = shape;
  return sample_case(shipped_contract(contract), spec);
}

ReferenceResult values_of(const Case& c) {
  return evaluate(c, every_row(c));
}

// z of the elements of a stage: hi and the rest must agree.
struct Values {
  std::vector<double> hi;
  std::vector<std::int16_t> lo;
  bool operator==(const Values&) const = default;
};
Values stage(const ReferenceResult& result, qkcts_stage which) {
  return {result.stages[which].hi, result.stages[which].lo};
}

void transform(Case& c, Input input, double factor) {
  std::vector<double> values = c.inputs.at(input).values();
  for (double& value : values) value *= factor;
  set_values(c, input, values);
}

double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::fabs(value));
  return result;
}

// P1: Cauchy and Schwarz bound the scores of normalised vectors; q = k comes near; without the norm nothing holds them.
TEST(AttentionRelations, P1NormsBoundScores) {
  const qkcts_shape shape{1, 1, 1, 4, 4, 8, 2};
  struct Row {
    const char* contract;
    double bound;
  };
  const double rms_bound = 8 / std::sqrt(8.0);
  for (const Row& row : {Row{"clause_norm_on_q_only", 0}, Row{"vit22b_rms_uncentered", rms_bound},
                         Row{"flax_qk_layernorm", rms_bound}, Row{"henry2020_l2_cross", 3.0}}) {
    Case c = small_case(row.contract, shape);
    for (const Input gain : {Input::q_gain, Input::k_gain})
      if (c.inputs.has(gain)) set_values(c, gain, std::vector<double>(c.inputs.at(gain).count(), 1.0));
    if (c.inputs.has(Input::scale)) set_values(c, Input::scale, std::vector<double>{3.0});
    if (c.inputs.has(Input::kv_len)) set_values(c, Input::kv_len, std::vector<double>{4});
    transform(c, Input::q, 64);
    set_values(c, Input::k, c.inputs.at(Input::q).values());
    const double found = largest(values_of(c).stages[QKCTS_STAGE_SCORES].hi);
    if (row.bound == 0) {
      EXPECT_GT(found, rms_bound) << "the control: a norm on one side bounds nothing";
    } else {
      EXPECT_LE(found, row.bound * (1 + 0x1p-40)) << row.contract;
      EXPECT_GE(found, row.bound * (1 - 1e-3)) << row.contract;
    }
  }
}

TEST(AttentionRelations, P1TheCapBoundsScores) {
  const double cap = shipped_contract("clause_softcap_inexact").terms.score.softcap;
  Case c = small_case("clause_softcap_inexact", {1, 2, 1, 3, 4, 8, 2});
  transform(c, Input::q, 64);
  const ReferenceResult result = values_of(c);
  EXPECT_GT(largest(result.stages[QKCTS_STAGE_SCORES].hi), cap);
  EXPECT_LE(largest(result.stages[QKCTS_STAGE_CAPPED].hi), cap);
  EXPECT_GE(largest(result.stages[QKCTS_STAGE_CAPPED].hi), 0.9 * cap);
}

// P4: |s| <= B gives p_max <= 1 / (1 + (n - 1) e^(-2B)); entropy is at least -ln of that.
TEST(AttentionRelations, P4BoundedScoresBoundTheWeights) {
  const Case c = small_case("vit22b_rms_uncentered", {1, 2, 1, 3, 7, 8, 2});
  const ReferenceResult result = values_of(c);
  const double bound = largest(result.stages[QKCTS_STAGE_SCORES].hi);
  const double most = 1 / (1 + 6 * std::exp(-2 * bound));
  for (const double p_max : result.statistics.p_max) EXPECT_LE(p_max, most + 1e-6);
  for (const double entropy : result.statistics.entropy) EXPECT_GE(entropy, -std::log(most) - 2e-6);
}

// P5: a common shift of the scores leaves p, and moves lse by itself; a lower temperature keeps the order and lowers
// the entropy.
TEST(AttentionRelations, P5ShiftAndTemperature) {
  Case c = small_case("clause_bias_additive", {1, 2, 1, 3, 5, 8, 2});
  const std::size_t count = c.inputs.at(Input::bias).count();
  set_values(c, Input::bias, std::vector<double>(count, 0.0));
  const ReferenceResult plain = values_of(c);
  set_values(c, Input::bias, std::vector<double>(count, 3.25));
  const ReferenceResult shifted = values_of(c);
  EXPECT_EQ(stage(shifted, QKCTS_STAGE_PROBS), stage(plain, QKCTS_STAGE_PROBS));
  EXPECT_EQ(stage(shifted, QKCTS_STAGE_OUTPUT), stage(plain, QKCTS_STAGE_OUTPUT));
  EXPECT_NE(stage(shifted, QKCTS_STAGE_LSE), stage(plain, QKCTS_STAGE_LSE));

  const auto at_temperature = [&](double t) {
    c.contract.terms.score.temperature = t;
    return values_of(c);
  };
  const ReferenceResult cold = at_temperature(0.5), warm = at_temperature(2);
  for (std::size_t row = 0; row < cold.statistics.entropy.size(); ++row) {
    EXPECT_LT(cold.statistics.entropy[row], warm.statistics.entropy[row]);
    const auto first = static_cast<std::ptrdiff_t>(row * 5);
    const auto argmax = [&](const ReferenceResult& r) {
      const std::vector<double>& p = r.stages[QKCTS_STAGE_PROBS].hi;
      return std::max_element(p.begin() + first, p.begin() + first + 5) - p.begin();
    };
    EXPECT_EQ(argmax(cold), argmax(warm));
  }
}

// P6: the weights of a row sum to 1, with a sink to less; outputs lie in the hull of the visible values.
TEST(AttentionRelations, P6WeightsSumToOneAndOutputsLieInTheHull) {
  for (const char* contract : {"clause_window_both", "clause_sink_column"}) {
    const Case c = small_case(contract, {1, 2, 1, 4, 6, 8, 3});
    const bool sink = c.inputs.has(Input::sink);
    const ReferenceResult result = values_of(c);
    const Visibility visibility(c);
    const std::vector<double> v = c.inputs.at(Input::v).values();
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t t = 0; t < 4; ++t) {
        double sum = 0;
        double low[3], high[3];
        for (int d = 0; d < 3; ++d) {
          low[d] = sink ? 0 : std::numeric_limits<double>::infinity();
          high[d] = sink ? 0 : -std::numeric_limits<double>::infinity();
        }
        for (std::int64_t key = 0; key < 6; ++key) {
          if (!visibility.visible(0, h, t, key)) continue;
          sum += result.stages[QKCTS_STAGE_PROBS].hi[static_cast<std::size_t>((h * 4 + t) * 6 + key)];
          for (int d = 0; d < 3; ++d) {
            low[d] = std::min(low[d], v[static_cast<std::size_t>(key * 3 + d)]);
            high[d] = std::max(high[d], v[static_cast<std::size_t>(key * 3 + d)]);
          }
        }
        if (sink) {
          EXPECT_LT(sum, 1 - 1e-6);
        } else {
          EXPECT_NEAR(sum, 1, 1e-14);
        }
        for (int d = 0; d < 3; ++d) {
          const double o = result.stages[QKCTS_STAGE_OUTPUT].hi[static_cast<std::size_t>((h * 4 + t) * 3 + d)];
          EXPECT_GE(o, low[d]);
          EXPECT_LE(o, high[d]);
        }
      }
  }
}

TEST(AttentionRelations, P9FactorsOfVAndCommonSigns) {
  Case c = small_case("qwen3_rmsnorm", {1, 4, 2, 3, 5, 8, 2});
  const ReferenceResult before = values_of(c);
  for (const double factor : {0x1p9, -1.0}) {
    Case changed = c;
    transform(changed, Input::v, factor);
    const ReferenceResult after = values_of(changed);
    EXPECT_EQ(stage(after, QKCTS_STAGE_PROBS), stage(before, QKCTS_STAGE_PROBS));
    Values expected = stage(before, QKCTS_STAGE_OUTPUT);
    for (double& hi : expected.hi) hi *= factor;
    if (factor < 0)
      for (std::int16_t& lo : expected.lo) lo = static_cast<std::int16_t>(-lo);
    EXPECT_EQ(stage(after, QKCTS_STAGE_OUTPUT), expected);
  }
  transform(c, Input::q, -1);
  EXPECT_NE(stage(values_of(c), QKCTS_STAGE_SCORES), stage(before, QKCTS_STAGE_SCORES)) << "the control: q alone";
  transform(c, Input::k, -1);
  EXPECT_EQ(stage(values_of(c), QKCTS_STAGE_SCORES), stage(before, QKCTS_STAGE_SCORES));
}

TEST(AttentionRelations, P9JointPermutationOfKeys) {
  Case c = small_case("vit22b_rms_uncentered", {1, 2, 2, 3, 4, 8, 2});
  const ReferenceResult before = values_of(c);
  const std::size_t order[] = {2, 0, 3, 1};
  const auto permute = [&](Input input, std::size_t length) {
    const std::vector<double> old = c.inputs.at(input).values();
    std::vector<double> values = old;
    for (std::size_t head = 0; head < 2; ++head)
      for (std::size_t key = 0; key < 4; ++key)
        for (std::size_t d = 0; d < length; ++d)
          values[(head * 4 + key) * length + d] = old[(head * 4 + order[key]) * length + d];
    set_values(c, input, values);
  };
  permute(Input::k, 8);
  EXPECT_NE(stage(values_of(c), QKCTS_STAGE_OUTPUT), stage(before, QKCTS_STAGE_OUTPUT)) << "the control: k alone";
  permute(Input::v, 2);
  EXPECT_EQ(stage(values_of(c), QKCTS_STAGE_OUTPUT), stage(before, QKCTS_STAGE_OUTPUT));
  EXPECT_EQ(stage(values_of(c), QKCTS_STAGE_LSE), stage(before, QKCTS_STAGE_LSE));
}

TEST(AttentionRelations, P10GroupedHeadsAreRepeatedHeads) {
  for (const bool tile : {false, true}) {
    Case grouped = small_case("vit22b_rms_uncentered", {1, 4, 2, 3, 4, 8, 2});
    grouped.contract.terms.heads.mapping = tile ? QKCTS_HEADS_TILE : QKCTS_HEADS_BLOCK;
    Case repeated = grouped;
    repeated.shape.kv_heads = 4;
    for (const Input input : {Input::k, Input::v}) {
      const Tensor& few = grouped.inputs.at(input);
      std::vector<std::int64_t> extents = few.shape;
      extents[1] = 4;
      Tensor many = Tensor::zeros(few.type, extents);
      const std::size_t block = few.count() / 2;
      for (std::size_t h = 0; h < 4; ++h)
        for (std::size_t i = 0; i < block; ++i)
          many.set_pattern(h * block + i, few.pattern((tile ? h % 2 : h / 2) * block + i));
      repeated.inputs.set(input, many);
    }
    const Values few = stage(values_of(grouped), QKCTS_STAGE_OUTPUT);
    EXPECT_EQ(few, stage(values_of(repeated), QKCTS_STAGE_OUTPUT));
    grouped.contract.terms.heads.mapping = tile ? QKCTS_HEADS_BLOCK : QKCTS_HEADS_TILE;
    EXPECT_NE(few, stage(values_of(grouped), QKCTS_STAGE_OUTPUT)) << "the control: the other mapping";
  }
}

// P11: what comes later changes nothing before it.
TEST(AttentionRelations, P11ACausalRowDependsOnItsPrefixAlone) {
  Case c = small_case("clause_causal_top_left", {1, 2, 1, 5, 5, 8, 2});
  const Values before = stage(values_of(c), QKCTS_STAGE_OUTPUT);
  for (const Input input : {Input::k, Input::v}) {
    std::vector<double> values = c.inputs.at(input).values();
    const std::size_t length = values.size() / 5;
    for (std::size_t i = 3 * length; i < values.size(); ++i) values[i] = 1000 - values[i];
    set_values(c, input, values);
  }
  const Values after = stage(values_of(c), QKCTS_STAGE_OUTPUT);
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t t = 0; t < 5; ++t)
      for (std::size_t d = 0; d < 2; ++d) {
        const std::size_t i = (h * 5 + t) * 2 + d;
        EXPECT_EQ(before.hi[i] == after.hi[i] && before.lo[i] == after.lo[i], t < 3) << t;
      }
}

}  // namespace
}  // namespace qkcts
