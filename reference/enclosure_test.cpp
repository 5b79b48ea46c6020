// SPDX-License-Identifier: Apache-2.0
// The operations of enclosures against those of MPFI: the same ends, signs of zero included.
#include "reference/enclosure.hpp"

#include <boost/multiprecision/mpfi.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/double_word_distance.hpp"

namespace qkcts {
namespace {

template <unsigned Digits>
using Mpfi =
    boost::multiprecision::number<boost::multiprecision::mpfi_float_backend<Digits>, boost::multiprecision::et_off>;

bool same(mpfr_srcptr x, mpfr_srcptr y) {
  if (mpfr_nan_p(x) != 0 || mpfr_nan_p(y) != 0) return mpfr_nan_p(x) != 0 && mpfr_nan_p(y) != 0;
  return mpfr_equal_p(x, y) != 0 && mpfr_signbit(x) == mpfr_signbit(y);
}

template <unsigned Digits>
bool same(const Enclosure<Digits>& x, const Mpfi<Digits>& y) {
  return same(x.left(), y.backend().left_data()) && same(x.right(), y.backend().right_data());
}

// One number in both kinds.
template <unsigned Digits>
struct Twins {
  Enclosure<Digits> own;
  Mpfi<Digits> other;
};

template <unsigned Digits>
Twins<Digits> twins(double low, double high) {
  Twins<Digits> x;
  x.own = Enclosure<Digits>(low);
  mpfr_set_d(x.own.right(), high, MPFR_RNDU);
  x.own.sign_zeros();
  mpfi_interv_d(x.other.backend().data(), low, high);
  return x;
}

// Every combination of signs and zeros, points and wide ones; some with all digits in use.
template <unsigned Digits>
std::vector<Twins<Digits>> operands() {
  std::vector<Twins<Digits>> list;
  for (const double low : {-0x1p900, -3.0, -1.0, -0x1.8p-70, 0.0, -0.0, 0x1p-1074, 0.1, 1.0, 7.0})
    for (const double width : {0.0, 0x1p-60, 0.5, 3.0, 8.0}) list.push_back(twins<Digits>(low, low + width));
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [low, high] : {std::pair(1.0, infinity), std::pair(-infinity, -2.0), std::pair(-infinity, infinity),
                                  std::pair(0.0, infinity), std::pair(-infinity, 0.0)})
    list.push_back(twins<Digits>(low, high));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  list.push_back(twins<Digits>(nan, nan));
  WordSource source(3);
  for (int i = 0; i < 40; ++i) {
    const double a = source.number(20), b = source.number(20);
    Twins<Digits> x = twins<Digits>(std::min(a, b), i % 3 == 0 ? std::min(a, b) : std::max(a, b));
    x.own /= 3ul;
    x.other /= 3ul;
    list.push_back(x);
  }
  return list;
}

template <unsigned Digits>
void expect_same_sums_and_products() {
  const std::vector<Twins<Digits>> list = operands<Digits>();
  for (const Twins<Digits>& x : list) {
    EXPECT_TRUE(same(x.own, x.other));
    EXPECT_TRUE(same<Digits>(-x.own, -x.other));
    EXPECT_TRUE(same<Digits>(x.own + 1ul, x.other + 1ul));
    EXPECT_TRUE(same<Digits>(x.own * 6ul, x.other * 6ul));
    EXPECT_TRUE(same<Digits>(x.own / 7ul, x.other / 7ul));
    for (const Twins<Digits>& y : list) {
      const bool quotient_exists = mpfr_sgn(y.own.left()) > 0 || mpfr_sgn(y.own.right()) < 0;
      EXPECT_TRUE(same<Digits>(x.own + y.own, x.other + y.other));
      EXPECT_TRUE(same<Digits>(x.own - y.own, x.other - y.other));
      EXPECT_TRUE(same<Digits>(x.own * y.own, x.other * y.other));
      if (!quotient_exists) continue;
      EXPECT_TRUE(same<Digits>(x.own / y.own, x.other / y.other));
    }
  }
}

TEST(Enclosures, AreThoseOfMpfiWith128Bits) {
  expect_same_sums_and_products<38>();
}

TEST(Enclosures, AreThoseOfMpfiWith257Bits) {
  expect_same_sums_and_products<77>();
}

TEST(Enclosures, OfNumbersAreThoseOfMpfi) {
  WordSource source(7);
  std::vector<double> numbers = {0.0,
                                 -0.0,
                                 1,
                                 -1,
                                 0x1p-1022,
                                 -0x1p-1022,
                                 0x1p-1023,
                                 -0x1p-1074,
                                 0x1.fffffffffffffp1023,
                                 -0x1.fffffffffffffp1023,
                                 3,
                                 1e300,
                                 std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()};
  for (int i = 0; i < 1000; ++i) numbers.push_back(source.number(1000));
  for (const double x : numbers) {
    EXPECT_TRUE(same(Enclosure<38>(x), Mpfi<38>(x))) << x;
    EXPECT_TRUE(same(Enclosure<77>(x), Mpfi<77>(x))) << x;
    EXPECT_TRUE(same(Enclosure<1233>(x), Mpfi<1233>(x))) << x;
  }
  EXPECT_TRUE(same(Enclosure<38>(12345678901234567890ul), Mpfi<38>(12345678901234567890ul)));
}

TEST(Enclosures, AssignmentsMayNameTheSameNumberTwice) {
  for (const Twins<38>& x : operands<38>()) {
    Twins<38> y = x;
    y.own -= y.own;
    y.other = Mpfi<38>(x.other - x.other);
    EXPECT_TRUE(same(y.own, y.other));
    y = x;
    y.own *= y.own;
    y.other = Mpfi<38>(x.other * x.other);
    EXPECT_TRUE(same(y.own, y.other));
    y = x;
    y.own += y.own;
    y.other = Mpfi<38>(x.other + x.other);
    EXPECT_TRUE(same(y.own, y.other));
  }
}

TEST(Enclosures, NothingIsKnownOfAQuotientByWhatMayBeZero) {
  for (const Twins<38>& y : {twins<38>(-1, 2), twins<38>(0, 0)}) {
    const Enclosure<38> quotient = Enclosure<38>(1) / y.own;
    EXPECT_TRUE(mpfr_inf_p(quotient.left()) != 0 && mpfr_inf_p(quotient.right()) != 0);
    EXPECT_LT(mpfr_sgn(quotient.left()), 0);
  }
}

TEST(Enclosures, CopiesOutliveWhatTheyWereCopiedFrom) {
  std::vector<Enclosure<38>> list;
  for (int i = 1; i < 100; ++i) list.push_back(Enclosure<38>(i) / 3ul);  // grows, and moves what it holds
  for (int i = 1; i < 100; ++i) EXPECT_TRUE(same(list[static_cast<std::size_t>(i - 1)], Mpfi<38>(Mpfi<38>(i) / 3ul)));
}

// What a wrong rule of signs would do: the check above sees it.
TEST(Enclosures, TheTwinNoticesASwappedEnd) {
  const Twins<38> x = twins<38>(-3, -1), y = twins<38>(-1, 2);
  Enclosure<38> product = x.own * y.own;
  EXPECT_TRUE(same(product, Mpfi<38>(x.other * y.other)));
  mpfr_swap(product.left(), product.right());
  EXPECT_FALSE(same(product, Mpfi<38>(x.other * y.other)));
}

}  // namespace
}  // namespace qkcts
