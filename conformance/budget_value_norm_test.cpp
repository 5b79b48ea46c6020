// SPDX-License-Identifier: Apache-2.0
// Values that a norm has made bring errors of their own to the output. Hand-made cases: q = 0, so every visible key has
// the same weight.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "conformance/budget_output.hpp"
#include "conformance/budget_terms.hpp"
#include "conformance/plain_profile.hpp"

namespace qkcts {
namespace {

constexpr double u = 0x1p-24;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr TermSet without_values = ~(TermSet{1} << static_cast<unsigned>(BudgetTerm::value_norm));

// One query and `keys` keys; values of `length` lanes, v^ = v / sqrt(mean v^2 + eps) or centred.
struct Example {
  Case c;
  ExactStages exact;
  StageRows rows;

  Example(const std::vector<double>& v, std::int64_t length, bool center) {
    const auto keys = static_cast<std::int64_t>(v.size()) / length;
    qkcts_norm& norm = c.contract.terms.v_norm;
    norm.applied = 1;
    norm.center = center ? 1 : 0;
    norm.variance = center ? QKCTS_VARIANCE_ONE_PASS_CLIPPED : QKCTS_VARIANCE_TWO_PASS;
    norm.eps = 1e-6;
    c.shape = {1, 1, 1, 1, keys, 1, length};
    c.inputs.format = Format::binary32;
    set(Input::q, {1, 1, 1, 1}, {0.0});
    set(Input::k, {1, 1, keys, 1}, std::vector<double>(static_cast<std::size_t>(keys), 1.0));
    set(Input::v, {1, 1, keys, length}, v);
    for (std::size_t first = 0; first < v.size(); first += static_cast<std::size_t>(length)) {
      normalise(std::vector<double>(v.begin() + static_cast<std::ptrdiff_t>(first),
                                    v.begin() + static_cast<std::ptrdiff_t>(first) + length),
                center, norm.eps);
    }
    see(static_cast<std::size_t>(keys));
    rows[QKCTS_STAGE_OUTPUT] = rows[QKCTS_STAGE_PROBS] = {0};
    for (std::int64_t key = 0; key < keys; ++key) {
      rows[QKCTS_STAGE_V_NORM].push_back(static_cast<std::uint32_t>(key));
    }
  }

  void set(Input input, std::vector<std::int64_t> shape, const std::vector<double>& values) {
    Tensor tensor = Tensor::zeros(element_type(Format::binary32), std::move(shape));
    for (std::size_t i = 0; i < values.size(); ++i) tensor.set_pattern(i, encode(Format::binary32, values[i]));
    c.inputs.set(input, tensor);
  }

  void normalise(const std::vector<double>& x, bool center, double eps) {
    const auto n = static_cast<long double>(x.size());
    long double mean = 0, t = 0;
    for (const double value : x) mean += center ? value / n : 0;
    for (const double value : x) t += (value - mean) * (value - mean) / n;
    for (const double value : x) {
      exact.values[QKCTS_STAGE_V_NORM].push_back(
          static_cast<double>((value - mean) / std::sqrt(t + static_cast<long double>(eps))));
    }
  }

  // The exact stages of a query that sees the first keys; of an empty one, the mean over all of them.
  void see(std::size_t visible) {
    const auto keys = static_cast<std::size_t>(c.shape.k_len);
    const auto length = static_cast<std::size_t>(c.shape.v_head_dim);
    const std::size_t count = visible > 0 ? visible : keys;
    exact.values[QKCTS_STAGE_SCORES].assign(keys, 0.0);
    exact.values[QKCTS_STAGE_MASKED].assign(keys, -infinity);
    exact.values[QKCTS_STAGE_PROBS].assign(keys, 0.0);
    exact.values[QKCTS_STAGE_OUTPUT].assign(length, 0.0);
    for (std::size_t key = 0; key < count; ++key) {
      exact.values[QKCTS_STAGE_PROBS][key] = 1.0 / static_cast<double>(count);
      for (std::size_t d = 0; d < length; ++d) {
        exact.values[QKCTS_STAGE_OUTPUT][d] += value(key, d) / static_cast<double>(count);
      }
    }
    exact.values[QKCTS_STAGE_LSE] = {visible > 0 ? std::log(static_cast<double>(count)) : -infinity};
  }

  double value(std::size_t key, std::size_t d) const {
    return exact.values[QKCTS_STAGE_V_NORM][key * static_cast<std::size_t>(c.shape.v_head_dim) + d];
  }

