// SPDX-License-Identifier: Apache-2.0
// Sense and layout of the rotation, and angles that are computed: against plain MPFR, and on rounding boundaries.
#include "reference/rope.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "reference/attention.hpp"
#include "reference/rounding.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

SampleSpec spec_of(Format format = Format::binary32) {
  SampleSpec spec;
  spec.format = format;
  spec.shape = {1, 2, 1, 3, 4, 8, 2};
  return spec;
}

const ProvenStage& k_rope(const ReferenceResult& result) {
  return result.stages[QKCTS_STAGE_K_ROPE];
}

// The negative sense is the positive one with -sin, bit for bit.
TEST(Rotation, NegativeSenseTurnsTheSineRound) {
  Case c = sample_case(shipped_contract("clause_rope_negative"), spec_of());
  const ReferenceResult negative = evaluate(c, every_row(c));
  c.contract.terms.rotation.sense = QKCTS_SENSE_POSITIVE;
  EXPECT_NE(k_rope(evaluate(c, every_row(c))).expected, k_rope(negative).expected);
  std::vector<double> sin = c.inputs.at(Input::sin).values();
  for (double& x : sin) x = -x;
  set_values(c, Input::sin, sin);
  const ReferenceResult positive = evaluate(c, every_row(c));
  EXPECT_EQ(k_rope(positive).expected, k_rope(negative).expected);
  EXPECT_EQ(positive.stages[QKCTS_STAGE_OUTPUT].expected, negative.stages[QKCTS_STAGE_OUTPUT].expected);
}

// Tables per head that are all alike are a shared one; of different ones, each head turns by its own.
TEST(Rotation, TablesPerHead) {
  for (const Tier tier : {Tier::automatic, Tier::mpfr}) {
    Contract contract = shipped_contract("clause_rope_tables_per_head");
    SampleSpec spec = spec_of();
    spec.shape = {2, 2, 2, 3, 4, 8, 2};
    Case each = sample_case(contract, spec);
    contract.terms.rotation.tables = QKCTS_TABLES_SHARED;
    Case shared = sample_case(contract, spec);
    for (const Input input :
         {Input::q, Input::k, Input::v, Input::q_gain, Input::k_gain, Input::q_position_ids, Input::k_position_ids})
      shared.inputs.set(input, each.inputs.at(input));
    const std::vector<double> cos = each.inputs.at(Input::cos).values(), sin = each.inputs.at(Input::sin).values();
    ASSERT_NE(cos[0], cos[cos.size() / 2]);
    const ReferenceResult own = evaluate(each, every_row(each), tier);
    for (const std::size_t h : {0u, 1u}) {
      const auto half = [h](const std::vector<double>& all) {
        const auto n = static_cast<std::ptrdiff_t>(all.size() / 2);
        return std::vector<double>(all.begin() + (h == 0 ? 0 : n), h == 0 ? all.begin() + n : all.end());
      };
      set_values(shared, Input::cos, half(cos));
      set_values(shared, Input::sin, half(sin));
      const ReferenceResult by_h = evaluate(shared, every_row(shared), tier);
      for (const qkcts_stage stage : {QKCTS_STAGE_Q_ROPE, QKCTS_STAGE_K_ROPE, QKCTS_STAGE_SCORES, QKCTS_STAGE_OUTPUT}) {
        const std::vector<double>& z = own.stages[stage].hi;
        const std::size_t block = z.size() / 4;  // of a head of a batch entry
        for (std::size_t i = 0; i < z.size(); ++i)
          if (i / block % 2 == h) {
            EXPECT_EQ(z[i], by_h.stages[stage].hi[i]);
          }
        EXPECT_NE(z, by_h.stages[stage].hi) << "the control: the other head";
      }
      const auto twice = [&half](const std::vector<double>& all) {
        std::vector<double> values = half(all);
        const std::vector<double> again = values;
        values.insert(values.end(), again.begin(), again.end());
        return values;
      };
      Case alike = each;
      set_values(alike, Input::cos, twice(cos));
      set_values(alike, Input::sin, twice(sin));
      const ReferenceResult same = evaluate(alike, every_row(alike), tier);
      for (const qkcts_stage stage : {QKCTS_STAGE_K_ROPE, QKCTS_STAGE_OUTPUT}) {
        EXPECT_EQ(same.stages[stage].hi, by_h.stages[stage].hi);
        EXPECT_EQ(same.stages[stage].lo, by_h.stages[stage].lo);
      }
    }
  }
}

