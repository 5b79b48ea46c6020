// SPDX-License-Identifier: Apache-2.0
// Machines that the formulas have to admit beside plain binary32: lanes, operands that lose bits, binary16
// accumulators, approximate functions. Each test runs what such a machine does, and shows that a simpler bound would
// reject it.
#include "conformance/budget_arithmetic.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "conformance/budget_cap.hpp"
#include "conformance/budget_output.hpp"
#include "conformance/budget_scale.hpp"
#include "conformance/budget_score.hpp"
#include "conformance/budget_softmax.hpp"

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;

// What a unit for tf32 reads: 10 fraction bits, the others cut off.
double cut(double x) {
  const int last = std::ilogb(x) - 10;
  return std::ldexp(std::trunc(std::ldexp(x, -last)), last);
}

double in_binary16(double x) {
  return decode(Format::binary16, encode(Format::binary16, x));
}

VectorError exactly(const std::vector<double>& x) {
  VectorError v;
  for (const double value : x) v.magnitude.push_back(std::fabs(value));
  v.error.resize(x.size());
  return v;
}

double score_budget(const std::vector<double>& q, const std::vector<double>& k, const ScoreScale& scale,
                    const Profile& profile) {
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  KeyPanel keys(static_cast<std::int64_t>(q.size()), 1);
  keys.set(0, exactly(k));
  double s = 0;
  for (std::size_t d = 0; d < q.size(); ++d) s += q[d] * k[d];
  std::vector<double> error(1);
  score_errors(exactly(q), keys, scale, std::vector<double>{s * scale.tau}, 0, 1, arithmetic, error);
  return error[0];
}

TEST(BudgetArithmetic, LanesShortenEverySum) {
  Profile profile;
  const BudgetArithmetic any(profile, all_budget_terms);
  profile.lanes = 8;
  const BudgetArithmetic lanes(profile, all_budget_terms);
  const auto roundings = [](double growth) { return std::log1p(growth) / u; };
  EXPECT_NEAR(roundings(any.growth(BudgetTerm::score_dot, 128)), 128, 0.01);
  EXPECT_NEAR(roundings(lanes.growth(BudgetTerm::score_dot, 128)), 16 + 3,
              0.01);  // its product, 15 in the lane, 3 joins
  EXPECT_NEAR(roundings(lanes.growth(BudgetTerm::score_dot, 5)), 1 + 3, 0.01);
  EXPECT_NEAR(roundings(lanes.growth(BudgetTerm::score_dot, 2)), 2, 0.01);
  profile.lanes = 12;
  EXPECT_NEAR(roundings(BudgetArithmetic(profile, all_budget_terms).growth(BudgetTerm::score_dot, 24)), 2 + 4, 0.01);
}

// 40 visible keys, 8 apart: one lane adds them all, each 0.98 half ulps of the first. Counted as if they were
// neighbours, they would have 5 additions.
TEST(BudgetArithmetic, ScatteredKeysMeetInOneLane) {
  Profile profile;
  profile.lanes = 8;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  const double tail = 0.98 * u;
  float lane = 1;
  for (int i = 1; i < 40; ++i) lane += static_cast<float>(tail);
  const double exact = 1 + 39 * tail;
  const double lost = exact / static_cast<double>(lane) - 1;
  ASSERT_GT(lost, 38 * u);
  std::vector<double> scores(40, std::log(tail)), errors(40, 0.0), p(40, tail / exact);
  scores[0] = 0;
  p[0] = 1 / exact;
  SoftmaxKeys row;
  row.scores = scores;
  row.errors = errors;
  row.probabilities = p;
  row.lse = std::log(exact);
  row.slots = 160;
  row.in_lane = 40;
  EXPECT_GE(row_weights(row, arithmetic).sum_inverse, lost);
  row.in_lane = 5;
  EXPECT_LT(row_weights(row, arithmetic).sum_inverse, lost);
}

