// SPDX-License-Identifier: Apache-2.0
// Rounding points of a row of attention, from the product of q and k to the output; declared_vectors_test.cpp has those
// before.
#include <cmath>
#include <string>

#include "reference/declared_case_test.hpp"
#include "reference/refinement.hpp"

namespace qkcts {
namespace {

using namespace declared;

// <q^, k^> = w for equal directions of irrational entries, before a scale of 3/4.
Case product_case(double w, std::uint32_t product, std::uint32_t scores) {
  Case c = small_case(Format::binary32, 1, 2, [product, scores](qkcts_contract& terms) {
    l2(terms.q_norm);
    terms.q_norm.gain = QKCTS_GAIN_W;
    terms.q_norm.gain_axes = QKCTS_AXES_SCALAR;
    l2(terms.k_norm);
    terms.score.scale_value = 0.75;
    terms.rounding.product = product;
    terms.rounding.scores = scores;
  });
  set(c, Input::q, {1, 1});
  set(c, Input::k, {3, 3});
  set(c, Input::q_gain, {w});
  return c;
}

TEST(DeclaredRows, ProductOnATie) {
  const auto score = [](double w, std::uint32_t product, std::uint32_t scores) {
    return evaluated(product_case(w, product, scores)).stages[QKCTS_STAGE_SCORES].hi[0];
  };
  EXPECT_EQ(score(low_tie, 0, 0), 0.75 * low_tie);
  EXPECT_EQ(score(low_tie, QKCTS_BFLOAT16, 0), 0.75);
  EXPECT_EQ(score(high_tie, QKCTS_BFLOAT16, 0), 0.75 * (1 + 0x1p-6));
  EXPECT_EQ(score(-high_tie, QKCTS_BFLOAT16, 0), -0.75 * (1 + 0x1p-6));
  const ReferenceResult result = evaluated(product_case(low_tie, QKCTS_BFLOAT16, 0));
  EXPECT_EQ(result.exact.products, std::vector<double>{low_tie});
  EXPECT_EQ(result.stages[QKCTS_STAGE_LSE].hi[0], 0.75);
  EXPECT_TRUE(evaluated(product_case(low_tie, 0, 0)).exact.products.empty());
}

// The product is 9/8 in e4m3fn; 3/4 of that, 27/32, lies halfway between two of its numbers and is rounded once more.
TEST(DeclaredRows, TheScoreIsRoundedAfterTheProduct) {
  const Case twice = product_case(1.125 + 0x1p-6, QKCTS_E4M3FN, QKCTS_E4M3FN);
  const ReferenceResult result = evaluated(twice);
  EXPECT_EQ(result.exact.before[QKCTS_STAGE_SCORES][0], 27.0 / 32);
  EXPECT_EQ(result.stages[QKCTS_STAGE_SCORES].hi[0], 0.875);  // 13/16 and 14/16 are as near; 14/16 is even
}

TEST(DeclaredRows, ProductOverflowNamesItsPlace) {
  try {
    evaluated(product_case(500, QKCTS_E4M3FN, 0));
    FAIL() << "500 exceeds 464";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("overflows at rounding point product (scores[b0 h0 t0 c0])"),
              std::string::npos)
        << error.what();
  }
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

TEST(DeclaredRows, ScoreOnATie) {
  expect_rounded(score_case(low_tie, QKCTS_BFLOAT16), QKCTS_STAGE_SCORES, low_tie, 1);
  expect_rounded(score_case(high_tie, QKCTS_BFLOAT16), QKCTS_STAGE_SCORES, high_tie, 1 + 0x1p-6);
  // lse of one key is its score, after the point.
  EXPECT_EQ(evaluated(score_case(low_tie, QKCTS_BFLOAT16)).stages[QKCTS_STAGE_LSE].hi[0], 1);
  EXPECT_EQ(evaluated(score_case(low_tie, QKCTS_BFLOAT16)).statistics.score_max[0], 1);
}

TEST(DeclaredRows, TooFewPrecisionsAreRefused) {
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
TEST(DeclaredRows, CappedOnATie) {
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
TEST(DeclaredRows, ProbabilityOnATie) {
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
TEST(DeclaredRows, OutputOnATie) {
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
TEST(DeclaredRows, OutputOfRoundedProbabilities) {
  Case c = small_case(Format::binary32, 3, 1, [](qkcts_contract& terms) { terms.rounding.probs = QKCTS_BFLOAT16; });
  set(c, Input::q, {1});
  set(c, Input::k, {0.5, 0.5, 0.5});
  set(c, Input::v, {1, 1, 1});
  expect_rounded(c, QKCTS_STAGE_PROBS, 1.0 / 3, 171.0 / 512);
  EXPECT_EQ(evaluated(c).stages[QKCTS_STAGE_OUTPUT].hi[0], 513.0 / 512);
  c.contract.terms.rounding.output = QKCTS_BFLOAT16;
  expect_rounded(c, QKCTS_STAGE_OUTPUT, 513.0 / 512, 1);
}

TEST(DeclaredRows, AUniformRowHasItsPoints) {
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

TEST(DeclaredRows, ARowOfZerosHasNothingToRound) {
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

TEST(DeclaredRows, OverflowIsNoCase) {
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

// Points in binary64 move nothing that binary32 shows, but for a value beside one of its ties.
TEST(DeclaredRows, PointsInAWideFormatLeaveNearlyEverything) {
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

// Every stage after a point is computed from the rounded one, whatever it is stored in.
TEST(DeclaredRows, LaterStagesFollowTheRoundedOnes) {
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
