// SPDX-License-Identifier: Apache-2.0
// Stages behind their rounding points, through the whole composition: what a budget is made of there, and how often it
// is not 0.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "conformance/budget.hpp"
#include "conformance/budget_rounded_norm.hpp"
#include "conformance/budget_terms.hpp"

namespace qkcts {
namespace {

constexpr TermSet without(BudgetTerm term) {
  return ~(TermSet{1} << static_cast<unsigned>(term));
}

double nearest(Format format, double x) {
  return decode(format, encode(format, x));
}

Tensor tensor_of(Format format, std::vector<std::int64_t> shape, const std::vector<double>& values) {
  Tensor tensor = Tensor::zeros(element_type(format), std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.set_pattern(i, encode(format, values[i]));
  }
  return tensor;
}

// One head, `rows` queries and keys of one vector each; no norm, scale 1.
Case plain_case(Format format, std::int64_t rows, std::int64_t head_dim, const std::vector<double>& q,
                const std::vector<double>& k) {
  Case c;
  c.contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
  c.contract.terms.score.scale_value = 1;
  c.shape = {1, 1, 1, rows, rows, head_dim, 1};
  c.inputs.format = format;
  c.inputs.set(Input::q, tensor_of(format, {1, 1, rows, head_dim}, q));
  c.inputs.set(Input::k, tensor_of(format, {1, 1, rows, head_dim}, k));
  c.inputs.set(Input::v, tensor_of(format, {1, 1, rows, 1}, std::vector<double>(static_cast<std::size_t>(rows), 1.0)));
  return c;
}

// A sum of 64 products whose exact value lies just above the middle of two bfloat16 numbers. Added one after another
// the small ones vanish: 63 quarters of a rounding, which a budget without the growth of the sum does not hold.
TEST(RoundedStage, TheGrowthOfTheSumStandsBeforeThePoint) {
  std::vector<double> q(64, 1.0), k(64, 0x1p-25);
  k[0] = 1 + 0x1p-8;
  Case c = plain_case(Format::binary32, 1, 64, q, k);
  c.contract.terms.rounding.scores = QKCTS_BFLOAT16;
  const double exact = 1 + 0x1p-8 + 63 * 0x1p-25;
  ExactStages stages;
  stages.before[QKCTS_STAGE_SCORES] = {exact};
  stages.values[QKCTS_STAGE_SCORES] = {1 + 0x1p-7};
  StageRows rows;
  rows[QKCTS_STAGE_SCORES] = {0};
  float sum = 0;
  for (std::size_t i = 0; i < q.size(); ++i) {
    sum += static_cast<float>(q[i]) * static_cast<float>(k[i]);
  }
  const double wrong = std::fabs(nearest(Format::bfloat16, static_cast<double>(sum)) - (1 + 0x1p-7));
  EXPECT_EQ(wrong, 0x1p-7);
  stages.values[QKCTS_STAGE_PROBS] = stages.values[QKCTS_STAGE_OUTPUT] = {1};
  stages.values[QKCTS_STAGE_LSE] = {1 + 0x1p-7};
  const auto delta = [&](TermSet terms) {
    return static_cast<double>(stage_budgets(c, stages, rows, Profile{}, terms)[QKCTS_STAGE_SCORES].delta[0]);
  };
  EXPECT_GE(delta(all_budget_terms), wrong);
  EXPECT_LT(delta(all_budget_terms), 1.001 * wrong);
  EXPECT_EQ(delta(without(BudgetTerm::score_dot)), 0);
  EXPECT_EQ(delta(without(BudgetTerm::rounding_point)), 0);
}

// The same sum at the point `product`, before a scale of 3/4: three quarters of the neighbour's distance. And a product
// away from boundaries, whose score has the roundings of its scale alone, however large its terms are.
TEST(RoundedStage, TheProductIsRoundedBeforeItsScale) {
  const auto delta = [](const Case& c, double product, double rounded, TermSet terms = all_budget_terms) {
    ExactStages stages;
    stages.products = {product};
    stages.values[QKCTS_STAGE_SCORES] = {0.75 * rounded};
    stages.values[QKCTS_STAGE_PROBS] = stages.values[QKCTS_STAGE_OUTPUT] = {1};
    stages.values[QKCTS_STAGE_LSE] = {0.75 * rounded};
    StageRows rows;
    rows[QKCTS_STAGE_SCORES] = {0};
    return static_cast<double>(stage_budgets(c, stages, rows, Profile{}, terms)[QKCTS_STAGE_SCORES].delta[0]);
  };
  std::vector<double> q(64, 1.0), k(64, 0x1p-25);
  k[0] = 1 + 0x1p-8;
  Case c = plain_case(Format::binary32, 1, 64, q, k);
  c.contract.terms.score.scale_value = 0.75;
  c.contract.terms.rounding.product = QKCTS_BFLOAT16;
  const double product = 1 + 0x1p-8 + 63 * 0x1p-25;
  EXPECT_GE(delta(c, product, 1 + 0x1p-7), 0.75 * 0x1p-7);
  EXPECT_LT(delta(c, product, 1 + 0x1p-7), 0.76 * 0x1p-7);
  EXPECT_LT(delta(c, product, 1 + 0x1p-7, without(BudgetTerm::score_dot)), 0x1p-20);

  Case cancelling = plain_case(Format::binary32, 1, 2, {100, 100}, {100, -99.875});
  cancelling.contract.terms.score.scale_value = 0.75;
  cancelling.contract.terms.rounding.product = QKCTS_BFLOAT16;
  EXPECT_GT(delta(cancelling, 12.5, 12.5), 0);
  EXPECT_LT(delta(cancelling, 12.5, 12.5), 12 * 0x1p-24 * 12.5);
  cancelling.contract.terms.rounding.product = 0;
  EXPECT_GT(delta(cancelling, 12.5, 12.5), 1000 * 0x1p-24 * 12.5) << "without the point the terms count";
}

// Rows that pass a point between their norm and the matrix: an entry that lies in the middle of two numbers of the
// point may be either of them, and the others are what they are.
TEST(RoundedStage, ANormedRowIsRoundedBeforeItsProjection) {
  const auto delta = [](double gain, std::uint32_t point) {
    Case c = plain_case(Format::binary32, 1, 1, {0}, {1});
    c.contract.terms.projection.form = QKCTS_PROJECTION_LINEAR;
    qkcts_norm& norm = c.contract.terms.projection.q_input;
    norm.applied = 1;
    norm.statistic = QKCTS_SUM_SQUARE;
    norm.gain = QKCTS_GAIN_W;
    norm.gain_axes = QKCTS_AXES_SCALAR;
    c.contract.terms.rounding.q_input.norm = point;
    c.inputs.set(Input::q_x, tensor_of(Format::binary32, {1, 1, 2}, {3, 4}));
    c.inputs.set(Input::q_x_gain, tensor_of(Format::binary32, {1}, {gain}));
    c.inputs.set(Input::q_weight, tensor_of(Format::binary32, {2, 1}, {1, 0}));
    c.inputs.set(Input::k_x, tensor_of(Format::binary32, {1, 1, 1}, {1}));
    c.inputs.set(Input::k_weight, tensor_of(Format::binary32, {1, 1}, {1}));
    ExactStages stages;
    const double entry = point == 0 ? 0.6 * gain : nearest(Format::bfloat16, 0.6 * gain);
    stages.values[QKCTS_STAGE_Q_PROJ] = {entry};
    stages.values[QKCTS_STAGE_K_PROJ] = {1};
    StageRows rows;
    rows[QKCTS_STAGE_Q_PROJ] = {0};
    return static_cast<double>(stage_budgets(c, stages, rows, Profile{})[QKCTS_STAGE_Q_PROJ].delta[0]);
  };
  constexpr double on_tie = 5 * 87.0 / 256;  // 3/5 of that is 261/256
  EXPECT_GT(delta(on_tie, QKCTS_BFLOAT16), 0.99 * 0x1p-7);
  EXPECT_LT(delta(on_tie, QKCTS_BFLOAT16), 1.01 * 0x1p-7);
  EXPECT_LT(delta(1.7, QKCTS_BFLOAT16), 16 * 0x1p-24);
  EXPECT_GT(delta(1.7, 0), 0x1p-24);
}

// Away from boundaries a score behind its point is exactly what it is: Delta is 0, with nothing for the storage.
TEST(RoundedStage, DeltaMayBeZero) {
  Case c = plain_case(Format::binary32, 2, 2, {1, 2, 1.1, 0.3}, {1, 0.1, 1, 1});
  c.contract.terms.rounding.scores = QKCTS_BFLOAT16;
  c.contract.terms.rounding.probs = QKCTS_BFLOAT16;
  ExactStages stages;
  const std::vector<double> q = c.inputs.at(Input::q).values(), k = c.inputs.at(Input::k).values();
  StageRows rows;
  for (std::size_t t = 0; t < 2; ++t) {
    double total = 0;
    std::vector<double> weights;
    for (std::size_t j = 0; j < 2; ++j) {
      const double s = q[2 * t] * k[2 * j] + q[2 * t + 1] * k[2 * j + 1];
      stages.before[QKCTS_STAGE_SCORES].push_back(s);
      stages.values[QKCTS_STAGE_SCORES].push_back(nearest(Format::bfloat16, s));
      weights.push_back(std::exp(stages.values[QKCTS_STAGE_SCORES].back()));
      total += weights.back();
    }
    stages.values[QKCTS_STAGE_LSE].push_back(std::log(total));
    double output = 0;
    for (const double w : weights) {
      stages.before[QKCTS_STAGE_PROBS].push_back(w / total);
      stages.values[QKCTS_STAGE_PROBS].push_back(nearest(Format::bfloat16, w / total));
      output += stages.values[QKCTS_STAGE_PROBS].back();
    }
    stages.values[QKCTS_STAGE_OUTPUT].push_back(output);
    for (const qkcts_stage stage : {QKCTS_STAGE_SCORES, QKCTS_STAGE_PROBS, QKCTS_STAGE_LSE, QKCTS_STAGE_OUTPUT}) {
      rows[stage].push_back(static_cast<std::uint32_t>(t));
    }
  }
  const auto budgets = stage_budgets(c, stages, rows, Profile{});
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(budgets[QKCTS_STAGE_SCORES].delta[i], 0) << i;
    EXPECT_EQ(budgets[QKCTS_STAGE_PROBS].delta[i], 0) << i;
    EXPECT_EQ(budgets[QKCTS_STAGE_PROBS].trust[i], Trust::judged);
  }
  for (std::size_t t = 0; t < 2; ++t) {
    EXPECT_GT(budgets[QKCTS_STAGE_LSE].delta[t], 0);
    EXPECT_LT(budgets[QKCTS_STAGE_LSE].delta[t], 1e-5);
    EXPECT_GT(budgets[QKCTS_STAGE_OUTPUT].delta[t], 0);
    EXPECT_LT(budgets[QKCTS_STAGE_OUTPUT].delta[t], 1e-6);
  }
}

// 65,536 entries of a norm rounded to bfloat16, computed in binary32: about one in a thousand lies so near a boundary
// that a correct implementation may go to the other side. All the others have the budget 0.
TEST(RoundedStage, OneEntryInAThousandOfANormStraddles) {
  constexpr std::int64_t head_dim = 64, rows = 1024;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  std::vector<double> q, k(rows * head_dim, 1.0);
  for (std::int64_t i = 0; i < rows * head_dim; ++i) {
    q.push_back(nearest(Format::bfloat16, normal(random)));
  }
  Case c = plain_case(Format::bfloat16, rows, head_dim, q, k);
  c.contract.terms.q_norm.applied = 1;
  c.contract.terms.q_norm.eps = 1e-6;
  c.contract.terms.rounding.q.norm = QKCTS_BFLOAT16;
  ExactStages stages;
  StageRows wanted;
  for (std::int64_t t = 0; t < rows; ++t) {
    long double square = 0;
    const double* x = q.data() + t * head_dim;
    for (std::int64_t d = 0; d < head_dim; ++d) {
      square += static_cast<long double>(x[d]) * x[d];
    }
    const long double root = std::sqrt(square / head_dim + 1e-6L);
    for (std::int64_t d = 0; d < head_dim; ++d) {
      stages.before[QKCTS_STAGE_Q_NORM].push_back(static_cast<double>(x[d] / root));
      stages.values[QKCTS_STAGE_Q_NORM].push_back(nearest(Format::bfloat16, stages.before[QKCTS_STAGE_Q_NORM].back()));
    }
    wanted[QKCTS_STAGE_Q_NORM].push_back(static_cast<std::uint32_t>(t));
  }
  Profile profile;
  profile.storage = Format::bfloat16;
  const StageBudget budget = stage_budgets(c, stages, wanted, profile)[QKCTS_STAGE_Q_NORM];
  std::size_t straddling = 0;
  for (std::size_t i = 0; i < budget.delta.size(); ++i) {
    const double unit = ulp(Format::bfloat16, stages.values[QKCTS_STAGE_Q_NORM][i]);
    if (budget.delta[i] > 0) {
      ++straddling;
      EXPECT_LE(static_cast<double>(budget.delta[i]), 1.001 * unit);
      EXPECT_GE(static_cast<double>(budget.delta[i]), 0.499 * unit);
    }
  }
  const double share = static_cast<double>(straddling) / static_cast<double>(budget.delta.size());
  std::printf("straddling entries of a norm: %.2e\n", share);
  EXPECT_GT(share, 2e-4);
  EXPECT_LT(share, 4e-3);
}

// The root, its reciprocal or the quotient rounded on the way: binary32 code whose roots and quotients are off by what
// the profile grants (64 ulp, so that many go to a neighbour), against the exact chain.
TEST(RoundedStage, PointsInsideANorm) {
  std::mt19937_64 random(9);
  std::normal_distribution<double> normal;
  Profile profile;
  profile.k_sqrt = profile.k_div = profile.k_rsqrt = 64;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  const auto off = [&](float exact) { return exact * (1 + (random() % 2 == 0 ? 126.0f : -126.0f) * 0x1p-24f); };
  double worst = 0;
  int runs = 0, moved = 0;
  for (int i = 0; i < 6000; ++i) {
    qkcts_norm norm{};
    norm.applied = 1;
    norm.eps = 1e-6;
    norm.root = random() % 2 == 0 ? QKCTS_INSIDE_ROOT : QKCTS_OUTSIDE_ROOT;
    norm.gain = QKCTS_GAIN_W;
    const auto format = [&]() -> std::uint32_t {
      const std::uint32_t formats[] = {0, QKCTS_BFLOAT16, QKCTS_BINARY16, QKCTS_E4M3FN, QKCTS_BINARY32};
      return formats[random() % 5];
    };
    qkcts_vector_rounding chosen{};
    chosen.root = format();
    chosen.reciprocal = format();
    chosen.unit = format();
    const auto at = [](std::uint32_t point, double x) {
      return point == 0 ? x : nearest(static_cast<Format>(point), x);
    };
    std::vector<double> x(16);
    double square = 0;
    float square32 = 0;
    for (double& value : x) {
      value = nearest(Format::binary32, normal(random));
      square += value * value;
      square32 += static_cast<float>(value) * static_cast<float>(value);
    }
    const bool inside = norm.root == QKCTS_INSIDE_ROOT;
    const double t = square / 16;
    const float t32 = square32 / 16;
    const auto eps32 = static_cast<float>(norm.eps);
    const double d = at(chosen.root, inside ? std::sqrt(t + norm.eps) : std::sqrt(t) + norm.eps);
    const float root32 = inside ? off(std::sqrt(t32 + eps32)) : off(std::sqrt(t32)) + eps32;
    const double d32 = at(chosen.root, static_cast<double>(root32));
    const double r32 = at(chosen.reciprocal, static_cast<double>(off(1 / static_cast<float>(d32))));
    const NormStatistics statistics = norm_statistics(norm, x, std::vector<double>(16), 0, arithmetic);
    const NormPoints points = norm_points(chosen, false, arithmetic);
    const RoundedNorm rounded(norm, statistics, points, arithmetic);
    ASSERT_FALSE(rounded.domain());
    for (const double value : x) {
      ElementParameters parameters;
      parameters.gain = 0.75;
      const double unit = at(chosen.unit, chosen.reciprocal != 0 ? value * at(chosen.reciprocal, 1 / d) : value / d);
      const bool multiplies = chosen.reciprocal != 0 || random() % 2 == 0;
      const auto x32 = static_cast<float>(value);
      const float plain = multiplies ? x32 * static_cast<float>(r32) : off(x32 / static_cast<float>(d32));
      const double unit32 = at(chosen.unit, static_cast<double>(plain));
      const double got = static_cast<double>(static_cast<float>(unit32) * 0.75f);
      const RoundedNorm::Element element = rounded.element(value, 0, parameters);
      ASSERT_NEAR(element.value, unit * 0.75, element.blur + 1e-15);
      const double wrong = std::fabs(got - unit * 0.75);
      ASSERT_LE(wrong, element.error + element.blur) << i << " " << chosen.root << chosen.reciprocal << chosen.unit;
      worst = std::max(worst, wrong / (element.error + element.blur));
      moved += wrong > 1e-4 ? 1 : 0;
      ++runs;
    }
  }
  std::printf("points inside a norm: largest error/bound %.3f, %d of %d moved\n", worst, moved, runs);
  EXPECT_GT(worst, 0.9);
  EXPECT_GT(moved, 100);
}

// 1.5 * (1 + 2^-7) lies in the middle of two bfloat16 numbers, as one product in a hundred of such numbers does. A
// rounded unit that nobody can miss makes it exactly, so the tie is decided; one more factor, and it is not.
TEST(RoundedStage, ATieOfExactFactorsIsDecided) {
  const BudgetArithmetic arithmetic(Profile{}, all_budget_terms);
  qkcts_norm norm{};
  norm.applied = 1;
  norm.gain = QKCTS_GAIN_W;
  qkcts_vector_rounding points{};
  points.unit = QKCTS_BFLOAT16;
  const NormStatistics statistics = norm_statistics(norm, std::vector<double>{1, 1}, {{0, 0}}, 0, arithmetic);
  const NormPoints inner = norm_points(points, false, arithmetic);
  const RoundedNorm rounded(norm, statistics, inner, arithmetic);
  ElementParameters parameters;
  parameters.gain = 1 + 0x1p-7;
  const RoundingPoint end(BudgetTerm::rounding_point, QKCTS_BFLOAT16, false, arithmetic);
  const double product = 1.5 * parameters.gain, even = 1.515625;
  EXPECT_EQ(nearest(Format::bfloat16, product), even);
  const RoundedNorm::Element exact = rounded.element(1.5, 0, parameters);
  EXPECT_EQ(exact.error, 0);
  EXPECT_EQ(end.moved(product, product * 0x1p-50, exact.error, even), 0);
  parameters.factor = factor_terms(1.1, arithmetic);
  EXPECT_GT(rounded.element(1.5, 0, parameters).error, 0);
  // A quotient that may go to a neighbour is no exact factor.
  parameters.factor = {};
  EXPECT_GT(rounded.element(1.5 + 0x1p-8, 0, parameters).error, 0x1p-8);
}

// A root that a rounding may send near 0: its reciprocal has no place in a narrow accumulator, even where the quotient
// has.
TEST(RoundedStage, ReciprocalsMustStayInRange) {
  Profile profile;
  profile.accumulator = Format::binary16;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  qkcts_norm norm{};
  norm.applied = 1;
  norm.root = QKCTS_OUTSIDE_ROOT;
  qkcts_vector_rounding points{};
  points.unit = QKCTS_BFLOAT16;
  NormStatistics statistics;
  const auto outside = [&](double root) {
    statistics.root = statistics.root_lower = statistics.root_upper = root;
    return RoundedNorm(norm, statistics, norm_points(points, false, arithmetic), arithmetic).domain();
  };
  EXPECT_FALSE(outside(0x1p-14));
  EXPECT_TRUE(outside(0x1p-16));  // 1/d = 65536
}

}  // namespace
}  // namespace qkcts
