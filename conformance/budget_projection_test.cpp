// SPDX-License-Identifier: Apache-2.0
// Inputs on which a simpler bound rejects a correct projection, or lets a wrong one pass. Each test runs legal binary32
// arithmetic, shows that its error exceeds the simpler formula, and that the budget covers it.
#include "conformance/budget_projection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "conformance/budget_terms.hpp"
#include "conformance/plain_profile.hpp"

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;

// One token, one head of one lane: q = sum of x^ W + b.
struct Column {
  Case c;
  ExactStages exact;

  Column(const std::vector<double>& x, const std::vector<double>& w) {
    c.contract.terms.projection.form = QKCTS_PROJECTION_LINEAR;
    c.shape = {1, 1, 1, 1, 1, 1, 1};
    c.inputs.format = Format::binary32;
    const auto width = static_cast<std::int64_t>(x.size());
    set(Input::q_x, {1, 1, width}, x);
    set(Input::q_weight, {width, 1}, w);
  }

  void set(Input input, std::vector<std::int64_t> shape, const std::vector<double>& values) {
    Tensor tensor = Tensor::zeros(element_type(Format::binary32), std::move(shape));
    for (std::size_t i = 0; i < values.size(); ++i) {
      tensor.set_pattern(i, encode(Format::binary32, values[i]));
      EXPECT_EQ(tensor.value(i), values[i]);
    }
    c.inputs.set(input, tensor);
  }

  void set_bias(double bias) {
    c.contract.terms.projection.bias = 1;
    set(Input::q_weight_bias, {1}, {bias});
  }

  qkcts_norm& norm() {
    qkcts_norm& norm = c.contract.terms.projection.q_input;
    norm.applied = 1;
    return norm;
  }

  VectorError budget(long double y, const Profile& profile, TermSet terms = all_budget_terms) {
    const BudgetArithmetic arithmetic(profile, terms);
    exact.values[QKCTS_STAGE_Q_PROJ] = {static_cast<double>(y)};
    ProjectionBudget projection(c,
                                {Input::q_x, Input::q_weight, Input::q_weight_bias, Input::q_x_gain, Input::q_x_bias,
                                 c.contract.terms.projection.q_input, c.contract.terms.rounding.q_input, 1, 1},
                                exact.values[QKCTS_STAGE_Q_PROJ], arithmetic);
    VectorError vector = projection.row(0, 0, 0);
    EXPECT_EQ(vector.magnitude[0], std::fabs(static_cast<double>(y)));
    return vector;
  }
};

float number(double x) {
  return static_cast<float>(x);
}

long double dot(const std::vector<double>& x, const std::vector<double>& w) {
  long double sum = 0;
  for (std::size_t e = 0; e < x.size(); ++e) sum += static_cast<long double>(x[e]) * static_cast<long double>(w[e]);
  return sum;
}

double distance(float got, long double y) {
  return static_cast<double>(std::fabs(static_cast<long double>(got) - y));
}

// One product of 1 and many that are just below half an ulp of the sum.
TEST(BudgetProjection, IsApproachedByAbsorbedProducts) {
  std::vector<double> x(96, static_cast<double>(0x1.fep-13f)), w(96, static_cast<double>(0x1.fep-13f));
  x[0] = w[0] = 1;
  float got = 0;
  for (std::size_t e = 0; e < x.size(); ++e) got += number(x[e]) * number(w[e]);
  EXPECT_EQ(got, 1);
  const long double y = dot(x, w);
  const double wrong = distance(got, y);
  const double delta = Column(x, w).budget(y, plain_profile()).total(0);
  EXPECT_LE(wrong, delta);
  EXPECT_GT(wrong, 0.9 * delta);
}

// What cancels is wrong by the size of the products, not by that of their sum.
TEST(BudgetProjection, CountsProductsNotTheirSum) {
  const std::vector<double> x = {static_cast<double>(1.1f), static_cast<double>(1.3f)};
  const std::vector<double> w = {static_cast<double>(1.3f), static_cast<double>(-1.1000001f)};
  const float got = number(x[0]) * number(w[0]) + number(x[1]) * number(w[1]);
  const long double y = dot(x, w);
  const double wrong = distance(got, y);
  EXPECT_GT(wrong, 2 * u * std::fabs(static_cast<double>(y)));
  EXPECT_LE(wrong, Column(x, w).budget(y, plain_profile()).total(0));
}

