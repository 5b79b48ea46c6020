// SPDX-License-Identifier: Apache-2.0
// Rounding points of q, k and v: exact ties at each of them, values beside a tie, overflow, and what a point must not
// touch. (The slow twin recomputes whole cases.)
#include <cmath>
#include <string>

#include "reference/declared_case_test.hpp"

namespace qkcts {
namespace {

using namespace declared;

Case norm_case(Format format, double w, std::uint32_t point) {
  Case c = small_case(format, 1, 2, [point](qkcts_contract& terms) {
    terms.q_norm.applied = 1;  // RMS
    terms.q_norm.gain = QKCTS_GAIN_W;
    terms.q_norm.gain_axes = QKCTS_AXES_SCALAR;
    terms.rounding.q.norm = point;
  });
  set(c, Input::q, {1, -1});
  set(c, Input::q_gain, {w});
  return c;
}

TEST(DeclaredVectors, NormOnATie) {
  expect_rounded(norm_case(Format::binary32, low_tie, QKCTS_BFLOAT16), QKCTS_STAGE_Q_NORM, low_tie, 1);
  expect_rounded(norm_case(Format::binary32, high_tie, QKCTS_BFLOAT16), QKCTS_STAGE_Q_NORM, high_tie, 1 + 0x1p-6);
  expect_rounded(norm_case(Format::binary32, high_tie, QKCTS_BFLOAT16), QKCTS_STAGE_Q_NORM, -high_tie, -1 - 0x1p-6, 1);
}

// Through binary32 it would become the tie, and then 1.
TEST(DeclaredVectors, NoDetourThroughAnotherFormat) {
  const double w = low_tie + 0x1p-40;
  expect_rounded(norm_case(Format::binary64, w, QKCTS_BFLOAT16), QKCTS_STAGE_Q_NORM, w, 1 + 0x1p-7);
  const double below = high_tie - 0x1p-40;
  expect_rounded(norm_case(Format::binary64, below, QKCTS_BFLOAT16), QKCTS_STAGE_Q_NORM, below, 1 + 0x1p-7);
}

// A point in a wider format than the stage's: both roundings count. (1 + 2^-24)(1 + 2^-70) is no tie of binary32, but
// binary64 makes one of it.
TEST(DeclaredVectors, ThePointIsRoundedBeforeTheStage) {
  for (const std::uint32_t point : {std::uint32_t{0}, std::uint32_t{QKCTS_BINARY64}}) {
    Case c = small_case(Format::binary32, 1, 1, [point](qkcts_contract& terms) {
      terms.q_norm.applied = 1;
      terms.q_norm.bias_axes = QKCTS_AXES_SCALAR;
      terms.q_range.multiplier = 1 + 0x1p-24;
      terms.rounding.q.norm = point;
    });
    set(c, Input::q, {1});
    set(c, Input::q_bias, {0x1p-70});
    const ReferenceResult result = evaluated(c);
    EXPECT_EQ(decode(Format::binary32, result.stages[QKCTS_STAGE_Q_NORM].expected[0]), point == 0 ? 1 + 0x1p-23 : 1);
    EXPECT_EQ(result.stages[QKCTS_STAGE_Q_NORM].hi[0], 1 + 0x1p-24);
  }
}

TEST(DeclaredVectors, ProjectionOnATie) {
  Case c = small_case(Format::binary32, 1, 2, [](qkcts_contract& terms) {
    terms.projection.form = QKCTS_PROJECTION_LINEAR;
    terms.projection.bias = 1;
    terms.rounding.q.projection = QKCTS_BFLOAT16;
  });
  set(c, Input::q_x, {1, 0, 0, 0, 0});
  std::vector<double> weight(10, 0.5);
  weight[0] = 1;
  weight[1] = -2;
  set(c, Input::q_weight, weight);
  set(c, Input::q_weight_bias, {3 * 0x1p-8, 1 - 0x1p-8});  // high_tie and -low_tie
  expect_rounded(c, QKCTS_STAGE_Q_PROJ, high_tie, 1 + 0x1p-6);
  expect_rounded(c, QKCTS_STAGE_Q_PROJ, -low_tie, -1, 1);
}

// x^ = w (3, 4) / 5 with w = 5 * 87/256: 261/256 lies between 260/256, which is even, and 262/256; 348/256 is a number.
Case input_norm_case(double w, std::uint32_t unit, std::uint32_t norm) {
  Case c = small_case(Format::binary32, 1, 2, [unit, norm](qkcts_contract& terms) {
    terms.projection.form = QKCTS_PROJECTION_LINEAR;
    l2(terms.projection.q_input);
    terms.projection.q_input.gain = QKCTS_GAIN_W;
    terms.projection.q_input.gain_axes = QKCTS_AXES_SCALAR;
    terms.rounding.q_input = {unit, norm};
  });
  set(c, Input::q_x, {3, 4, 0, 0, 0});
  set(c, Input::q_x_gain, {w});
  std::vector<double> weight(10, 0.0);
  weight[0] = weight[3] = 1;  // q = (x^_0, x^_1)
  set(c, Input::q_weight, weight);
  return c;
}

TEST(DeclaredVectors, InputNormOnATie) {
  const double w = 5 * 87.0 / 256;
  EXPECT_EQ(evaluated(input_norm_case(w, 0, 0)).stages[QKCTS_STAGE_Q_PROJ].hi[0], 261.0 / 256);
  const ReferenceResult result = evaluated(input_norm_case(w, 0, QKCTS_BFLOAT16));
  EXPECT_EQ(result.stages[QKCTS_STAGE_Q_PROJ].hi[0], 260.0 / 256);
  EXPECT_EQ(result.stages[QKCTS_STAGE_Q_PROJ].hi[1], 348.0 / 256);
  EXPECT_EQ(evaluated(input_norm_case(-w, 0, QKCTS_BFLOAT16)).stages[QKCTS_STAGE_Q_PROJ].hi[0], -260.0 / 256);
}

// bfloat16 of 3/5 is 154/256: five of them are 770/256 = 3.0078125, which binary32 keeps. Without the point: 3.
TEST(DeclaredVectors, InputUnitIsRoundedBeforeTheGain) {
  EXPECT_EQ(evaluated(input_norm_case(5, 0, QKCTS_BINARY32)).stages[QKCTS_STAGE_Q_PROJ].hi[0], 3);
  EXPECT_EQ(evaluated(input_norm_case(5, QKCTS_BFLOAT16, QKCTS_BINARY32)).stages[QKCTS_STAGE_Q_PROJ].hi[0],
            5 * decode(Format::bfloat16, encode(Format::bfloat16, 0.6)));
}

TEST(DeclaredVectors, AnInputRowOfZerosIsNoCase) {
  Case c = input_norm_case(1, 0, QKCTS_BFLOAT16);
  set(c, Input::q_x, {0, 0, 0, 0, 0});
  try {
    evaluated(c);
    FAIL() << "0/0";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("the norm of q_x[b0 t0 e0] divides 0 by 0"), std::string::npos)
        << error.what();
  }
}

TEST(DeclaredVectors, InputOverflowNamesItsPlace) {
  Case c = input_norm_case(1000, 0, QKCTS_E4M3FN);
  try {
    evaluated(c);
    FAIL() << "600 exceeds 448";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("overflows at rounding point q_input_norm (q_x[b0 t0 e0])"),
              std::string::npos)
        << error.what();
  }
  c.contract.terms.rounding.saturate = 1;
  EXPECT_EQ(evaluated(c).stages[QKCTS_STAGE_Q_PROJ].hi[0], 448);
}

