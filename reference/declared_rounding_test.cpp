// SPDX-License-Identifier: Apache-2.0
// Rounding points: exact ties at each of them, values beside a tie, overflow, and what a point must not touch. (The
// slow twin recomputes whole cases.)
#include <cmath>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "reference/attention.hpp"
#include "reference/refinement.hpp"
#include "reference/sample_case.hpp"

namespace qkcts {
namespace {

using Change = std::function<void(qkcts_contract&)>;

// One query and one head; nothing but a constant scale, until `change` says otherwise.
Case small_case(Format format, std::int64_t keys, std::int64_t width, const Change& change) {
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

void set(Case& c, Input input, const std::vector<double>& values) {
  set_values(c, input, values);
}

void l2(qkcts_norm& norm) {
  norm.applied = 1;
  norm.statistic = QKCTS_SUM_SQUARE;
}

ReferenceResult evaluated(const Case& c) {
  return evaluate(c, every_row(c));
}

struct Element {
  double stored;  // decoded `expected`
  double hi;
  double before;
  ElementRule rule;
};

Element element(const Case& c, const ReferenceResult& result, qkcts_stage stage, std::size_t i = 0) {
  const ProvenStage& proven = result.stages[stage];
  EXPECT_EQ(result.exact.values[stage][i], proven.hi[i]);
  EXPECT_EQ(proven.lo[i], 0);
  return {decode(stage_format(stage, c.inputs.format), proven.expected[i]), proven.hi[i],
          result.exact.before[stage].at(i), proven.rule[i]};
}

void expect_rounded(const Case& c, qkcts_stage stage, double before, double after, std::size_t i = 0) {
  const Element found = element(c, evaluated(c), stage, i);
  EXPECT_EQ(found.hi, after) << stage_name(stage);
  EXPECT_EQ(found.stored, after);
  EXPECT_EQ(found.before, before);
  EXPECT_EQ(found.rule, ElementRule::budget_exact);
}

constexpr double low_tie = 1 + 0x1p-8;       // of bfloat16: between 1 and 1 + 2^-7, and 1 is even
constexpr double high_tie = 1 + 3 * 0x1p-8;  // between 1 + 2^-7 and 1 + 2^-6, which is even

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

TEST(DeclaredRounding, NormOnATie) {
  expect_rounded(norm_case(Format::binary32, low_tie, QKCTS_BFLOAT16), QKCTS_STAGE_Q_NORM, low_tie, 1);
  expect_rounded(norm_case(Format::binary32, high_tie, QKCTS_BFLOAT16), QKCTS_STAGE_Q_NORM, high_tie, 1 + 0x1p-6);
  expect_rounded(norm_case(Format::binary32, high_tie, QKCTS_BFLOAT16), QKCTS_STAGE_Q_NORM, -high_tie, -1 - 0x1p-6, 1);
}

// Through binary32 it would become the tie, and then 1.
TEST(DeclaredRounding, NoDetourThroughAnotherFormat) {
  const double w = low_tie + 0x1p-40;
  expect_rounded(norm_case(Format::binary64, w, QKCTS_BFLOAT16), QKCTS_STAGE_Q_NORM, w, 1 + 0x1p-7);
  const double below = high_tie - 0x1p-40;
  expect_rounded(norm_case(Format::binary64, below, QKCTS_BFLOAT16), QKCTS_STAGE_Q_NORM, below, 1 + 0x1p-7);
}

// A point in a wider format than the stage's: both roundings count. (1 + 2^-24)(1 + 2^-70) is no tie of binary32, but
// binary64 makes one of it.
TEST(DeclaredRounding, ThePointIsRoundedBeforeTheStage) {
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

TEST(DeclaredRounding, ProjectionOnATie) {
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

// d = |(255, 32)| = 257, between 256 and 258. The entries are then 255/256 and 1/8.
TEST(DeclaredRounding, RootOnATie) {
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
TEST(DeclaredRounding, ReciprocalOnATie) {
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
TEST(DeclaredRounding, UnitOnATie) {
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
TEST(DeclaredRounding, RotationThatCancels) {
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
TEST(DeclaredRounding, RopeProductsOnTies) {
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
TEST(DeclaredRounding, ScaledQueryOnATie) {
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

// <q^, k^> = 1 for equal directions, times a scale on a tie; no enclosure is a point here either.
Case score_case(double scale, std::uint32_t point) {
  Case c = small_case(Format::binary32, 1, 2, [scale, point](qkcts_contract& terms) {
    l2(terms.q_norm);
    l2(terms.k_norm);
    terms.score.scale_value = scale;
    terms.rounding.scores = point;
  });
  set(c, Input::q, {1, 1});
  set(c, Input::k, {3, 3});
  return c;
}

TEST(DeclaredRounding, ScoreOnATie) {
  expect_rounded(score_case(low_tie, QKCTS_BFLOAT16), QKCTS_STAGE_SCORES, low_tie, 1);
  expect_rounded(score_case(high_tie, QKCTS_BFLOAT16), QKCTS_STAGE_SCORES, high_tie, 1 + 0x1p-6);
  // lse of one key is its score, after the point.
  EXPECT_EQ(evaluated(score_case(low_tie, QKCTS_BFLOAT16)).stages[QKCTS_STAGE_LSE].hi[0], 1);
  EXPECT_EQ(evaluated(score_case(low_tie, QKCTS_BFLOAT16)).statistics.score_max[0], 1);
}

TEST(DeclaredRounding, TooFewPrecisionsAreRefused) {
  RefinementLimits limits;
  limits.levels = 1;
  const Case c = score_case(low_tie, QKCTS_BFLOAT16);
  try {
    refine(c, every_row(c), limits);
    FAIL() << "128 bits do not show a tie";
  } catch (const UndecidedError& error) {
    EXPECT_NE(std::string(error.what()).find("rounding point scores (scores[b0 h0 t0 c0])"), std::string::npos)
        << error.what();
  }
  limits.levels = 2;
  EXPECT_EQ(refine(c, every_row(c), limits).stages[QKCTS_STAGE_SCORES].hi[0], 1);
}

// The cap of an exact 0 beside a bias on a tie.
TEST(DeclaredRounding, CappedOnATie) {
  Case c = small_case(Format::binary32, 1, 2, [](qkcts_contract& terms) {
    l2(terms.q_norm);
    l2(terms.k_norm);
    terms.score.softcap = 5;
    terms.score.bias_order = QKCTS_BIAS_AFTER_SOFTCAP;
    terms.rounding.capped = QKCTS_BFLOAT16;
  });
  set(c, Input::q, {1, 1});
  set(c, Input::k, {3, -3});
  set(c, Input::bias, {high_tie});
  expect_rounded(c, QKCTS_STAGE_CAPPED, high_tie, 1 + 0x1p-6);
}

// 1024 keys of one irrational score: p = 1/1024 is a tie of e4m3fn, which has 0 and 1/512 beside it. 1023: none.
TEST(DeclaredRounding, ProbabilityOnATie) {
  for (const std::int64_t keys : {1023, 1024}) {
    Case c = small_case(Format::binary32, keys, 2, [](qkcts_contract& terms) {
      l2(terms.q_norm);
      l2(terms.k_norm);
      terms.score.scale_value = 0.7;
      terms.rounding.probs = QKCTS_E4M3FN;
    });
    set(c, Input::q, {1, 2});
    std::vector<double> k;
    for (std::int64_t i = 0; i < keys; ++i) k.insert(k.end(), {1, 1});
    set(c, Input::k, k);
    set(c, Input::v, std::vector<double>(static_cast<std::size_t>(keys), 3));
    const ReferenceResult result = evaluated(c);
    const double p = keys == 1024 ? 0 : 0x1p-9;
    EXPECT_EQ(element(c, result, QKCTS_STAGE_PROBS).hi, p);
    EXPECT_EQ(result.stages[QKCTS_STAGE_OUTPUT].hi[0], 3 * p * static_cast<double>(keys));
    EXPECT_NEAR(result.stages[QKCTS_STAGE_LSE].hi[0], std::log(keys) + 0.7 * 3 / std::sqrt(10), 1e-9);
  }
}

// Two keys of one irrational score: the mean of v is on a tie. A sink of weight e^-1000 puts it just below.
TEST(DeclaredRounding, OutputOnATie) {
  for (const std::uint32_t sink : {QKCTS_SINK_NONE, QKCTS_SINK_POST_SCALE}) {
    Case c = small_case(Format::binary32, 2, 2, [sink](qkcts_contract& terms) {
      l2(terms.q_norm);
      l2(terms.k_norm);
      terms.score.scale_value = 0.7;
      terms.softmax.sink = sink;
      terms.rounding.output = QKCTS_BFLOAT16;
    });
    set(c, Input::q, {1, 2});
    set(c, Input::k, {1, 1, 3, 3});
    set(c, Input::v, {1 + 0x1p-7, 1 + 0x1p-6});
    if (sink != QKCTS_SINK_NONE) set(c, Input::sink, {-1000});
    const Element o = element(c, evaluated(c), QKCTS_STAGE_OUTPUT);
    EXPECT_EQ(o.before, high_tie);
    EXPECT_EQ(o.hi, sink == QKCTS_SINK_NONE ? 1 + 0x1p-6 : 1 + 0x1p-7);
  }
}

// p~ = 1/3 in bfloat16 is 171/512; the sum of the weights is not rounded, so three of them give 513/512.
TEST(DeclaredRounding, OutputOfRoundedProbabilities) {
  Case c = small_case(Format::binary32, 3, 1, [](qkcts_contract& terms) { terms.rounding.probs = QKCTS_BFLOAT16; });
  set(c, Input::q, {1});
  set(c, Input::k, {0.5, 0.5, 0.5});
  set(c, Input::v, {1, 1, 1});
  expect_rounded(c, QKCTS_STAGE_PROBS, 1.0 / 3, 171.0 / 512);
  EXPECT_EQ(evaluated(c).stages[QKCTS_STAGE_OUTPUT].hi[0], 513.0 / 512);
  c.contract.terms.rounding.output = QKCTS_BFLOAT16;
  expect_rounded(c, QKCTS_STAGE_OUTPUT, 513.0 / 512, 1);
}

TEST(DeclaredRounding, AUniformRowHasItsPoints) {
  Case c = small_case(Format::binary32, 3, 1, [](qkcts_contract& terms) {
    terms.rounding.probs = QKCTS_BFLOAT16;
    terms.mask.boolean = 1;
    terms.mask.empty_row = QKCTS_EMPTY_UNIFORM;
  });
  c.inputs.set(Input::mask, Tensor::zeros(ElementType::boolean, {1, 1, 1, 3}));
  set(c, Input::v, {1, 2, 3});
  expect_rounded(c, QKCTS_STAGE_PROBS, 1.0 / 3, 171.0 / 512);
  EXPECT_EQ(evaluated(c).stages[QKCTS_STAGE_OUTPUT].hi[0], 6 * 171.0 / 512);
  c.contract.terms.rounding.output = QKCTS_BFLOAT16;
  expect_rounded(c, QKCTS_STAGE_OUTPUT, 6 * 171.0 / 512, 2);
}

TEST(DeclaredRounding, ARowOfZerosHasNothingToRound) {
  Case c = small_case(Format::binary32, 3, 1, [](qkcts_contract& terms) {
    terms.rounding.probs = terms.rounding.output = QKCTS_BFLOAT16;
    terms.mask.boolean = 1;
  });
  c.inputs.set(Input::mask, Tensor::zeros(ElementType::boolean, {1, 1, 1, 3}));
  const ReferenceResult result = evaluated(c);
  EXPECT_EQ(result.exact.before[QKCTS_STAGE_OUTPUT][0], 0);
  EXPECT_EQ(result.exact.before[QKCTS_STAGE_PROBS][2], 0);
  EXPECT_EQ(result.stages[QKCTS_STAGE_PROBS].rule[2], ElementRule::exact_clause);
}

TEST(DeclaredRounding, OverflowIsNoCase) {
  const auto scores = [](double scale, std::uint32_t format, std::uint32_t saturate) {
    Case c = score_case(scale, format);
    c.contract.terms.rounding.saturate = saturate;
    return evaluated(c).stages[QKCTS_STAGE_SCORES].hi[0];
  };
  EXPECT_EQ(scores(464, QKCTS_E4M3FN, 0), 448);
  EXPECT_EQ(scores(std::nextafter(464, 465), QKCTS_E4M3FN, 1), 448);
  EXPECT_EQ(scores(1e30, QKCTS_E4M3FN, 1), 448);
  EXPECT_EQ(scores(std::nextafter(61440, 0), QKCTS_E5M2, 0), 57344);
  EXPECT_EQ(scores(61440, QKCTS_E5M2, 1), 57344);
  EXPECT_EQ(scores(70000, QKCTS_BINARY16, 1), 65504);
  for (const auto& [scale, format] : {std::pair<double, std::uint32_t>{std::nextafter(464, 465), QKCTS_E4M3FN},
                                      {61440, QKCTS_E5M2},
                                      {65520, QKCTS_BINARY16}}) {
    try {
      scores(scale, format, 0);
      ADD_FAILURE() << scale << " does not overflow";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("overflows at rounding point scores (scores[b0 h0 t0 c0])"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(DeclaredRounding, ARootThatBecomesZeroIsNoCase) {
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

TEST(DeclaredRounding, LanesThatPassARotationKeepTheirValues) {
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

// Points in binary64 move nothing that binary32 shows, but for a value beside one of its ties.
TEST(DeclaredRounding, PointsInAWideFormatLeaveNearlyEverything) {
  Contract contract = shipped_contract("qwen3_rmsnorm");
  const Case c = sample_case(contract, SampleSpec{});
  for (qkcts_vector_rounding* side : {&contract.terms.rounding.q, &contract.terms.rounding.k})
    side->root = side->reciprocal = side->unit = side->norm = side->rope_product = side->rope = QKCTS_BINARY64;
  qkcts_rounding& rounding = contract.terms.rounding;
  rounding.scaled_q = rounding.scores = rounding.probs = rounding.output = QKCTS_BINARY64;
  Case declared = c;
  declared.contract = contract;
  const ReferenceResult without = evaluated(c);
  for (const std::vector<double>& before : without.exact.before) EXPECT_TRUE(before.empty());
  const ReferenceResult with = evaluated(declared);
  std::size_t bits = 0, values = 0, elements = 0;
  for (const qkcts_stage stage : all_stages)
    for (std::size_t i = 0; i < without.stages[stage].hi.size(); ++i) {
      if (std::isinf(without.stages[stage].hi[i])) continue;  // hidden keys
      ++elements;
      bits += without.stages[stage].expected[i] != with.stages[stage].expected[i] ? 1 : 0;
      values += without.stages[stage].hi[i] != with.stages[stage].hi[i] ? 1 : 0;
      EXPECT_NEAR(without.stages[stage].hi[i], with.stages[stage].hi[i],
                  1e-13 * (1 + std::fabs(with.stages[stage].hi[i])));
    }
  EXPECT_EQ(bits, 0u) << elements;
  EXPECT_GT(values, elements / 20);  // and yet they are other values
}

// What Qwen 3 and OLMo 2 do in bfloat16: unit vector rounded, then the gain, rounded again; or gain first, one
// rounding.
TEST(DeclaredRounding, WhereTheGainStandsShows) {
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

// Every stage after a point is computed from the rounded one, whatever it is stored in.
TEST(DeclaredRounding, LaterStagesFollowTheRoundedOnes) {
  const Case c = sample_case(shipped_contract("clause_round_scores"), SampleSpec{});
  const ReferenceResult result = evaluated(c);
  const std::vector<double>& q = result.stages[QKCTS_STAGE_Q_NORM].hi;
  const std::vector<double>& k = result.stages[QKCTS_STAGE_K_NORM].hi;
  const std::vector<double>& scores = result.stages[QKCTS_STAGE_SCORES].hi;
  ASSERT_EQ(result.exact.before[QKCTS_STAGE_SCORES].size(), scores.size());
  double product = 0;  // of rounded vectors: exact in binary64
  for (std::size_t lane = 0; lane < 8; ++lane) product += q[lane] * k[lane];
  EXPECT_NEAR(result.exact.before[QKCTS_STAGE_SCORES][0], 0.11 * product, 1e-15);
  EXPECT_EQ(scores[0], decode(Format::bfloat16, encode(Format::bfloat16, scores[0])));
  for (const std::vector<double>* entries : {&q, &k})
    for (const double x : *entries) EXPECT_EQ(x, decode(Format::bfloat16, encode(Format::bfloat16, x)));
}

}  // namespace
}  // namespace qkcts
