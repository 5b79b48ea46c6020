// SPDX-License-Identifier: Apache-2.0
// Rows on which a simpler bound rejects a correct product with v; see budget_norm_test.cpp for the pattern.
#include "conformance/budget_output.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/plain_profile.hpp"

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;

struct Row {
  std::vector<double> s, errors, p, v;
  double lse = 0, o = 0, w = 0;  // w = sum p |v|

  Row(std::vector<double> scores, std::vector<double> values)
      : s(std::move(scores)), errors(s.size(), 0.0), v(std::move(values)) {
    const double m = *std::max_element(s.begin(), s.end());
    long double sum = 0, product = 0, size = 0;
    for (std::size_t j = 0; j < s.size(); ++j) {
      const long double e = std::exp(static_cast<long double>(s[j]) - m);
      sum += e;
      product += e * v[j];
      size += e * std::fabs(static_cast<long double>(v[j]));
    }
    for (const double x : s) p.push_back(static_cast<double>(std::exp(static_cast<long double>(x) - m) / sum));
    lse = static_cast<double>(m + std::log(sum));
    o = static_cast<double>(product / sum);
    w = static_cast<double>(size / sum);
  }

  OutputError budget(const Profile& profile) const {
    const BudgetArithmetic arithmetic(profile, all_budget_terms);
    SoftmaxKeys row;
    row.scores = s;
    row.errors = errors;
    row.probabilities = p;
    row.lse = lse;
    row.slots = static_cast<double>(s.size());
    const RowWeights weights = row_weights(row, arithmetic);
    ValueRows values;
    values.length = 1;
    values.base = v.data();
    for (const double& value : v) values.v.push_back(&value);
    const std::vector<double> exact{o};
    return output_errors(weights, values, exact, row.slots, arithmetic);
  }
};

double stored(Format format, double x) {
  return decode(format, encode(format, x));
}

// Weights stored in bfloat16 and summed as stored: an error against |v - o|, which may exceed the one against |v|.
TEST(BudgetOutput, StoredWeightsInTheRowSum) {
  Profile profile = plain_profile();
  profile.probability_storage = Format::bfloat16;
  std::vector<double> s(16, std::log(0.5 * (1 + 0x1.fap-9)));  // just below half way: rounds down
  std::vector<double> v(16, 0.0);
  s[0] = 0;
  s[1] = std::log(0.5 * (1 + 0x1.03p-8));  // just above half way: rounds up
  v[1] = 1;
  const Row row(s, v);
  double sum = 0, product = 0;
  for (std::size_t j = 0; j < s.size(); ++j) {
    const double w = stored(Format::bfloat16, std::exp(s[j]));
    sum += w;
    product += w * v[j];
  }
  const double wrong = std::fabs(product / sum - row.o);
  EXPECT_GT(wrong, 0x1p-8 * row.w + 50 * u * row.w);
  const double d = row.budget(profile).error[0];
  EXPECT_LE(wrong, d);
  EXPECT_GT(wrong / d, 0.5);
}

// Normalised before the product: every quotient is rounded for itself, so |o| is not what counts.
TEST(BudgetOutput, NormalisedFirstTheQuotientsDoNotCancel) {
  Profile profile = plain_profile();
  profile.k_div = 4;
  const Row row({0, 0}, {1, -1});
  EXPECT_EQ(row.o, 0);
  const double off = 7.99 * u;
  const double got = 0.5 * (1 + off) - 0.5 * (1 - off);
  EXPECT_GT(std::fabs(got), 5 * u * row.w + 8 * u * std::fabs(row.o));
  EXPECT_LE(std::fabs(got), row.budget(profile).error[0]);
}

// A subnormal weight in front of a large value.
TEST(BudgetOutput, QuantaOfWeightsMeetLargeValues) {
  Profile profile = plain_profile();
  profile.k_exp = 2;
  const Row row({0, -100}, {0, 1e30});
  const double weight = stored(Format::binary32, std::exp(-100.0)) + 2 * 0x1p-149;
  const double wrong = std::fabs(weight * 1e30 - row.o);
  EXPECT_GT(wrong, (3 * 100 + 20) * u * row.w + 0x1p-149 * 1e30);
  EXPECT_LE(wrong, row.budget(profile).error[0]);
}

// Parts merged through their log-sum-exps near 1000: their weights do not sum to 1.
TEST(BudgetOutput, MergeThroughLogSumExps) {
  double beyond = 0;
  for (int i = 0; i < 50; ++i) {
    const float a = 1000 + static_cast<float>(i) * 0.317f;
    const Row row({static_cast<double>(a), static_cast<double>(a) - 0.25, static_cast<double>(a) - 0.5}, {1, 1, 1});
    const auto lse = static_cast<float>(row.lse);
    double got = 0;
    for (const double l : row.s)
      got += static_cast<double>(static_cast<float>(std::exp(static_cast<double>(static_cast<float>(l) - lse))));
    const OutputError d = row.budget(plain_profile());
    ASSERT_LE(std::fabs(got - 1), d.error[0]);
    EXPECT_EQ(d.hull[0], 0);
    beyond = std::max(beyond, std::fabs(got - 1) / (20 * u));
  }
  EXPECT_GT(beyond, 1);
}

// No ceiling at sum p|v|: what bounds an output is the hull of the values.
TEST(BudgetOutput, BudgetMayExceedTheWeightedMagnitude) {
  Row row({0, std::log(1e-9)}, {0, 1});
  row.errors = {18, 18};
  const double moved = 1e-9 * std::exp(36.0) / (1 + 1e-9 * std::exp(36.0));
  EXPECT_GT(moved, 0.06);
  EXPECT_LT(row.w, 1.1e-9);
  const OutputError d = row.budget(plain_profile());
  EXPECT_GE(d.error[0], std::fabs(moved - row.o));
  EXPECT_TRUE(std::isfinite(d.error[0]));
}

// Unnormalised sums overflow although the output does not.
TEST(BudgetOutput, DomainOfUnnormalisedSums) {
  EXPECT_EQ(Row({0, 0, 0, 0}, {3e38, 3e38, 3e38, 3e38}).budget(plain_profile()).error[0], INFINITY);
  // An online kernel holds a value by a small weight at full size until a larger score comes.
  EXPECT_EQ(Row({-100, -100, 0}, {3e38, 3e38, 1}).budget(plain_profile()).error[0], INFINITY);
  EXPECT_LT(Row({0, 0}, {1e37, 1e37}).budget(plain_profile()).error[0], INFINITY);
}

TEST(BudgetOutput, NoErrorOfWeightsWhereAllValuesAreEqual) {
  Row row({0, -1, -2}, {3, 3, 3});
  row.errors = {0.25, 0.25, 0.25};
  EXPECT_LT(row.budget(plain_profile()).error[0], 3 * 64 * u);
  row.v[1] = 2;
  EXPECT_GT(Row(row.s, row.v).budget(plain_profile()).hull[0], 0.5);
}

}  // namespace
}  // namespace qkcts