// d = |(255, 32)| = 257, between 256 and 258. The entries are then 255/256 and 1/8.
TEST(DeclaredVectors, RootOnATie) {
  Case c = small_case(Format::binary32, 1, 2, [](qkcts_contract& terms) {
    l2(terms.q_norm);
    terms.rounding.q.root = QKCTS_BFLOAT16;
    terms.rounding.q.norm = QKCTS_BINARY32;
  });
  set(c, Input::q, {255, 32});
  expect_rounded(c, QKCTS_STAGE_Q_NORM, 255.0 / 256, 255.0 / 256);
  expect_rounded(c, QKCTS_STAGE_Q_NORM, 0.125, 0.125, 1);
}

// 1/1024 lies between 0 and the smallest number of e4m3fn, 1/512; the tie goes to 0. 1/1023 goes up.
TEST(DeclaredVectors, ReciprocalOnATie) {
  Case c = small_case(Format::binary32, 1, 1, [](qkcts_contract& terms) {
    l2(terms.q_norm);
    terms.rounding.q.reciprocal = QKCTS_E4M3FN;
    terms.rounding.q.norm = QKCTS_BINARY32;
  });
  set(c, Input::q, {1024});
  expect_rounded(c, QKCTS_STAGE_Q_NORM, 0, 0);
  set(c, Input::q, {1023});
  expect_rounded(c, QKCTS_STAGE_Q_NORM, 1023.0 / 512, 1023.0 / 512);
}