// Six of eight lanes at the end of the head: 2..7 hold pairs (2,3), (4,5), (6,7), left in 2,5 / 3,6 / 4,7.
TEST(Rotation, DeinterleavedPairsArePermutedAndTheScoresStay) {
  Contract contract = shipped_contract("clause_rope_interleaved");
  contract.terms.rope.order = QKCTS_NORM_THEN_ROPE;
  contract.terms.rope.rotated = 6;
  contract.terms.rope.span = QKCTS_SPAN_LAST;
  Case c = sample_case(contract, spec_of());
  const ReferenceResult kept = evaluate(c, every_row(c));
  c.contract.terms.rotation.layout = QKCTS_LAYOUT_DEINTERLEAVED;
  const ReferenceResult moved = evaluate(c, every_row(c));
  constexpr std::size_t place[] = {0, 1, 2, 5, 3, 6, 4, 7};
  for (std::size_t i = 0; i < k_rope(kept).hi.size(); ++i)
    EXPECT_EQ(k_rope(moved).hi[i - i % 8 + place[i % 8]], k_rope(kept).hi[i]) << i;
  EXPECT_EQ(moved.stages[QKCTS_STAGE_SCORES].expected, kept.stages[QKCTS_STAGE_SCORES].expected);
}

// With the norm and its gain after the rotation the layout matters to the scores.
TEST(Rotation, LayoutMattersToAGainThatComesAfter) {
  SampleSpec spec = spec_of();
  spec.shape.head_dim = 16;
  Case c = sample_case(shipped_contract("clause_rope_deinterleaved"), spec);
  const ReferenceResult moved = evaluate(c, every_row(c));
  c.contract.terms.rotation.layout = QKCTS_LAYOUT_KEPT;
  const ReferenceResult kept = evaluate(c, every_row(c));
  EXPECT_NE(moved.stages[QKCTS_STAGE_SCORES].expected, kept.stages[QKCTS_STAGE_SCORES].expected);
}

Contract computed_contract(std::uint32_t order = QKCTS_NORM_THEN_ROPE) {
  Contract contract = shipped_contract("plain_sdpa");
  contract.name = "computed";
  contract.terms.rope.order = order;
  contract.terms.rope.theta = 1000;
  contract.terms.rotation.angles = QKCTS_ANGLES_COMPUTED;
  return contract;
}

// a cos w - b sin w at 900 bits, w = position theta^(-2i/R) / s.
double turned(double a, double b, double position, double i, double rotated, double theta, double s) {
  Real w(900, -2 * i / rotated);
  Real base(900, theta);
  mpfr_pow(w.get(), base.get(), w.get(), MPFR_RNDN);
  mpfr_mul_d(w.get(), w.get(), position / s, MPFR_RNDN);
  Real cos(900), sin(900);
  mpfr_sin_cos(sin.get(), cos.get(), w.get(), MPFR_RNDN);
  mpfr_mul_d(cos.get(), cos.get(), a, MPFR_RNDN);
  mpfr_mul_d(sin.get(), sin.get(), b, MPFR_RNDN);
  mpfr_sub(cos.get(), cos.get(), sin.get(), MPFR_RNDN);
  return round_to_format(cos.get(), Format::binary64);
}

TEST(Rotation, ComputedAnglesAgainstPlainMpfr) {
  Contract contract = computed_contract();
  contract.terms.rotation.scaling = QKCTS_SCALING_LINEAR;
  contract.terms.rotation.factor = 4;
  Case c = sample_case(contract, spec_of(Format::binary64));
  const double positions[] = {0, 3, 4097, 1073741824};
  set_values(c, Input::k_position_ids, positions);
  const ReferenceResult result = evaluate(c, every_row(c));
  const Tensor& k = c.inputs.at(Input::k);
  for (std::size_t t = 0; t < 4; ++t)
    for (std::size_t i = 0; i < 4; ++i) {
      const double a = k.value(t * 8 + i);
      const double b = k.value(t * 8 + i + 4);
      EXPECT_EQ(k_rope(result).hi[t * 8 + i], turned(a, b, positions[t], static_cast<double>(i), 8, 1000, 4));
      if (t > 0) {
        EXPECT_NE(k_rope(result).hi[t * 8 + i], turned(a, b, positions[t], static_cast<double>(i), 8, 1000, 1));
      } else {
        EXPECT_EQ(k_rope(result).hi[i], a);  // position 0: exactly as it was
      }
    }
}

