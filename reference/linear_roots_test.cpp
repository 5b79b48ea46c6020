// SPDX-License-Identifier: Apache-2.0
#include "reference/linear_roots.hpp"

#include <random>

#include <gtest/gtest.h>

namespace qkcts {
namespace {

TEST(LinearRoots, MultiplesOfOneRootAreOneClass) {
  LinearRoots sum;
  sum.add(Rational(3), Rational(2));
  EXPECT_FALSE(sum.is_zero());
  sum.add(Rational(-1), Rational(8));
  EXPECT_FALSE(sum.is_zero());
  sum.add(Rational(-2), Rational("1/2"));  // 3 sqrt 2 - 2 sqrt 2 - sqrt 2
  EXPECT_TRUE(sum.is_zero());
  sum.add(Rational(5), Rational(9));
  sum.add(Rational(-15), Rational(1));
  EXPECT_TRUE(sum.is_zero());
  sum.add(Rational(1), Rational(3));
  sum.add(Rational(-1), Rational("3000000000000000000000000000001/1000000000000000000000000000000"));
  EXPECT_FALSE(sum.is_zero());
}

TEST(LinearRoots, TakesRootSumsWithoutNestedRoots) {
  const RootSum x = (RootSum::square_root(Rational(2)) + RootSum(Rational(1))) * RootSum::square_root(Rational(3));
  LinearRoots sum;
  EXPECT_TRUE(sum.add(x, Rational(2)));
  sum.add(Rational(-1), Rational(24));
  sum.add(Rational(-2), Rational(3));
  EXPECT_TRUE(sum.is_zero());
  EXPECT_FALSE(sum.add(RootSum::square_root(x), Rational(1)));
  EXPECT_TRUE(sum.is_zero());
}

// Against RootSum, which decides by squaring.
TEST(LinearRoots, AgreesWithRootSum) {
  std::mt19937_64 random(11);
  int zeros = 0;
  for (int repeat = 0; repeat < 400; ++repeat) {
    LinearRoots sum;
    RootSum exact;
    for (int i = 0; i < 5; ++i) {
      const Rational radicand(static_cast<long>(random() % 3 == 0 ? 8 : 2) * static_cast<long>(1 + random() % 2));
      const Rational factor(static_cast<long>(random() % 5) - 2);
      sum.add(factor, radicand);
      exact = exact + RootSum::square_root(radicand) * factor;
    }
    EXPECT_EQ(sum.is_zero(), exact.sign() == 0);
    if (sum.is_zero()) ++zeros;
  }
  EXPECT_GT(zeros, 10);
  EXPECT_LT(zeros, 390);
}

}  // namespace
}  // namespace qkcts
