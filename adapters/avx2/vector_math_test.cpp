// SPDX-License-Identifier: Apache-2.0
// Built with the AVX2 flags; the test skips itself where the processor lacks them.
#include "adapters/avx2/vector_math.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "adapters/adapter_tables.hpp"

namespace qkcts::avx2 {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

class VectorMath : public testing::Test {
 protected:
  void SetUp() override {
    qkcts_text reason{sizeof(qkcts_text), 0, 0, 0, nullptr};
    if (qkcts_adapter_avx2()->probe(&reason) != QKCTS_OK) GTEST_SKIP() << "no AVX2 here";
  }
};

struct Worst {
  double normal = 0;     // ulp, results of at least 2^-126
  double subnormal = 0;  // quanta of 2^-149
};

// Every `step`-th binary32 pattern of [first, last] (same sign) against binary64 libm, which is off by less than 2^-28
// ulp of binary32.
template <class Function, class Exact>
Worst measure(Function function, Exact exact, float first, float last, std::uint32_t step) {
  Worst worst;
  const auto from = std::bit_cast<std::uint32_t>(first);
  const auto until = std::bit_cast<std::uint32_t>(last);
  for (std::uint64_t bits = from; bits <= until; bits += 8 * std::uint64_t{step}) {
    alignas(32) float x[8], y[8];
    for (std::uint32_t i = 0; i < 8; ++i)
      x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(std::min<std::uint64_t>(bits + i * step, until)));
    _mm256_store_ps(y, function(_mm256_load_ps(x)));
    for (int i = 0; i < 8; ++i) {
      const double z = exact(static_cast<double>(x[i]));
      const double size = std::fabs(z);
      const double ulp = size < 0x1p-126 ? 0x1p-149 : std::ldexp(1.0, std::ilogb(size) - 23);
      const double error = std::fabs(y[i] - z) / ulp;
      double& record = size < 0x1p-126 ? worst.subnormal : worst.normal;
      record = std::isnan(error) ? infinity : std::max(record, error);
    }
  }
  return worst;
}

float apply(__m256 (*function)(__m256), float x) {
  return _mm256_cvtss_f32(function(splat(x)));
}

TEST_F(VectorMath, ExpOfNegativeArguments) {
  const Worst worst = measure(
      exp, [](double x) { return std::exp(x); }, -0.0f, -infinity, 97);
  EXPECT_LE(worst.normal, 1.1);
  EXPECT_GE(worst.normal, 0.5);  // else it is not the function that was measured
  EXPECT_LE(worst.subnormal, 1.0);
  EXPECT_GE(worst.subnormal, 0.5);
}

TEST_F(VectorMath, ExpOfPositiveArgumentsUpToOverflow) {
  // ln(2^128 - 2^103), below which the result is finite after rounding.
  const Worst worst = measure(
      exp, [](double x) { return std::exp(x); }, 0.0f, 0x1.62e42ep+6f, 97);
  EXPECT_LE(worst.normal, 1.1);
  EXPECT_EQ(apply(exp, 0x1.62e432p+6f), infinity);
  EXPECT_EQ(apply(exp, infinity), infinity);
}

TEST_F(VectorMath, ExpOfTheArgumentsThatAttentionSees) {
  // Every pattern between -104 and -64, where results become subnormal, and near 0 from below.
  EXPECT_LE(measure(
                exp, [](double x) { return std::exp(x); }, -64.0f, -104.0f, 1)
                .subnormal,
            1.0);
  EXPECT_EQ(apply(exp, 0.0f), 1.0f);
  EXPECT_EQ(apply(exp, -0.0f), 1.0f);
  EXPECT_EQ(apply(exp, -infinity), 0.0f);
  EXPECT_EQ(apply(exp, -104.0f), 0.0f);
  EXPECT_GT(apply(exp, -103.9f), 0.0f);
  EXPECT_TRUE(std::isnan(apply(exp, std::numeric_limits<float>::quiet_NaN())));
}

TEST_F(VectorMath, TanhOfEveryMagnitude) {
  for (const float sign : {1.0f, -1.0f}) {
    const Worst worst = measure(
        tanh, [](double x) { return std::tanh(x); }, sign * 0.0f, sign * infinity, 97);
    EXPECT_LE(worst.normal, 1.5);
    EXPECT_GE(worst.normal, 0.5);
    EXPECT_LE(worst.subnormal, 0.001);
  }
  // Every pattern around the seam of the two formulas.
  EXPECT_LE(measure(
                tanh, [](double x) { return std::tanh(x); }, 0.5f, 1.0f, 1)
                .normal,
            1.5);
  EXPECT_EQ(apply(tanh, infinity), 1.0f);
  EXPECT_EQ(apply(tanh, -infinity), -1.0f);
  EXPECT_TRUE(std::isnan(apply(tanh, std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace qkcts::avx2