// What a table in binary64 rounds, computed angles do not.
TEST(Rotation, ATableIsNotTheAngle) {
  Case c = sample_case(computed_contract(), spec_of(Format::binary64));
  const ReferenceResult computed = evaluate(c, every_row(c));
  c.contract.terms.rotation.angles = QKCTS_ANGLES_TABLE;
  const RopeTables tables = rope_tables(c.contract.terms.rope, qkcts_rotation{}, 8, 0, 8, Format::binary64);
  c.inputs.set(Input::cos, tables.cos);
  c.inputs.set(Input::sin, tables.sin);
  const ReferenceResult tabled = evaluate(c, every_row(c));
  EXPECT_NE(k_rope(computed).lo, k_rope(tabled).lo);
  for (std::size_t i = 0; i < k_rope(computed).hi.size(); ++i)
    EXPECT_NEAR(k_rope(computed).hi[i], k_rope(tabled).hi[i], 1e-14);
}

TEST(Rotation, AttentionFactorStandsInTheAngles) {
  Contract contract = computed_contract();
  contract.terms.rotation.attention_factor = 1.5;
  Case c = sample_case(contract, spec_of(Format::binary64));
  set_values(c, Input::k_position_ids, std::vector<double>(4, 0.0));
  const ReferenceResult result = evaluate(c, every_row(c));
  for (std::size_t i = 0; i < k_rope(result).hi.size(); ++i)
    EXPECT_EQ(k_rope(result).hi[i], 1.5 * c.inputs.at(Input::k).value(i));
}

// ---- rounding boundaries

// One query, two keys; unit vectors under L2 norms, scale on a tie of binary32.
Case tie_case(std::uint32_t order, double q_position, double k_position) {
  Contract contract = computed_contract(order);
  contract.terms.q_norm.applied = contract.terms.k_norm.applied = 1;
  contract.terms.q_norm.statistic = contract.terms.k_norm.statistic = QKCTS_SUM_SQUARE;
  contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
  contract.terms.score.scale_value = 1 + 3 * 0x1p-24;
  SampleSpec spec;
  spec.shape = {1, 1, 1, 1, 2, 4, 1};
  Case c = sample_case(contract, spec);
  set_values(c, Input::q, std::vector<double>{1, 2, -3, 4});
  set_values(c, Input::k, std::vector<double>{1, 2, -3, 4, 2, 0, 1, 0});
  set_values(c, Input::q_position_ids, std::vector<double>{q_position});
  set_values(c, Input::k_position_ids, std::vector<double>{k_position, k_position});
  return c;
}

TEST(RotationExactCases, EqualPositionsTurnBack) {
  for (const std::uint32_t order : {QKCTS_NORM_THEN_ROPE, QKCTS_ROPE_THEN_NORM}) {
    Case c = tie_case(order, 5, 5);
    const ReferenceResult same = evaluate(c, every_row(c));
    EXPECT_EQ(same.stages[QKCTS_STAGE_SCORES].hi[0], 1 + 3 * 0x1p-24);
    EXPECT_EQ(decode(Format::binary32, same.stages[QKCTS_STAGE_SCORES].expected[0]), 1 + 0x1p-22);
    EXPECT_EQ(same.stages[QKCTS_STAGE_SCORES].rule[0], ElementRule::budget_exact);
    c = tie_case(order, 5, 6);
    const ReferenceResult apart = evaluate(c, every_row(c));
    EXPECT_EQ(apart.stages[QKCTS_STAGE_SCORES].rule[0], ElementRule::budget);
    EXPECT_LT(apart.stages[QKCTS_STAGE_SCORES].hi[0], 1);
  }
}

// A factor m of cosine and sine stands in the product twice, and cancels under a norm that comes after.
TEST(RotationExactCases, EqualPositionsBesideAnAttentionFactor) {
  for (const std::uint32_t order : {QKCTS_NORM_THEN_ROPE, QKCTS_ROPE_THEN_NORM}) {
    Case c = tie_case(order, 5, 5);
    c.contract.terms.rotation.attention_factor = 1.5;
    const ReferenceResult result = evaluate(c, every_row(c));
    const double m = order == QKCTS_NORM_THEN_ROPE ? 2.25 : 1;
    EXPECT_EQ(result.stages[QKCTS_STAGE_SCORES].hi[0], m * (1 + 3 * 0x1p-24));
  }
}