  auto budgets(const Profile& profile, TermSet terms = all_budget_terms) const {
    return stage_budgets(c, exact, rows, profile, terms);
  }
};

// One key: o = v^. A one-pass variance far below the square of its mean makes v^ wrong by far more than any rounding
// of a mean of one value.
TEST(BudgetValueNorm, TheOutputCarriesTheErrorOfOneValue) {
  std::vector<double> v(8);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(60.3f + (i % 2 == 0 ? 1.1f : -1.1f));
  Example example(v, 8, true);
  float sum = 0, squares = 0;
  for (const double value : v) {
    sum += static_cast<float>(value);
    squares += static_cast<float>(value) * static_cast<float>(value);
  }
  const float mean = sum / 8;
  const float got = (static_cast<float>(v[0]) - mean) / std::sqrt(std::max(0.0f, squares / 8 - mean * mean) + 1e-6f);
  const double wrong = std::fabs(static_cast<double>(got) - example.value(0, 0));
  const auto delta = static_cast<double>(example.budgets(plain_profile())[QKCTS_STAGE_OUTPUT].delta[0]);
  EXPECT_LE(wrong, delta);
  EXPECT_GT(wrong, example.budgets(plain_profile(), without_values)[QKCTS_STAGE_OUTPUT].delta[0]);
  EXPECT_LE(wrong, static_cast<double>(example.budgets(plain_profile())[QKCTS_STAGE_V_NORM].delta[0]));
}

// Two values that cancel in the mean: their errors do not.
TEST(BudgetValueNorm, ErrorsOfValuesThatCancelAddUp) {
  Profile profile = plain_profile();
  profile.k_rsqrt = 128;
  const std::vector<double> v = {1.0, 1.25, -1.0, -1.25};
  Example example(v, 2, false);
  ASSERT_EQ(example.exact.values[QKCTS_STAGE_OUTPUT][0], 0);
  const double root = std::sqrt((1 + 1.25 * 1.25) / 2 + 1e-6);
  const float high = static_cast<float>(1 / root * (1 + 250 * u));
  const float low = static_cast<float>(1 / root * (1 - 250 * u));
  const double wrong = std::fabs(static_cast<double>(0.5f * (1.25f * high) + 0.5f * (-1.25f * low)));
  const auto delta = static_cast<double>(example.budgets(profile)[QKCTS_STAGE_OUTPUT].delta[1]);
  EXPECT_LE(wrong, delta);
  EXPECT_GT(wrong, 0.2 * delta);
  EXPECT_GT(wrong, example.budgets(profile, without_values)[QKCTS_STAGE_OUTPUT].delta[1]);
}

// The mean of a row that sees nothing is the mean of normalised values, too.
TEST(BudgetValueNorm, EmptyRowsAverageWhatTheNormMade) {
  Profile profile = plain_profile();
  profile.k_rsqrt = 128;
  Example example({1.0, 1.25, -1.0, -1.25}, 2, false);
  example.c.contract.terms.mask.causal = 1;
  example.c.contract.terms.mask.alignment = QKCTS_OFFSET;
  example.c.contract.terms.mask.offset = -1;
  example.c.contract.terms.mask.empty_row = QKCTS_EMPTY_UNIFORM;
  example.see(0);
  EXPECT_GT(example.budgets(profile)[QKCTS_STAGE_OUTPUT].delta[1],
            4 * example.budgets(profile, without_values)[QKCTS_STAGE_OUTPUT].delta[1]);
}

// The squares of a value overflow, its norm with them; a kernel that multiplies what it hides by 0 returns NaN.
TEST(BudgetValueNorm, AValueThatMayOverflowIsOutsideForEveryRow) {
  Example example({1.0, 1.25, 2e19, 1.0}, 2, false);
  EXPECT_EQ(example.budgets(plain_profile())[QKCTS_STAGE_OUTPUT].trust[0], Trust::domain);
  example.c.contract.terms.mask.causal = 1;
  example.c.contract.terms.mask.empty_row = QKCTS_EMPTY_ZERO;
  example.see(1);
  const auto hidden = example.budgets(plain_profile());
  EXPECT_EQ(hidden[QKCTS_STAGE_OUTPUT].trust[0], Trust::domain);
  EXPECT_EQ(hidden[QKCTS_STAGE_PROBS].trust[0], Trust::judged);
  EXPECT_EQ(hidden[QKCTS_STAGE_V_NORM].trust[0], Trust::judged);
  EXPECT_EQ(hidden[QKCTS_STAGE_V_NORM].trust[2], Trust::domain);
  example.c.contract.terms.softmax.hidden_values = QKCTS_HIDDEN_EXCLUDED;  // nothing of that key reaches the row
  const auto excluded = example.budgets(plain_profile());
  EXPECT_EQ(excluded[QKCTS_STAGE_OUTPUT].trust[0], Trust::judged);
  EXPECT_EQ(excluded[QKCTS_STAGE_V_NORM].delta[2], 0);
}

TEST(BudgetValueNorm, TheWidthOfTheNormIsThatOfTheValues) {
  Example narrow({1.0, 1.25}, 2, false);
  Example wide(std::vector<double>(64, 1.0), 64, false);
  // 1/d of 64 squares in any order is known about half as well as 64 roundings.
  EXPECT_GT(wide.budgets(plain_profile())[QKCTS_STAGE_V_NORM].delta[0], 30 * u);
  EXPECT_LT(narrow.budgets(plain_profile())[QKCTS_STAGE_V_NORM].delta[0], 12 * u);
}

// Values known to 2^-50 that look equal may differ: where weights are unknown, so is what they average.
TEST(BudgetValueNorm, EqualValuesAreEqualToTheirAccuracyOnly) {
  const std::vector<double> scores = {0, 0}, errors = {5, 5}, probabilities = {0.5, 0.5};
  SoftmaxKeys row;
  row.scores = scores;
  row.errors = errors;
  row.probabilities = probabilities;
  row.lse = std::log(2.0);
  const BudgetArithmetic nothing(Profile{}, 0);
  const RowWeights weights = row_weights(row, nothing);
  const double v = 1.5;
  ValueRows values;
  values.v = {&v, &v};
  values.length = 1;
  const std::vector<double> exact = {1.5};
  const std::vector<double> blur = {0};
  values.blur = blur;
  EXPECT_LT(output_errors(weights, values, exact, 4, nothing).error[0], 0x1p-60);
  values.inexact = 0x1p-50;
  EXPECT_GE(output_errors(weights, values, exact, 4, nothing).error[0], 1.5 * 0x1p-50);
}

}  // namespace
}  // namespace qkcts