TEST(BudgetArithmetic, OperandsAreCutOff) {
  Profile tf32;
  tf32.u_q = tf32.u_k = 0x1p-10;
  const double x = 1 + 0x1.ffep-11;  // everything behind the tenth fraction bit
  ASSERT_EQ(cut(x), 1);
  const std::vector<double> q(64, x), k(64, x);
  ScoreScale scale;
  scale.tau = 0.125;
  const double wrong = 64 * (x * x - 1) * 0.125;
  EXPECT_LE(wrong, score_budget(q, k, scale, tf32));
  EXPECT_GT(wrong, 0.9 * score_budget(q, k, scale, tf32));
  EXPECT_GT(wrong, 5 * score_budget(q, k, scale, Profile{}));
  // After a cancellation, too: what is dropped is relative to the products, not to the score.
  std::vector<double> other(64, x);
  for (std::size_t d = 0; d < 64; d += 2) other[d] = -1;
  const double exact = 32 * x * x - 32 * x, got = 0;
  EXPECT_LE(std::fabs(exact - got) * 0.125, score_budget(q, other, scale, tf32));
  EXPECT_GT(std::fabs(exact - got), 2 * 0x1p-10 * exact);
}

// An operand that is read as 0 because it is subnormal, in front of a large one; the scale comes later.
TEST(BudgetArithmetic, SubnormalOperandsOfAUnit) {
  Profile tf32;
  tf32.u_q = tf32.u_k = 0x1p-10;
  tf32.operand_underflow = 0x1p-126;
  ScoreScale scale;
  scale.tau = 8;
  const double q = 0x1.8p-127, k = 0x1p100;
  EXPECT_LE(q * k * 8, score_budget({q}, {k}, scale, tf32));
  tf32.operand_underflow = 0;
  EXPECT_GT(q * k * 8, score_budget({q}, {k}, scale, tf32));
}

TEST(BudgetArithmetic, ValuesAndWeightsAreCutOff) {
  Profile tf32;
  tf32.u_p = tf32.u_v = 0x1p-10;
  const double v = 1 + 0x1.ffcp-11;
  const double weight = v / 2;
  const std::vector<double> scores{0, std::log(weight)}, errors(2, 0.0);
  const double sum = 1 + weight;
  const std::vector<double> p{1 / sum, weight / sum}, values{0, v};
  const auto budget = [&](const Profile& profile) {
    const BudgetArithmetic arithmetic(profile, all_budget_terms);
    SoftmaxKeys row;
    row.scores = scores;
    row.errors = errors;
    row.probabilities = p;
    row.lse = std::log(sum);
    row.slots = 4;
    const std::vector<double> read{0, arithmetic.value_error(v, 0)};
    ValueRows rows;
    rows.length = 1;
    rows.base = values.data();
    rows.error = read.data();
    for (const double& value : values) rows.v.push_back(&value);
    const std::vector<double> exact{p[1] * v};
    return output_errors(row_weights(row, arithmetic), rows, exact, 4, arithmetic).error[0];
  };
  const double wrong = std::fabs(cut(weight) * cut(v) / sum - p[1] * v);
  ASSERT_GT(wrong, 1.5 * 0x1p-10 * p[1] * v);
  EXPECT_LE(wrong, budget(tf32));
  EXPECT_GT(wrong, 0.7 * budget(tf32));
  tf32.u_p = 0;
  EXPECT_GT(wrong, budget(tf32)) << "the values alone";
}

TEST(BudgetArithmetic, AZeroStaysAZero) {
  Profile tf32;
  tf32.u_v = 0x1p-10;
  tf32.operand_underflow = 0x1p-126;
  const BudgetArithmetic arithmetic(tf32, all_budget_terms);
  EXPECT_EQ(arithmetic.value_error(0, 0), 0);
  EXPECT_EQ(arithmetic.value_error(1, 0), 0x1p-10 + 0x1p-126);
  EXPECT_EQ(BudgetArithmetic(tf32, 0).value_error(1, 0), 0);
}

// Constants of a contract in binary16: below 2^-14 an ulp is not relative, and beyond 65504 there is none.
TEST(BudgetArithmetic, ConstantsOfANarrowAccumulator) {
  Profile profile;
  profile.accumulator = Format::binary16;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  double beyond = 0;
  for (int i = 0; i < 740; ++i) {
    const double c = 1e-7 * std::pow(1.037, i);
    const double wrong = std::fabs(in_binary16(c) - c) / c;
    ASSERT_LE(wrong, arithmetic.constant_error(BudgetTerm::score_scale, c)) << c;
    beyond = std::max(beyond, wrong / 0x1p-11);
  }
  EXPECT_GT(beyond, 100);
  EXPECT_FALSE(arithmetic.holds(7e4));
  EXPECT_TRUE(arithmetic.holds(6e4));
  EXPECT_EQ(arithmetic.constant_error(BudgetTerm::score_scale, 0.375), 0);
}

