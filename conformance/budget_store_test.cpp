// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_store.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Stored {
  float delta = 0;
  Trust trust = Trust::judged;
};

// One element, as the headers of the parts say it.
Stored stored(const StoreTerms& terms, double z, double error, double mistrusted_from) {
  double total = infinity;
  if (std::isfinite(error)) {
    total = (error + terms.rounding.error(std::fabs(z), error) + terms.resolution * ulp(Format::binary64, z)) *
            (1 + 0x1p-30);
  }
  const float delta = binary32_upper(total);
  if (!std::isfinite(delta)) return {delta, Trust::domain};
  const bool reached = mistrusted_from > 0 && static_cast<double>(delta) >= mistrusted_from;
  return {delta, reached ? Trust::mistrusted : Trust::judged};
}

void expect_as_one_by_one(const StoreTerms& terms, const std::vector<double>& z, const std::vector<double>& errors,
                          const std::vector<double>& from) {
  std::vector<float> delta(z.size());
  std::vector<Trust> trust(z.size());
  store_budgets(terms, z.size(), z.data(), errors.data(), from.data(), delta.data(), trust.data());
  for (std::size_t i = 0; i < z.size(); ++i) {
    const Stored due = stored(terms, z[i], errors[i], from[i]);
    ASSERT_EQ(trust[i], due.trust) << i << " of " << z.size() << ": z " << z[i] << ", error " << errors[i];
    ASSERT_EQ(std::bit_cast<std::uint32_t>(delta[i]), std::bit_cast<std::uint32_t>(due.delta))
        << i << " of " << z.size() << ": z " << z[i] << ", error " << errors[i];
  }
}

const StoreTerms binary32_terms{{1, 0x1p-24, 0x1p-150}, 0x1p-9};

TEST(BudgetStore, ManyAreStoredAsOneByOne) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (std::size_t count = 0; count <= 200; ++count) {
    std::vector<double> z, errors, from;
    for (std::size_t i = 0; i < count; ++i) {
      z.push_back(normal(random) * std::ldexp(1, static_cast<int>(random() % 200) - 100));
      errors.push_back(std::fabs(z.back() * normal(random)) * std::ldexp(1, -static_cast<int>(random() % 40)));
      from.push_back(random() % 3 == 0 ? 0 : std::fabs(z.back()));
    }
    expect_as_one_by_one(binary32_terms, z, errors, from);
    expect_as_one_by_one({{0, 0, 0}, 0}, z, errors, from);
  }
}

// One of each among plain neighbours, so that both ways through a block are taken.
TEST(BudgetStore, EndsOfTheRangesAreStoredAsOneByOne) {
  constexpr double largest32 = std::numeric_limits<float>::max();
  const std::vector<double> sizes = {0,      -0.0,      0x1p-1074, 0x1p-1022, 0x1p-901, 0x1p-900,
                                     0x1p-3, -0x1.8p77, 0x1p1000,  infinity,  -infinity};
  const std::vector<double> errors = {0,
                                      0x1p-1074,
                                      0x1p-200,
                                      0x1p-149,
                                      0x1.8p-140,
                                      1,
                                      1 + 0x1p-24,
                                      largest32 * (1 - 0x1p-20),
                                      largest32,
                                      largest32 * (1 + 0x1p-26),
                                      0x1p128,
                                      0x1p1000,
                                      std::numeric_limits<double>::max(),
                                      infinity};
  for (const double z : sizes) {
    for (const double error : errors) {
      for (const double from : {0.0, 0x1p-149, 0.5, largest32, infinity}) {
        std::vector<double> values(70, 1.5), moved(70, 0x1p-20), limits(70, 0.0);
        for (const std::size_t at : {std::size_t{3}, std::size_t{66}}) {
          values[at] = z;
          moved[at] = error;
          limits[at] = from;
        }
        expect_as_one_by_one(binary32_terms, values, moved, limits);
      }
    }
  }
}

// The mark must be that of the number that is stored, which is the one that judges.
TEST(BudgetStore, TrustIsThatOfTheStoredNumber) {
  const StoreTerms plain{{0, 0, 0}, 0};
  const double from = 1 + 0x1p-25;  // the error lies below, what is stored of it above
  float delta = 0;
  Trust trust = Trust::judged;
  const double z = 1, error = 1;
  store_budgets(plain, 1, &z, &error, &from, &delta, &trust);
  EXPECT_EQ(delta, 1 + 0x1p-23f);
  EXPECT_EQ(trust, Trust::mistrusted);
}

}  // namespace
}  // namespace qkcts
