// SPDX-License-Identifier: Apache-2.0
#include "reference/root_sum.hpp"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace qkcts {
namespace {

RootSum root(long n) {
  return RootSum::square_root(Rational(n));
}
RootSum whole(long n) {
  return RootSum(Rational(n));
}

TEST(RootSum, Identities) {
  const RootSum sum = root(2) + root(3);
  EXPECT_EQ((sum * sum - whole(5) - root(6) * Rational(2)).sign(), 0);
  EXPECT_EQ((root(8) - root(2) * Rational(2)).sign(), 0);  // radicands need not be independent
  EXPECT_EQ((root(4) - whole(2)).sign(), 0);               // nor free of squares
  EXPECT_EQ((root(2) * root(3) * root(5) - root(30)).sign(), 0);
  EXPECT_EQ(RootSum::square_root(Rational(0)).sign(), 0);
}

TEST(RootSum, RootsOfSumsWithRoots) {
  const RootSum nested = RootSum::square_root(whole(3) + root(8));
  EXPECT_EQ((nested - whole(1) - root(2)).sign(), 0);  // (1 + sqrt 2)^2 = 3 + sqrt 8
  EXPECT_EQ((nested * nested - whole(3) - root(8)).sign(), 0);
  EXPECT_EQ(
      (nested - RootSum::square_root(whole(3) + root(8) + RootSum(Rational("1/1" + std::string(90, '0'))))).sign(), -1);
  // sqrt(2 + sqrt 3) sqrt(2 - sqrt 3) = 1, and of a third storey
  const RootSum plus = RootSum::square_root(whole(2) + root(3)), minus = RootSum::square_root(whole(2) - root(3));
  EXPECT_EQ((plus * minus - whole(1)).sign(), 0);
  EXPECT_EQ((plus - minus - root(2)).sign(), 0);
  EXPECT_EQ((RootSum::square_root(plus * plus + root(3) + minus) * RootSum::square_root(whole(2) + root(12) + minus) -
             whole(2) - root(12) - minus)
                .sign(),
            0);
  EXPECT_EQ(RootSum::square_root(root(5) * root(20) - whole(10)).sign(), 0);
}

TEST(RootSum, Inverses) {
  for (const RootSum& x : {whole(-3), root(2) + root(3) - whole(4), root(2) - root(8) * Rational(2), root(4) + whole(2),
                           RootSum::square_root(whole(3) + root(8)) + whole(1) + root(2),  // its conjugate is 0
                           RootSum::square_root(root(7) + whole(1)) - root(5)}) {
    EXPECT_EQ((x * x.inverse() - whole(1)).sign(), 0);
    EXPECT_NE(((x + RootSum(Rational("1/1" + std::string(60, '0')))) * x.inverse() - whole(1)).sign(), 0);
  }
}

TEST(RootSum, WritesWhatItIs) {
  EXPECT_EQ((root(2) * root(2)).rational(), Rational(2));
  EXPECT_FALSE(root(2).rational());
  const auto linear = (root(2) * root(3) * Rational(5) + whole(7)).linear();
  ASSERT_TRUE(linear);
  ASSERT_EQ(linear->size(), 2u);
  EXPECT_EQ((*linear)[0].factor, Rational(7));
  EXPECT_EQ((*linear)[0].radicand, Rational(1));
  EXPECT_EQ((*linear)[1].factor, Rational(5));
  EXPECT_EQ((*linear)[1].radicand, Rational(6));
  EXPECT_FALSE(RootSum::square_root(whole(1) + root(2)).linear());
}

TEST(RootSum, SignsOfNearlyEqualNumbers) {
  EXPECT_EQ((root(2) + root(3) - root(10)).sign(), -1);  // 3.146 < 3.162
  EXPECT_EQ((root(2) * root(3) - root(6) + RootSum(Rational(1) / Rational("1" + std::string(200, '0')))).sign(), 1);
  // sqrt(10^40 + 1) - 10^20 is about 5e-21
  const Rational big("1" + std::string(20, '0'));
  EXPECT_EQ((RootSum::square_root(Rational(big * big + Rational(1))) - RootSum(big)).sign(), 1);
  EXPECT_EQ((RootSum::square_root(Rational(big * big - Rational(1))) - RootSum(big)).sign(), -1);
  EXPECT_EQ((RootSum::square_root(Rational(big * big)) - RootSum(big)).sign(), 0);
}

// Against enclosures of 1000 bits; sums built so that about half of them are exactly 0.
TEST(RootSum, AgreesWithEnclosures) {
  std::mt19937_64 random(3);
  int zeros = 0;
  for (int repeat = 0; repeat < 300; ++repeat) {
    RootSum exact;
    Enclosure<308> near(0);
    std::vector<std::pair<long, long>> terms;
    for (int i = 0; i < 4; ++i) {
      const long radicand = 1 + static_cast<long>(random() % 12);
      const long factor = static_cast<long>(random() % 9) - 4;
      terms.push_back({radicand, factor});
      if (repeat % 2 == 0) terms.push_back({radicand * 9, 0});
    }
    if (repeat % 2 == 0)
      for (std::size_t i = 0; i < terms.size(); i += 2)
        terms[i].second *= 3, terms[i + 1].second = -terms[i].second / 3;
    for (const auto& [radicand, factor] : terms) {
      exact = exact + root(radicand) * Rational(factor);
      near += sqrt_of_nonnegative(Enclosure<308>(static_cast<double>(radicand))) *
              Enclosure<308>(static_cast<double>(factor));
    }
    const int sign = exact.sign();
    if (sign == 0) ++zeros;
    if (mpfr_sgn(lower(near)) > 0) {
      EXPECT_EQ(sign, 1);
    } else if (mpfr_sgn(upper(near)) < 0) {
      EXPECT_EQ(sign, -1);
    } else {
      EXPECT_EQ(sign, 0);
    }
  }
  EXPECT_GE(zeros, 150);
  EXPECT_LT(zeros, 300);
}

}  // namespace
}  // namespace qkcts
