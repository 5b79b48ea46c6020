// SPDX-License-Identifier: Apache-2.0
// The exact form of the error by weights: an attack that chooses every weight reaches it, the first-order bound is lax.
#include "conformance/budget_extremal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace qkcts {
namespace {

// Weights p e^(+-t) with the t given, as the softmax would hand them over.
RowWeights weights_of(const std::vector<double>& p, const std::vector<double>& t) {
  RowWeights w;
  w.coarse = true;
  w.n = static_cast<double>(p.size());
  w.shrunk_sum = 0;
  for (std::size_t j = 0; j < p.size(); ++j) {
    w.probability.push_back(p[j]);
    w.moved.push_back(p[j] * std::expm1(t[j]) * (1 + 0x1p-45));
    w.grown.push_back(p[j] * std::exp(t[j]) * (1 + 0x1p-45));
    w.shrunk_sum += p[j] * std::exp(-t[j]);
    w.exponent = std::max(w.exponent, t[j]);
  }
  w.own.resize(p.size());
  w.apart.resize(p.size());
  return w;
}

struct Column {
  std::vector<double> p, t, v;
  double o = 0;

  Column(std::vector<double> shares, std::vector<double> exponents, std::vector<double> values)
      : p(std::move(shares)), t(std::move(exponents)), v(std::move(values)) {
    double sum = 0;
    for (const double share : p) sum += share;
    for (double& share : p) share /= sum;
    long double mean = 0;
    for (std::size_t j = 0; j < p.size(); ++j) mean += static_cast<long double>(p[j]) * v[j];
    o = static_cast<double>(mean);
  }

  // Both ends, every threshold: what some choice of weights reaches.
  double attacked() const {
    double worst = 0;
    for (const double sign : {1.0, -1.0}) {
      for (const double threshold : v) {
        long double above = 0, all = 0;
        for (std::size_t j = 0; j < p.size(); ++j) {
          const bool raised = sign * v[j] >= sign * threshold;
          const long double w =
              static_cast<long double>(p[j]) * std::exp(static_cast<long double>(raised ? t[j] : -t[j]));
          above += w * (static_cast<long double>(v[j]) - o);
          all += w;
        }
        worst = std::max(worst, std::fabs(static_cast<double>(above / all)));
      }
    }
    return worst;
  }

  double exact_form() const {
    ValueRows values;
    values.length = 1;
    for (const double& value : v) values.v.push_back(&value);
    const std::vector<double> exact{o}, blur{0x1p-49 * std::fabs(o)};
    return extremal_moves(weights_of(p, t), values, exact, blur)[0];
  }

  double first_order() const {
    double moved = 0, shrunk = 0;
    for (std::size_t j = 0; j < p.size(); ++j) {
      moved += p[j] * std::expm1(t[j]) * std::fabs(v[j] - o);
      shrunk += p[j] * std::exp(-t[j]);
    }
    return moved / shrunk;
  }
};

Column random_column(std::mt19937& random, std::size_t n, double t) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> unit(0.25, 1);
  std::vector<double> p, exponents, v;
  for (std::size_t j = 0; j < n; ++j) {
    p.push_back(std::exp(2 * normal(random)));
    exponents.push_back(t * unit(random));
    v.push_back(normal(random));
  }
  return {p, exponents, v};
}

TEST(ExtremalOutput, NoChoiceOfWeightsExceedsItAndSomeReachIt) {
  std::mt19937 random(1);
  for (const double t : {1e-6, 0.01, 0.2, 1.0, 3.0, 10.0}) {
    for (const std::size_t n : {1u, 2u, 3u, 17u, 128u}) {
      for (int i = 0; i < 10; ++i) {
        const Column column = random_column(random, n, t);
        const double attacked = column.attacked();
        const double bound = column.exact_form();
        ASSERT_LE(attacked, bound * (1 + 1e-12)) << n << " " << t;
        ASSERT_TRUE(n == 1 || attacked > 0.99 * bound) << n << " " << t;
      }
    }
  }
}