// The rows of a projection have errors of their own where a norm made them. For one entry the product rounds once.
TEST(BudgetProjection, CarriesTheErrorsOfTheNormBefore) {
  Profile profile = plain_profile();
  profile.k_rsqrt = 2.5;
  double beyond = 0, ratio = 0;
  for (int i = 0; i < 400; ++i) {
    const float x = 1 + static_cast<float>(i) * 0x1.3p-9f;
    Column column({static_cast<double>(x)}, {1.0});
    column.norm().root = QKCTS_INSIDE_ROOT;
    column.norm().eps = 0x1p-3;
    const long double y = static_cast<long double>(x) / std::sqrt(static_cast<long double>(x) * x + 0x1p-3L);
    const double root = std::sqrt(static_cast<double>(x * x + 0x1p-3f));
    const float r = static_cast<float>(1 / root * (1 + 4 * u));  // 2.5 ulp, as the profile lets it be
    const double wrong = distance(x * r * 1.0f, y);
    const double delta = column.budget(y, profile).total(0);
    ASSERT_LE(wrong, delta);
    beyond = std::max(beyond, wrong / (growth_upper(1, u) * static_cast<double>(y)));
    ratio = std::max(ratio, wrong / delta);
  }
  EXPECT_GT(beyond, 3);
  EXPECT_GT(ratio, 0.2);
}

// A one-pass variance far below the square of its mean: the root is off by much, but that is one factor of the whole
// sum, and the sum cancels.
TEST(BudgetProjection, TheFactorOfTheNormMultipliesTheSum) {
  std::vector<double> x, w;
  for (int e = 0; e < 8; ++e) {
    x.push_back(static_cast<double>(300.3f + (e % 2 == 0 ? 1.1f : -1.1f)));
    w.push_back(e % 2 == 0 ? 1.0 : static_cast<double>(0x1.ff8p-1f));
  }
  Column column(x, w);
  column.norm().center = 1;
  column.norm().variance = QKCTS_VARIANCE_ONE_PASS_CLIPPED;
  column.norm().root = QKCTS_INSIDE_ROOT;
  column.norm().eps = 1e-6;
  long double mu = 0, t = 0;
  for (const double value : x) mu += static_cast<long double>(value) / 8;
  for (const double value : x) t += (value - mu) * (value - mu) / 8;
  long double y = 0, products = 0;
  for (std::size_t e = 0; e < x.size(); ++e) {
    const long double term = (x[e] - mu) / std::sqrt(t + static_cast<long double>(1e-6)) * w[e];
    y += term;
    products += std::fabs(term);
  }
  float sum = 0, squares = 0;
  for (const double value : x) {
    sum += number(value);
    squares += number(value) * number(value);
  }
  const float mean = sum / 8;
  const float variance = std::max(0.0f, squares / 8 - mean * mean);
  float got = 0;
  for (std::size_t e = 0; e < x.size(); ++e) {
    got += (number(x[e]) - mean) * (1 / std::sqrt(variance + 1e-6f)) * number(w[e]);
  }
  const VectorError error = column.budget(y, plain_profile());
  EXPECT_GT(distance(got, y), 20 * u * static_cast<double>(y));
  EXPECT_LE(distance(got, y), error.total(0));
  // What a factor counted per product would allow.
  EXPECT_GT(error.common * static_cast<double>(products), 20 * error.total(0));
}

// The factor of the norm moves the product with the matrix, and not the bias: a sum of both that cancels is off by it.
TEST(BudgetProjection, ABiasDoesNotCarryTheFactor) {
  Profile profile = plain_profile();
  profile.k_rsqrt = 8;
  const float x = 1.75f;
  const float bias = -static_cast<float>(1.75 / std::sqrt(1.75 * 1.75 + 0x1p-3));
  Column column({static_cast<double>(x)}, {1.0});
  column.norm().root = QKCTS_INSIDE_ROOT;
  column.norm().eps = 0x1p-3;
  column.set_bias(static_cast<double>(bias));
  const long double product = static_cast<long double>(x) / std::sqrt(static_cast<long double>(x) * x + 0x1p-3L);
  const long double y = product + static_cast<long double>(bias);
  const float r = static_cast<float>(1 / std::sqrt(static_cast<double>(x * x + 0x1p-3f)) * (1 + 15 * u));
  const double wrong = distance(x * r + bias, y);
  const VectorError error = column.budget(y, profile);
  EXPECT_EQ(error.common, 0);
  EXPECT_LE(wrong, error.total(0));
  Column without({static_cast<double>(x)}, {1.0});
  without.norm() = column.norm();
  const VectorError apart = without.budget(product, profile);
  // The factor on |q| alone, and the bias as one addition.
  const double simple = apart.common * std::fabs(static_cast<double>(y)) + 2 * u * static_cast<double>(product);
  EXPECT_GT(wrong, simple);
}

// A matrix product that accumulates into its result starts from the bias: every addition is rounded against it.
TEST(BudgetProjection, ASumMayStartFromTheBias) {
  const std::vector<double> x(64, 0x1p-12), w(64, static_cast<double>(0x1.fcp-13f));
  Column column(x, w);
  column.set_bias(1);
  float got = 1;
  for (std::size_t e = 0; e < x.size(); ++e) got += number(x[e]) * number(w[e]);
  const long double y = 1 + dot(x, w);
  const double wrong = distance(got, y);
  const double added_last = growth_upper(64, u) * static_cast<double>(dot(x, w)) + u * static_cast<double>(y);
  EXPECT_GT(wrong, 10 * added_last);
  const double delta = column.budget(y, plain_profile()).total(0);
  EXPECT_LE(wrong, delta);
  EXPECT_GT(wrong, 0.8 * delta);
}

