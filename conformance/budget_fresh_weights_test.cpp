// SPDX-License-Identifier: Apache-2.0
// An online pass makes the row sum, a second pass forms the weights once more (docs/budgets.md, O7): the rescalings of
// the sum do not cancel. See budget_norm_test.cpp for the pattern.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "conformance/budget_output.hpp"
#include "conformance/plain_profile.hpp"

namespace qkcts {
namespace {

constexpr TermSet without_o7 = all_budget_terms & ~(TermSet{1} << static_cast<unsigned>(BudgetTerm::fresh_weights));

struct Row {
  std::vector<float> scores, v;
  std::vector<std::size_t> blocks;  // empty: every key is one
  double block_count = 0;

  double largest() const { return static_cast<double>(*std::max_element(scores.begin(), scores.end())); }

  double exact() const {
    long double sum = 0, product = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const long double e = std::exp(static_cast<long double>(scores[j]) - static_cast<long double>(largest()));
      sum += e;
      product += e * static_cast<long double>(v[j]);
    }
    return static_cast<double>(product / sum);
  }

  double budget(TermSet terms = all_budget_terms, const Profile& profile = plain_profile()) const {
    const std::vector<double> s(scores.begin(), scores.end()), values(v.begin(), v.end()), errors(s.size(), 0.0);
    std::vector<double> p;
    long double sum = 0;
    for (const double x : s) sum += std::exp(static_cast<long double>(x) - static_cast<long double>(largest()));
    for (const double x : s)
      p.push_back(
          static_cast<double>(std::exp(static_cast<long double>(x) - static_cast<long double>(largest())) / sum));
    const BudgetArithmetic arithmetic(profile, terms);
    SoftmaxKeys row;
    row.scores = s;
    row.errors = errors;
    row.probabilities = p;
    row.lse = largest() + std::log(static_cast<double>(sum));
    row.blocks = block_count > 0 ? block_count : static_cast<double>(s.size());
    row.block_of = blocks;
    row.slots = static_cast<double>(s.size());
    const RowWeights weights = row_weights(row, arithmetic);
    ValueRows columns;
    columns.length = 1;
    columns.base = values.data();
    for (const double& value : values) columns.v.push_back(&value);
    return output_errors(weights, columns, std::vector<double>{exact()}, row.slots, arithmetic).error[0];
  }
};

float two_to(float x) {
  return static_cast<float>(std::exp2(static_cast<double>(x)));
}

// e^(a - b) as a compiler contracts it: 2^fma(a, log2 e, -(b log2 e)).
float power(float a, float b) {
  constexpr float log2_e = 1.442695041f;
  const float scaled = b * log2_e;
  return two_to(std::fmaf(a, log2_e, -scaled));
}

// Correctly rounded functions, keys one after another, the sum rescaled only where the maximum rises.
double two_passes(const Row& row) {
  float shift = row.scores[0], sum = 1;
  for (std::size_t j = 1; j < row.scores.size(); ++j) {
    if (row.scores[j] > shift) {
      sum *= power(shift, row.scores[j]);
      shift = row.scores[j];
    }
    sum += power(row.scores[j], shift);
  }
  float output = 0;
  for (std::size_t j = 0; j < row.scores.size(); ++j) output += power(row.scores[j], shift) / sum * row.v[j];
  return static_cast<double>(output);
}

// Scores that rise to 100, each the one of the next 48 numbers whose product with log2 e is rounded down by most, so
// that every rescaling enlarges the sum.
Row rising_maxima(std::size_t count) {
  Row row;
  float s = 100;
  while (row.scores.size() < count) {
    float best = s;
    double most = -1;
    for (int i = 0; i < 48; ++i, s = std::nextafter(s, 1000.0f)) {
      constexpr float log2_e = 1.442695041f;
      const double lost = static_cast<double>(s) * static_cast<double>(log2_e) - static_cast<double>(s * log2_e);
      if (lost > most) {
        most = lost;
        best = s;
      }
    }
    row.scores.push_back(best);
    row.v.push_back(1);
  }
  return row;
}

TEST(FreshWeights, TheRescalingsOfTheRowSumDoNotCancel) {
  for (const std::size_t count : {24u, 128u}) {
    const Row row = rising_maxima(count);
    const double error = std::fabs(two_passes(row) - row.exact());
    EXPECT_GT(error / row.budget(without_o7), count == 24 ? 1.1 : 4.0) << "rejected without the term";
    EXPECT_LE(error, row.budget()) << count;
    EXPECT_GT(error / row.budget(), 0.2) << "and not much more is granted";
  }
}

// The error is that of the sum: it multiplies the output, not the sum of magnitudes.
TEST(FreshWeights, TheyMoveAnOutputInProportionToItself) {
  Row row = rising_maxima(128);
  for (std::size_t j = 0; j < row.v.size(); ++j) row.v[j] = j % 2 == 0 ? 1.0f : -1.0f;
  EXPECT_LE(std::fabs(two_passes(row) - row.exact()), row.budget());
  EXPECT_LT(row.budget(), 1.02 * row.budget(without_o7)) << "an output near 0";
}

// A key that nothing stands above keeps the weight with which it came in.
TEST(FreshWeights, ARowWithOneLargeKeyPaysNothing) {
  Row row;
  row.scores.assign(64, 70.0f);
  row.v.assign(64, 1.0f);
  for (const std::size_t top : {0u, 31u, 63u}) {
    Row with_top = row;
    with_top.scores[top] = 100.0f;
    EXPECT_LE(with_top.budget(), 1.001 * with_top.budget(without_o7));
    EXPECT_LE(std::fabs(two_passes(with_top) - with_top.exact()), with_top.budget());
  }
}

// One block: nothing is ever rescaled. Two: only once.
TEST(FreshWeights, BlocksOfTheProfileBoundTheRescalings) {
  Row row = rising_maxima(128);
  const double every_key = row.budget() - row.budget(without_o7);
  row.block_count = 1;
  row.blocks.assign(128, 0);
  EXPECT_EQ(row.budget(), row.budget(without_o7));
  row.block_count = 2;
  std::fill(row.blocks.begin() + 64, row.blocks.end(), 1);
  EXPECT_GT(row.budget(), row.budget(without_o7));
  EXPECT_LT(row.budget() - row.budget(without_o7), every_key / 8);
}

}  // namespace
}  // namespace qkcts