// Factors that were written for u = 2^-24: a product of two rounded constants in binary16 is 1.0009 times the exact
// one.
TEST(BudgetArithmetic, RoomOfANarrowAccumulator) {
  Profile profile;
  EXPECT_EQ(BudgetArithmetic(profile, all_budget_terms).range_room(8), 1.0001);
  EXPECT_EQ(BudgetArithmetic(profile, all_budget_terms).base_two_room(), 1.5);
  EXPECT_EQ(BudgetArithmetic(profile, all_budget_terms).second_order(), 1);
  profile.accumulator = Format::binary16;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  const double a = 1 + 0x1.02p-11, b = 1 + 0x1.02p-11;  // just above half way: both round up
  const double product = in_binary16(in_binary16(a) * in_binary16(b)) / (a * b);
  EXPECT_GT(product, 1.0001);
  EXPECT_LT(product, arithmetic.range_room(3));
  EXPECT_GT(arithmetic.base_two_room(), in_binary16(in_binary16(1.4426950408889634) * 1.001));
  EXPECT_GT(arithmetic.second_order(), 1 + 8 * 0x1p-11);
}

// Exponents of scaled numbers: three roundings of first order are not the whole in binary16.
TEST(BudgetArithmetic, ExponentsInBinary16) {
  Profile profile;
  profile.accumulator = profile.storage = Format::binary16;
  profile.k_exp = profile.k_log = profile.k_div = 0.5;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  double ratio = 0;
  for (int i = 0; i < 2000; ++i) {
    const double m = in_binary16(20 + i * 0.013), s = in_binary16(m - 0.75);
    const double log2_e = in_binary16(1.4426950408889634);
    const double x = in_binary16(in_binary16(s * log2_e) - in_binary16(m * log2_e));
    const double weight = in_binary16(std::exp2(x));
    const std::vector<double> scores{m, s}, errors(2, 0.0);
    const double sum = 1 + std::exp(s - m);
    const std::vector<double> p{1 / sum, std::exp(s - m) / sum};
    SoftmaxKeys row;
    row.scores = scores;
    row.errors = errors;
    row.probabilities = p;
    row.lse = m + std::log(sum);
    row.slots = 4;
    const RowWeights w = row_weights(row, arithmetic);
    const double off = std::fabs(std::log(weight) - (s - m));
    const double granted = std::log(w.grown[1] / w.probability[1]);
    ASSERT_LE(off, granted) << i;
    ratio = std::max(ratio, off / granted);
  }
  EXPECT_GT(ratio, 0.1);
}

// A hardware tanh at saturation: 2^-11 of the cap, where k_tanh grants 4 ulp.
TEST(BudgetArithmetic, ApproximateTanh) {
  Case c;
  c.contract.terms.score.softcap = 50;
  const auto budget = [&](const Profile& profile) {
    const BudgetArithmetic arithmetic(profile, all_budget_terms);
    return capped_error(cap_terms(c, arithmetic), 600, 0, {}, {}, 50, arithmetic).error;
  };
  Profile fast;
  fast.a_tanh = 0x1p-11;
  const double wrong = 50 * 0x1p-11;
  EXPECT_LE(wrong, budget(fast));
  EXPECT_GT(wrong, 0.9 * budget(fast));
  EXPECT_GT(wrong, 100 * budget(Profile{}));
  Profile absolute;
  absolute.b_tanh = 0x1p-11;
  EXPECT_LE(wrong, budget(absolute));
  EXPECT_GT(wrong, 0.9 * budget(absolute));
}

// A hardware logarithm of a row sum that is almost 1: an absolute error, where no relative one would be any.
TEST(BudgetArithmetic, ApproximateLogarithm) {
  const std::vector<double> scores{0}, errors{0}, p{1};
  const auto budget = [&](const Profile& profile) {
    const BudgetArithmetic arithmetic(profile, all_budget_terms);
    SoftmaxKeys row;
    row.scores = scores;
    row.errors = errors;
    row.probabilities = p;
    row.slots = 4;
    return lse_error(row_weights(row, arithmetic), row.lse, false, arithmetic);
  };
  Profile fast;
  fast.b_log = 0x1p-18;
  EXPECT_LE(2 * 0x1p-18, budget(fast));  // of the parts, and of what they are merged into
  EXPECT_GT(2 * 0x1p-18, 0.7 * budget(fast));
  EXPECT_GT(0x1p-18, budget(Profile{}));
}

}  // namespace
}  // namespace qkcts