// Exponents as bfloat16 operands leave them: 0.2. The first-order form grants 1.1 times what can happen at least, 1.3
// where values lie on two sides; beyond t = 1 far more, until the hull of the values ends it.
TEST(ExtremalOutput, TheFirstOrderBoundIsLax) {
  std::mt19937 random(2);
  double least = 100, wide = 0;
  for (int i = 0; i < 50; ++i) {
    Column at_storage = random_column(random, 32, 0.2);
    std::fill(at_storage.t.begin(), at_storage.t.end(), 0.2);
    least = std::min(least, at_storage.first_order() / at_storage.exact_form());
    std::vector<double> equal(32, 1.0), t(32, 2.5), v(32, 0.0);
    v[static_cast<std::size_t>(i) % 32] = 1;
    for (std::size_t j = 0; j < 32; j += 2) v[j] += 0.01 * static_cast<double>(i);
    const Column far(equal, t, v);
    wide = std::max(wide, far.first_order() / far.exact_form());
  }
  EXPECT_GT(least, 1.1);
  const Column sides({1, 1}, {0.2, 0.2}, {1, -1});
  EXPECT_GT(sides.first_order(), 1.3 * sides.exact_form());
  EXPECT_GT(wide, 8);
}

// In an output as a whole, where the error of the scores is most of it.
TEST(ExtremalOutput, TakesItsPlaceInTheOutput) {
  std::vector<double> v(32), scores(32, 0.0), errors(32, 0.2), p(32, 1.0 / 32);
  for (std::size_t j = 0; j < 32; ++j) v[j] = j % 2 == 0 ? 1 : -1;
  const Column column(p, errors, v);
  Profile profile;
  const BudgetArithmetic arithmetic(profile, all_budget_terms);
  SoftmaxKeys row;
  row.scores = scores;
  row.errors = errors;
  row.probabilities = p;
  row.lse = std::log(32);
  row.points = true;
  row.slots = 32;
  const RowWeights weights = row_weights(row, arithmetic);
  ASSERT_TRUE(extremal_form_pays(weights));
  ValueRows values;
  values.length = 1;
  values.base = v.data();
  for (const double& value : v) values.v.push_back(&value);
  const std::vector<double> exact{column.o};
  const double delta = output_errors(weights, values, exact, row.slots, arithmetic).error[0];
  EXPECT_GE(delta, column.attacked());
  EXPECT_GT(column.attacked(), 0.9 * delta);
  EXPECT_GT(column.first_order(), 1.2 * delta);
}

// Where exponents are tiny nothing is gained, and nothing is spent.
TEST(ExtremalOutput, IsLeftOutWhereItGainsNothing) {
  RowWeights w;
  w.coarse = true;
  w.exponent = 0x1p-10;
  EXPECT_FALSE(extremal_form_pays(w));
  w.exponent = 0.25;
  EXPECT_TRUE(extremal_form_pays(w));
  w.coarse = false;
  EXPECT_FALSE(extremal_form_pays(w));
  w.coarse = true;
  w.unbounded = true;
  EXPECT_FALSE(extremal_form_pays(w));
  const Column column({0.5, 0.5}, {1e-6, 1e-6}, {1, -1});
  EXPECT_NEAR(column.first_order() / column.exact_form(), 1, 1e-3);
}

// An output that is known to within `blur` only: the bound grants as much as weights make of it.
TEST(ExtremalOutput, CountsWhatTheExactOutputIsOffBy) {
  const std::vector<double> p{0.5, 0.5}, t{0.5, 0.5}, v{1e6 + 1, 1e6 - 1};
  ValueRows values;
  values.length = 1;
  for (const double& value : v) values.v.push_back(&value);
  const std::vector<double> exact{1e6};
  const double sharp = extremal_moves(weights_of(p, t), values, exact, std::vector<double>{0.0})[0];
  const double blurred = extremal_moves(weights_of(p, t), values, exact, std::vector<double>{0.125})[0];
  EXPECT_NEAR(sharp, std::tanh(0.5), 1e-3);
  EXPECT_GT(blurred, sharp + 0.05);
  EXPECT_LT(blurred, sharp + 0.2);
}

}  // namespace
}  // namespace qkcts
