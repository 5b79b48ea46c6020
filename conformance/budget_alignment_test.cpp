// SPDX-License-Identifier: Apache-2.0
// Sums of products in a matrix unit that aligns a subnormal factor by the exponent with which it is stored. Each test
// runs such a unit, shows that its error exceeds the budget without M2, and that Delta covers it.
#include "conformance/budget_alignment.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "conformance/budget_output.hpp"
#include "conformance/budget_projection.hpp"
#include "conformance/budget_rounded_output.hpp"
#include "conformance/budget_score.hpp"
#include "conformance/machine_profile.hpp"

namespace qkcts {
namespace {

constexpr TermSet without = all_budget_terms & ~(TermSet{1} << static_cast<unsigned>(BudgetTerm::matrix_alignment));
constexpr int smallest_exponent = -14;  // of binary16
constexpr int fraction = 23;            // bits that the unit keeps; K = 4

using Numbers = std::vector<double>;

// At most four products, aligned to the largest exponent and cut off there; `stored`: that of a subnormal factor is the
// one of the smallest normal number.
double unit_sum(const Numbers& a, const Numbers& b, bool stored) {
  const auto exponent = [stored](double x) { return std::max(std::ilogb(x), stored ? smallest_exponent : -24); };
  int top = -1000;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != 0 && b[i] != 0) top = std::max(top, exponent(a[i]) + exponent(b[i]));
  }
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::trunc(std::ldexp(a[i] * b[i], fraction - top));
  return std::ldexp(sum, top - fraction);
}

double wrong(const Numbers& a, const Numbers& b, bool stored = true) {
  return std::fabs(unit_sum(a, b, stored) - std::inner_product(a.begin(), a.end(), b.begin(), 0.0));
}

VectorError read(const Numbers& x) {
  VectorError vector;
  for (const double value : x) vector.magnitude.push_back(std::fabs(value));
  vector.error.resize(x.size());
  return vector;
}

double scaled_budget(const Numbers& q, const Numbers& k, const ScoreScale& scale, TermSet terms,
                     const char* profile = "f16_f32acc") {
  KeyPanel keys(static_cast<std::int64_t>(q.size()), 1);
  keys.set(0, read(k));
  const Numbers exact{scale.tau * std::inner_product(q.begin(), q.end(), k.begin(), 0.0)};
  Numbers error(1);
  score_errors(read(q), keys, scale, exact, 0, 1, BudgetArithmetic(shipped_profile(profile), terms), error);
  return error[0];
}

double score_budget(const Numbers& q, const Numbers& k, TermSet terms, const char* profile = "f16_f32acc") {
  return scaled_budget(q, k, {}, terms, profile);
}

// 2^-24 counts as 2^-14 beside 2^15: the other products lose what lies below 2^-22.
const Numbers tiny_among = {0x1p-24, 0x1.cc8p-5, 0x1.028p-5, 0x1.758p-5};
const Numbers huge_among = {0x1p15, -0x1.814p-7, -0x1.4ccp-6, -0x1.cf8p-7};

TEST(BudgetAlignment, AScoreOfASubnormalElement) {
  ASSERT_GT(wrong(tiny_among, huge_among), 5 * score_budget(tiny_among, huge_among, without));
  EXPECT_LE(wrong(tiny_among, huge_among), score_budget(tiny_among, huge_among, all_budget_terms));
  EXPECT_LE(wrong(huge_among, tiny_among), score_budget(huge_among, tiny_among, all_budget_terms));
  EXPECT_LE(wrong(tiny_among, huge_among, false), score_budget(tiny_among, huge_among, without)) << "by leading bits";
}

// The bound is no looser than a unit makes it by more than what K and F of the profile admit.
TEST(BudgetAlignment, AScoreIsAsFarOffAsItMayBe) {
  EXPECT_GT(wrong(tiny_among, huge_among), 0.2 * score_budget(tiny_among, huge_among, all_budget_terms));
}