// 1/d after the sum: the products of tiny rows with small weights are flushed before it comes.
TEST(BudgetProjection, ProductsMayUnderflowBeforeTheRootComes) {
  const float x = 0x1p-60f, w = 0x1p-80f;
  Column column({static_cast<double>(x)}, {static_cast<double>(w)});
  column.norm().root = QKCTS_INSIDE_ROOT;
  column.norm().eps = 0;
  const long double y = 0x1p-80L;
  const float product = x * w;
  const float flushed = std::fabs(product) < 0x1p-126f ? 0.0f : product;
  const double wrong = distance(flushed * 0x1p60f, y);
  EXPECT_GT(wrong, 4 * 0x1p-126 + 32 * u * static_cast<double>(y));  // entries first: x^ = 1, and one product
  EXPECT_LE(wrong, column.budget(y, flushing_profile()).total(0));
  EXPECT_LT(column.budget(y, plain_profile()).total(0),
            0x1p-7 * static_cast<double>(y));  // a few subnormal bits are left
}

// The gain folded into the matrix when it is loaded: one more product that may be lost, no rounding more.
TEST(BudgetProjection, AGainMayBeFoldedIntoTheMatrix) {
  double ratio = 0;
  for (int i = 0; i < 2000; ++i) {
    const double w = static_cast<double>(1 + static_cast<float>(i) * 0x1.1p-12f);
    const double g = static_cast<double>(0.7f + static_cast<float>(i % 31) * 0x1p-9f);
    Column column({1.5}, {w});
    column.norm().root = QKCTS_INSIDE_ROOT;
    column.norm().eps = 0.25;
    column.norm().gain = QKCTS_GAIN_ONE_PLUS_W;
    column.norm().gain_axes = QKCTS_AXES_FULL_WIDTH;
    column.set(Input::q_x_gain, {1}, {g});
    const long double d = std::sqrt(2.5L);
    const long double y = 1.5L / d * (1 + static_cast<long double>(g)) * static_cast<long double>(w);
    const float folded = number(w) * (1 + number(g));
    const double delta = column.budget(y, plain_profile()).total(0);
    for (const float got : {1.5f * (1 / std::sqrt(2.5f)) * folded, 1.5f * folded / std::sqrt(2.5f)}) {
      ASSERT_LE(distance(got, y), delta);
      ratio = std::max(ratio, distance(got, y) / delta);
    }
  }
  EXPECT_GT(ratio, 0.2);
}

TEST(BudgetProjection, WeightsMayBeReadAsZero) {
  const double w = 0x1p-130;
  const Profile flushing = flushing_profile();
  EXPECT_GE(Column({0x1p20}, {w}).budget(0x1p-110L, flushing).total(0), 0x1p-110);
  EXPECT_LT(Column({0x1p20}, {w}).budget(0x1p-110L, plain_profile()).total(0), 0x1p-130);
  const TermSet unread = ~(TermSet{1} << static_cast<unsigned>(BudgetTerm::input_operands));
  EXPECT_LT(Column({0x1p20}, {w}).budget(0x1p-110L, flushing, unread).total(0), 0x1p-120);
}

TEST(BudgetProjection, DomainWhereSumsOverflow) {
  const std::vector<double> x = {0x1p70, 0x1p70};
  EXPECT_TRUE(Column(x, {0x1p57, -0x1p57}).budget(0, plain_profile()).domain);  // the sum is 0, its terms are not
  EXPECT_FALSE(Column(x, {0x1p56, -0x1p56}).budget(0, plain_profile()).domain);
  // Divided after the sum, entries of 2^62 are still whole when they meet the matrix.
  Column late({0x1p62}, {0x1p70});
  late.norm().root = QKCTS_INSIDE_ROOT;
  EXPECT_TRUE(late.budget(0x1p70L, plain_profile()).domain);
  Column early({0x1p20}, {0x1p70});
  early.norm() = late.norm();
  EXPECT_FALSE(early.budget(0x1p70L, plain_profile()).domain);
}

// A unit that reads both operands with 11 bits.
TEST(BudgetProjection, OperandsMayLoseBitsInAMatrixUnit) {
  Profile narrow = plain_profile();
  narrow.u_q = narrow.u_k = 0x1p-10;
  const double x = static_cast<double>(1 + 0x1.ffcp-11f);
  const float got = 1.0f;  // both cut off
  const long double y = static_cast<long double>(x) * x;
  EXPECT_GT(distance(got, y), 100 * Column({x}, {x}).budget(y, plain_profile()).total(0));
  EXPECT_LE(distance(got, y), Column({x}, {x}).budget(y, narrow).total(0));
}

}  // namespace
}  // namespace qkcts