// The unit vector is on a tie, the gain is 3: rounding once after the gain gives something else.
TEST(DeclaredVectors, UnitOnATie) {
  const auto norm_of = [](std::uint32_t unit) {
    Case c = small_case(Format::binary32, 1, 1, [unit](qkcts_contract& terms) {
      terms.q_norm.applied = 1;
      terms.q_norm.root = QKCTS_MAX_ROOT;
      terms.q_norm.eps = 2;
      terms.q_norm.gain = QKCTS_GAIN_W;
      terms.q_norm.gain_axes = QKCTS_AXES_SCALAR;
      terms.rounding.q.unit = unit;
      terms.rounding.q.norm = QKCTS_BFLOAT16;
    });
    set(c, Input::q, {low_tie});
    set(c, Input::q_gain, {3});
    return element(c, evaluated(c), QKCTS_STAGE_Q_NORM);
  };
  EXPECT_EQ(norm_of(QKCTS_BFLOAT16).before, 1.5);
  EXPECT_EQ(norm_of(QKCTS_BFLOAT16).hi, 1.5);
  EXPECT_EQ(norm_of(0).before, 3 * low_tie / 2);  // 1.505859375
  EXPECT_EQ(norm_of(0).hi, 1.5078125);
}

// q^ = (1, 1)/sqrt 2 is irrational; turned by cos = sin it becomes 0 and something irrational.
TEST(DeclaredVectors, RotationThatCancels) {
  for (const std::uint32_t product : {std::uint32_t{0}, std::uint32_t{QKCTS_BFLOAT16}}) {
    Case c = small_case(Format::binary32, 1, 2, [product](qkcts_contract& terms) {
      l2(terms.q_norm);
      terms.rope.order = QKCTS_NORM_THEN_ROPE;
      terms.rope.theta = 10000;
      terms.rounding.q.rope_product = product;
      terms.rounding.q.rope = QKCTS_BFLOAT16;
    });
    set(c, Input::q, {1, 1});
    set(c, Input::cos, std::vector<double>(c.inputs.at(Input::cos).count(), 0.75));
    set(c, Input::sin, std::vector<double>(c.inputs.at(Input::sin).count(), 0.75));
    const ReferenceResult result = evaluated(c);
    EXPECT_EQ(element(c, result, QKCTS_STAGE_Q_ROPE, 0).hi, 0);
    EXPECT_FALSE(std::signbit(element(c, result, QKCTS_STAGE_Q_ROPE, 0).hi));
    // 0.75/sqrt 2 = 0.5303...: bfloat16 has 0.53125 = 136/256 near it, twice that is 1.0625; the sum alone is 1.0606...
    EXPECT_EQ(element(c, result, QKCTS_STAGE_Q_ROPE, 1).hi, product == 0 ? 1.0625 : 2 * 0.53125);
    EXPECT_DOUBLE_EQ(element(c, result, QKCTS_STAGE_Q_ROPE, 1).before, product == 0 ? 1.5 * std::sqrt(0.5) : 1.0625);
  }
}

// Products on ties: 1.0078125 * 0.5 + ... would be exact; a C = 1 + 2^-8 goes to 1, b S = 2^-8 stays.
TEST(DeclaredVectors, RopeProductsOnTies) {
  const auto turned = [](std::uint32_t product) {
    Case c = small_case(Format::binary32, 1, 2, [product](qkcts_contract& terms) {
      terms.rope.order = QKCTS_NORM_THEN_ROPE;
      terms.rope.theta = 10000;
      terms.rotation.sense = QKCTS_SENSE_NEGATIVE;
      terms.rounding.q.rope_product = product;
      terms.rounding.q.rope = QKCTS_BFLOAT16;
    });
    set(c, Input::q, {1, 0x1p-8});
    set(c, Input::cos, std::vector<double>(c.inputs.at(Input::cos).count(), low_tie));
    set(c, Input::sin, std::vector<double>(c.inputs.at(Input::sin).count(), 1));
    return element(c, evaluated(c), QKCTS_STAGE_Q_ROPE);
  };
  EXPECT_EQ(turned(QKCTS_BFLOAT16).before, low_tie);  // 1 + 2^-8: a tie again
  EXPECT_EQ(turned(QKCTS_BFLOAT16).hi, 1);
  EXPECT_EQ(turned(0).before, 1 + 0x1p-7);
  EXPECT_EQ(turned(0).hi, 1 + 0x1p-7);
}