TEST(BudgetAlignment, NothingChangesWithoutASubnormalFactor) {
  const Numbers q = {0x1p-13, 0.5, 0.25, 3};
  EXPECT_EQ(score_budget(q, huge_among, all_budget_terms), score_budget(q, huge_among, without));
  const Numbers zeros = {0, 0x1p-3, 0, 0x1p-4};  // no factor of a product that is not 0
  EXPECT_EQ(score_budget(zeros, huge_among, all_budget_terms), score_budget(zeros, huge_among, without));
  EXPECT_EQ(score_budget(tiny_among, huge_among, all_budget_terms, "f32"),
            score_budget(tiny_among, huge_among, without, "f32"))
      << "no unit";
  EXPECT_EQ(score_budget(tiny_among, huge_among, all_budget_terms, "bf16_f32acc"),
            score_budget(tiny_among, huge_among, without, "bf16_f32acc"))
      << "2^-24 is normal in bfloat16";
}

// A scale of 2^-3 that is folded into q makes 2^-21 the 2^-24 of above.
TEST(BudgetAlignment, AScaleMayBeFoldedIn) {
  Numbers q = tiny_among;
  for (double& x : q) x *= 8;
  ScoreScale scale;
  scale.tau = 0x1p-3;
  EXPECT_GT(wrong(tiny_among, huge_among), 5 * scaled_budget(q, huge_among, scale, without));
  EXPECT_LE(wrong(tiny_among, huge_among), scaled_budget(q, huge_among, scale, all_budget_terms));
}

// A normal element of q, 2^-14, that a scale of 2^-8 makes subnormal: it counts as 2^-6, not as 2^-14.
TEST(BudgetAlignment, AFoldedScaleMakesNormalElementsSubnormal) {
  const Numbers q = {0x1p-14, 0x1.cc8p3, 0x1.028p3, 0x1.758p3};
  const Numbers& k = huge_among;
  Numbers folded = q;
  for (double& x : folded) x *= 0x1p-8;
  for (const double x : folded) ASSERT_EQ(decode(Format::binary16, encode(Format::binary16, x)), x);
  ScoreScale scale;
  scale.tau = 0x1p-8;
  EXPECT_LE(wrong(folded, k), scaled_budget(q, k, scale, all_budget_terms));
  EXPECT_GT(wrong(folded, k), 2 * scaled_budget(q, k, scale, without));
}

// A row of zeros behind a norm has an error, and still nothing that a unit would align.
TEST(BudgetAlignment, ZerosWithAnErrorStayZeros) {
  for (const char* profile : {"f16_f32acc", "bf16_f32acc"}) {
    const auto budget = [&](TermSet terms) {
      VectorError zeros = read(Numbers(4));
      zeros.error.assign(4, 0x1p-140);
      KeyPanel keys(4, 1);
      keys.set(0, read(huge_among));
      Numbers error(1);
      score_errors(zeros, keys, {}, Numbers{0}, 0, 1, BudgetArithmetic(shipped_profile(profile), terms), error);
      return error[0];
    };
    EXPECT_EQ(budget(all_budget_terms), budget(without)) << profile;
  }
}

// One token, one column: the sum of x W, of a norm of x where there is one.
double projection_budget(const Numbers& x, const Numbers& w, bool normed, TermSet terms) {
  Case c;
  c.contract.terms.projection.form = QKCTS_PROJECTION_LINEAR;
  c.contract.terms.projection.q_input.applied = normed ? 1 : 0;
  c.contract.terms.projection.q_input.eps = 1e-6;
  c.shape = {1, 1, 1, 1, 1, 1, 1};
  c.inputs.format = Format::binary16;
  const auto set = [&c](Input input, std::vector<std::int64_t> shape, const Numbers& values) {
    Tensor tensor = Tensor::zeros(element_type(Format::binary16), std::move(shape));
    for (std::size_t i = 0; i < values.size(); ++i) tensor.set_pattern(i, encode(Format::binary16, values[i]));
    c.inputs.set(input, tensor);
  };
  set(Input::q_x, {1, 1, static_cast<std::int64_t>(x.size())}, x);
  set(Input::q_weight, {static_cast<std::int64_t>(x.size()), 1}, w);
  const Numbers exact{std::inner_product(x.begin(), x.end(), w.begin(), 0.0)};
  const BudgetArithmetic arithmetic(shipped_profile("f16_f32acc"), terms);
  const qkcts_projection& projection = c.contract.terms.projection;
  return ProjectionBudget(c,
                          {Input::q_x, Input::q_weight, Input::q_weight_bias, Input::q_x_gain, Input::q_x_bias,
                           projection.q_input, c.contract.terms.rounding.q_input, 1, 1},
                          exact, arithmetic)
      .row(0, 0, 0)
      .error[0];
}