// Keys with the same numbers at the same place have equal scores, though nothing of these is rational.
TEST(RotationExactCases, EqualKeysAtEqualPositions) {
  for (const std::uint32_t order : {QKCTS_NORM_THEN_ROPE, QKCTS_ROPE_THEN_NORM}) {
    Case c = tie_case(order, 2, 6);
    set_values(c, Input::k, std::vector<double>{2, 0, 1, 0, 2, 0, 1, 0});
    set_values(c, Input::v, std::vector<double>{1, 1 + 0x1p-23});
    ReferenceResult result = evaluate(c, every_row(c));
    EXPECT_EQ(result.stages[QKCTS_STAGE_OUTPUT].hi[0], 1 + 0x1p-24);
    EXPECT_EQ(result.stages[QKCTS_STAGE_OUTPUT].rule[0], ElementRule::budget_exact);
    set_values(c, Input::k_position_ids, std::vector<double>{6, 7});
    result = evaluate(c, every_row(c));
    EXPECT_EQ(result.stages[QKCTS_STAGE_OUTPUT].rule[0], ElementRule::budget);
  }
}

// Vectors that share no pair have the product 0, at any positions.
TEST(RotationExactCases, VectorsWithoutACommonPair) {
  Case c = tie_case(QKCTS_NORM_THEN_ROPE, 2, 6);
  set_values(c, Input::q, std::vector<double>{1, 0, -3, 0});
  set_values(c, Input::k, std::vector<double>{0, 2, 0, 1, 0, 0, 1, 0});
  const ReferenceResult result = evaluate(c, every_row(c));
  EXPECT_EQ(result.stages[QKCTS_STAGE_SCORES].hi[0], 0.0);
  EXPECT_NE(result.stages[QKCTS_STAGE_SCORES].hi[1], 0.0);
}

// The rotation keeps the sum of squares rational, so a lane beside it may stand on a tie: (1, 2 | 2) has norm 3.
// A bias puts numbers into lanes that the rotation had left at 0: they never turned, so nothing turns them back. The
// score is -sin(1), beside a product so large that early precisions cannot tell it from the 0 of the unturned vectors.
TEST(RotationExactCases, ABiasAfterTheRotationDoesNotTurnBack) {
  Contract contract = computed_contract(QKCTS_ROPE_THEN_NORM);
  contract.terms.rope.rotated = 2;
  contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
  contract.terms.score.scale_value = 1;
  contract.terms.q_norm = {};
  contract.terms.q_norm.applied = 1;
  contract.terms.q_norm.bias_axes = QKCTS_AXES_HEAD_DIM;
  SampleSpec spec = spec_of(Format::binary64);
  spec.shape = {1, 1, 1, 1, 1, 4, 2};
  Case c = sample_case(contract, spec);
  set_values(c, Input::q, std::vector<double>{0, 0, 1, 0});
  set_values(c, Input::q_bias, std::vector<double>{1, 0, -2, 0});
  set_values(c, Input::k, std::vector<double>{0, 1, 0, 0x1p600});
  set_values(c, Input::q_position_ids, std::vector<double>{1});
  set_values(c, Input::k_position_ids, std::vector<double>{1});
  const ReferenceResult result = evaluate(c, every_row(c));
  EXPECT_NEAR(result.stages[QKCTS_STAGE_SCORES].hi[0], -0.8414709848078965, 1e-15);
}

TEST(RotationExactCases, LaneBesideTheRotatedOnes) {
  Contract contract = computed_contract(QKCTS_ROPE_THEN_NORM);
  contract.terms.rope.rotated = 2;
  contract.terms.k_norm.applied = 1;
  contract.terms.k_norm.statistic = QKCTS_SUM_SQUARE;
  contract.terms.k_range.multiplier = 1.5 * (1 + 0x1p-24);
  SampleSpec spec;
  spec.shape = {1, 1, 1, 1, 1, 3, 1};
  Case c = sample_case(contract, spec);
  set_values(c, Input::k_position_ids, std::vector<double>{5});
  set_values(c, Input::k, std::vector<double>{1, 2, 2});
  const ReferenceResult result = evaluate(c, every_row(c));
  const ProvenStage& norm = result.stages[QKCTS_STAGE_K_NORM];
  EXPECT_EQ(norm.hi[2], 1 + 0x1p-24);
  EXPECT_EQ(decode(Format::binary32, norm.expected[2]), 1.0);
  EXPECT_EQ(norm.rule[2], ElementRule::budget_exact);
  EXPECT_EQ(norm.rule[0], ElementRule::budget);
}

}  // namespace
}  // namespace qkcts
