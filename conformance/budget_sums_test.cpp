// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_sums.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace qkcts {
namespace {

using Numbers = std::vector<double>;

Numbers drawn(std::size_t count, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Numbers numbers(count);
  for (double& number : numbers) number = normal(random);
  return numbers;
}

Numbers magnitudes(Numbers numbers) {
  for (double& number : numbers) number = std::fabs(number);
  return numbers;
}

// Whatever stood there before, and in the order of the keys.
TEST(BudgetSums, OfValuesAreThoseOfALoop) {
  std::mt19937_64 random(2);
  for (const std::size_t length : {1, 3, 8, 15, 16, 17, 32, 37, 64, 100}) {
    for (const std::size_t keys : {0, 1, 2, 7, 30}) {
      std::vector<Numbers> v;
      std::vector<const double*> rows;
      for (std::size_t j = 0; j < keys; ++j) v.push_back(drawn(length, random));
      for (const Numbers& row : v) rows.push_back(row.data());
      const Numbers moves = magnitudes(drawn(keys, random)), grows = magnitudes(drawn(keys, random));
      const Numbers exact = drawn(length, random);
      for (const bool with_spread : {false, true}) {
        Numbers moved(length, 7), spread(length, 7), weighted(length, 7);
        sum_value_terms({rows.data(), moves.data(), grows.data(), keys, length, exact.data()},
                        {moved.data(), with_spread ? spread.data() : nullptr, weighted.data()});
        for (std::size_t d = 0; d < length; ++d) {
          double due_moved = 0, due_spread = 0, due_weighted = 0;
          for (std::size_t j = 0; j < keys; ++j) {
            const double distance = std::fabs(v[j][d] - exact[d]);
            due_moved += moves[j] * distance;
            due_spread += grows[j] * distance;
            due_weighted += grows[j] * std::fabs(v[j][d]);
          }
          ASSERT_EQ(moved[d], due_moved) << d << " of " << length;
          ASSERT_EQ(spread[d], with_spread ? due_spread : 7) << d << " of " << length;
          ASSERT_EQ(weighted[d], due_weighted) << d << " of " << length;
        }
      }
    }
  }
}

TEST(BudgetSums, OfProductsAreThoseOfALoop) {
  std::mt19937_64 random(3);
  for (const std::size_t elements : {1, 5, 64}) {
    for (const std::size_t groups : {1, 2, 8}) {
      const std::size_t keys = 8 * groups;
      const Numbers q_size = magnitudes(drawn(elements, random)), q_error = magnitudes(drawn(elements, random));
      const Numbers k_error = magnitudes(drawn(elements * keys, random));
      const Numbers k_magnitude = magnitudes(drawn(elements * keys, random));
      Numbers size(keys, 7), moved(keys, 7);
      sum_product_terms({q_size.data(), q_error.data(), elements, k_error.data(), k_magnitude.data(), groups},
                        {size.data(), moved.data()});
      for (std::size_t key = 0; key < keys; ++key) {
        double due_size = 0, due_moved = 0;
        for (std::size_t d = 0; d < elements; ++d) {
          const std::size_t at = (key / 8 * elements + d) * 8 + key % 8;
          due_size += q_size[d] * (k_magnitude[at] + k_error[at]);
          due_moved += q_size[d] * k_error[at] + q_error[d] * k_magnitude[at];
        }
        ASSERT_EQ(size[key], due_size) << key << " of " << keys;
        ASSERT_EQ(moved[key], due_moved) << key << " of " << keys;
      }
    }
  }
}

TEST(BudgetSums, CountsTopsAboveEachLevel) {
  std::mt19937_64 random(4);
  for (std::size_t count = 0; count < 40; ++count) {
    Numbers tops = drawn(count, random), levels = drawn(count, random), counts(count, 7);
    if (count > 2) tops[1] = levels[2];  // equal is not above
    if (count > 3) tops[3] = -std::numeric_limits<double>::infinity();
    count_above(tops.data(), count, levels.data(), count, counts.data());
    for (std::size_t j = 0; j < count; ++j) {
      double due = 0;
      for (const double top : tops) due += top > levels[j] ? 1 : 0;
      ASSERT_EQ(counts[j], due) << j << " of " << count;
    }
  }
}

TEST(BudgetSums, LargestIsTheFirstOfItsKind) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t count = 1; count < 30; ++count) {
    Numbers numbers(count, 1.0);
    numbers[count / 2] = 3;
    numbers.back() = 3;
    EXPECT_EQ(place_of_largest(numbers.data(), count), count / 2);
    EXPECT_EQ(largest_above(0, numbers.data(), count), 3);
    EXPECT_EQ(largest_above(4, numbers.data(), count), 4);
  }
  Numbers numbers(20, 1.0);
  numbers[7] = nan;
  numbers[9] = 2;
  EXPECT_EQ(place_of_largest(numbers.data(), 20), 9u);
  numbers[0] = nan;
  EXPECT_EQ(place_of_largest(numbers.data(), 20), 0u);
}

}  // namespace
}  // namespace qkcts