TEST(BudgetAlignment, AProjectionOfASubnormalEntry) {
  for (const bool entry : {true, false}) {  // and of the matrix
    const Numbers& x = entry ? tiny_among : huge_among;
    const Numbers& w = entry ? huge_among : tiny_among;
    EXPECT_GT(wrong(x, w), 5 * projection_budget(x, w, false, without));
    EXPECT_LE(wrong(x, w), projection_budget(x, w, false, all_budget_terms));
  }
}

// Rows of 2^-20 that a norm makes 1: the factor 1/d may come after the sum, and then they meet the matrix as they are.
TEST(BudgetAlignment, ANormMayComeAfterTheProjection) {
  const Numbers tiny = {0x1p-20, -0x1p-21, 0x1p-20, -0x1p-20}, plain = {1, -0.5, 1, -1};
  const Numbers w = {0x1p-9, 0x1p-8, 0x1p-9, 0x1p-9};
  EXPECT_GT(projection_budget(tiny, w, true, all_budget_terms), projection_budget(tiny, w, true, without));
  EXPECT_EQ(projection_budget(plain, w, true, all_budget_terms), projection_budget(plain, w, true, without));
}

// A column whose value is subnormal where the weight is, under weights that any key may have.
TEST(BudgetAlignment, AnOutputOfSubnormalValues) {
  const Numbers scores = {12, 0, 0}, errors(3);
  const double rest = std::exp(-12.0), sum = 1 + 2 * rest;
  const Numbers p = {1 / sum, rest / sum, rest / sum};
  const Numbers v = {0x1p-24, 1, 1, 0.5, -0.5, 1};  // two columns
  const Numbers exact{p[0] * v[0] + p[1] * v[2] + p[2] * v[4], p[0] * v[1] + p[1] * v[3] + p[2] * v[5]};
  const auto budget = [&](TermSet terms, const char* profile) {
    const BudgetArithmetic arithmetic(shipped_profile(profile), terms);
    SoftmaxKeys row;
    row.scores = scores;
    row.errors = errors;
    row.probabilities = p;
    row.lse = 12 + std::log(sum);
    row.slots = 4;
    ValueRows values;
    values.length = 2;
    values.base = v.data();
    for (std::size_t key = 0; key < 3; ++key) values.v.push_back(v.data() + 2 * key);
    return output_errors(row_weights(row, arithmetic), values, exact, 4, arithmetic).error;
  };
  const Numbers with = budget(all_budget_terms, "f16_f32acc"), less = budget(without, "f16_f32acc");
  EXPECT_GT(with[0], less[0]);
  EXPECT_EQ(with[1], less[1]) << "magnitudes that no subnormal reaches";
  EXPECT_EQ(budget(all_budget_terms, "bf16_f32acc"), budget(without, "bf16_f32acc"));
}

// Weights that a rounding point has made: nothing else is off in the product with v. Of each product but the first the
// last three bits, all set, lie below the cut.
TEST(BudgetAlignment, ASubnormalValueUnderRoundedWeights) {
  const Numbers p = {0x1.ff8p-1, 0x1.0acp-12, 0x1.364p-12, 0x1.d2cp-12};
  const Numbers v = {0x1p-24, 0x1.334p-9, 0x1.7bcp-9, 0x1.5d4p-9};
  ValueRows values;
  values.length = 1;
  values.base = v.data();
  for (const double& value : v) values.v.push_back(&value);
  const Numbers exact{std::inner_product(p.begin(), p.end(), v.begin(), 0.0)};
  const auto budget = [&](TermSet terms) {
    return rounded_output_errors(p, Numbers(4), values, exact, 4, 0,
                                 BudgetArithmetic(shipped_profile("f16_f32acc"), terms))
        .error[0];
  };
  EXPECT_GT(wrong(p, v), 2 * budget(without));
  EXPECT_LE(wrong(p, v), budget(all_budget_terms));
}

}  // namespace
}  // namespace qkcts