// (w/sqrt 2) * (1/sqrt 2) = w/2: rational, but no enclosure is a point.
TEST(DeclaredVectors, ScaledQueryOnATie) {
  Case c = small_case(Format::binary32, 1, 2, [](qkcts_contract& terms) {
    l2(terms.q_norm);
    terms.q_norm.gain = QKCTS_GAIN_W;
    terms.q_norm.gain_axes = QKCTS_AXES_SCALAR;
    terms.score.scale_form = QKCTS_SCALE_INV_SQRT_SCALAR;
    terms.score.scale_value = 2;
    terms.rounding.scaled_q = QKCTS_BFLOAT16;
  });
  set(c, Input::q, {1, 1});
  set(c, Input::k, {1, 0});
  set(c, Input::q_gain, {low_tie});
  EXPECT_EQ(evaluated(c).stages[QKCTS_STAGE_SCORES].hi[0], 0.5);
  set(c, Input::q_gain, {high_tie});
  EXPECT_EQ(evaluated(c).stages[QKCTS_STAGE_SCORES].hi[0], (1 + 0x1p-6) / 2);
}

TEST(DeclaredVectors, ARootThatBecomesZeroIsNoCase) {
  Case c = small_case(Format::binary32, 1, 1, [](qkcts_contract& terms) {
    l2(terms.q_norm);
    terms.rounding.q.root = QKCTS_E4M3FN;
    terms.rounding.q.norm = QKCTS_BINARY32;
  });
  set(c, Input::q, {0x1p-10});
  EXPECT_THROW(evaluated(c), InputError);
  set(c, Input::q, {0x1.8p-10});
  expect_rounded(c, QKCTS_STAGE_Q_NORM, 0.75, 0.75);  // 1.5/1024 over 1/512
}

TEST(DeclaredVectors, LanesThatPassARotationKeepTheirValues) {
  Contract contract = shipped_contract("clause_round_rope");
  contract.terms.rope.rotated = 4;
  SampleSpec spec;
  const Case c = sample_case(contract, spec);
  const ReferenceResult result = evaluated(c);
  std::size_t rounded = 0;
  for (std::size_t i = 0; i < result.stages[QKCTS_STAGE_Q_ROPE].hi.size(); ++i) {
    const ProvenStage& rope = result.stages[QKCTS_STAGE_Q_ROPE];
    const ProvenStage& norm = result.stages[QKCTS_STAGE_Q_NORM];
    const std::size_t lane = i % 8;
    if (lane >= 4) {
      EXPECT_EQ(rope.hi[i], norm.hi[i]);
      EXPECT_EQ(rope.lo[i], norm.lo[i]);
      EXPECT_EQ(result.exact.before[QKCTS_STAGE_Q_ROPE][i], rope.hi[i]);
      rounded += rope.hi[i] == decode(Format::bfloat16, encode(Format::bfloat16, rope.hi[i])) ? 1 : 0;
    } else {
      EXPECT_EQ(rope.hi[i], decode(Format::bfloat16, encode(Format::bfloat16, rope.hi[i])));
      EXPECT_EQ(rope.rule[i], ElementRule::budget_exact);
    }
  }
  EXPECT_LT(rounded, 3u);  // binary32 values that happen to have 8 bits
}

// What Qwen 3 and OLMo 2 do in bfloat16: unit vector rounded, then the gain, rounded again; or gain first, one
// rounding.
TEST(DeclaredVectors, WhereTheGainStandsShows) {
  Contract once = shipped_contract("clause_round_norm");
  SampleSpec spec;
  spec.format = Format::bfloat16;
  spec.shape = {1, 4, 2, 5, 5, 16, 4};
  const Case c = sample_case(once, spec);
  Case twice = c;
  twice.contract.terms.rounding.q.unit = twice.contract.terms.rounding.k.unit = QKCTS_BFLOAT16;
  const ReferenceResult first = evaluated(c);
  const ReferenceResult second = evaluated(twice);
  std::size_t differ = 0;
  const std::vector<std::uint64_t>& bits = first.stages[QKCTS_STAGE_Q_NORM].expected;
  for (std::size_t i = 0; i < bits.size(); ++i)
    differ += bits[i] != second.stages[QKCTS_STAGE_Q_NORM].expected[i] ? 1 : 0;
  EXPECT_GT(differ, bits.size() / 10);
  EXPECT_LT(differ, bits.size());
}

}  // namespace
}  // namespace qkcts
