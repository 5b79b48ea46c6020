// SPDX-License-Identifier: Apache-2.0
#include "reference/double_word.hpp"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "reference/double_word_distance.hpp"
#include "reference/double_word_scalar.hpp"

namespace qkcts {
namespace {

constexpr int trials = 200000;

// The largest relative error, in u^2, of `computed` against `exact` over strained operands.
double worst(const std::function<Word(Word, Word)>& computed,
             const std::function<void(Real& result, const Real& x, const Real& y)>& exact, int reach = 3) {
  WordSource source(7);
  double result = 0;
  for (int i = 0; i < trials; ++i) {
    Word x = source.word(reach);
    Word y = source.word(reach);
    if (source.below(8) == 0) y = {-std::nextafter(x.h, x.h + std::copysign(1e300, x.h)), y.l};  // cancels
    if (y.h + y.l != y.h) y.l = 0;
    Real z(1200);
    exact(z, exactly(x), exactly(y));
    if (mpfr_zero_p(z.get()) != 0) continue;
    result = std::max(result, relative_distance(computed(x, y), z.get()));
  }
  return result;
}

void sum(Real& z, const Real& x, const Real& y) {
  mpfr_add(z.get(), x.get(), y.get(), MPFR_RNDN);
}
void product(Real& z, const Real& x, const Real& y) {
  mpfr_mul(z.get(), x.get(), y.get(), MPFR_RNDN);
}
void quotient(Real& z, const Real& x, const Real& y) {
  mpfr_div(z.get(), x.get(), y.get(), MPFR_RNDN);
}

// A compiler that may reassociate makes the error of this sum 0.
TEST(DoubleWord, TwoSumKeepsWhatTheSumLoses) {
  volatile double a = 1;
  volatile double b = 0x1.8p-54;
  const Double s = dw::two_sum(a + 0.0, b + 0.0);
  EXPECT_EQ(s.h, 1.0);
  EXPECT_EQ(s.l, 0x1.8p-54);
  const Double t = dw::two_sum(b + 0.0, a + 0.0);
  EXPECT_EQ(t.h, 1.0);
  EXPECT_EQ(t.l, 0x1.8p-54);
}

TEST(DoubleWord, ProductIsExact) {
  volatile double a = 1 + 0x1p-52;
  const Double p = dw::two_product(a + 0.0, a + 0.0);
  EXPECT_EQ(p.h, 1 + 0x1p-51);
  EXPECT_EQ(p.l, 0x1p-104);
}

TEST(DoubleWord, SumOfWords) {
  const double seen = worst([](Word x, Word y) { return of(dw::add(of(x), of(y))); }, sum);
  EXPECT_LE(seen, dw::add_bound);
  EXPECT_GE(seen, 1.5);
}

// The sloppy sum has no bound where signs differ: the check above must notice it.
TEST(DoubleWord, SloppySumIsNoticed) {
  const auto sloppy = [](Word x, Word y) {
    const Double s = dw::two_sum(x.h, y.h);
    return of(dw::fast_two_sum(s.h, s.l + (x.l + y.l)));
  };
  EXPECT_GT(worst(sloppy, sum), 1000 * dw::add_bound);
}

TEST(DoubleWord, SumWithNumber) {
  const auto drop = [](Real& z, const Real& x, const Real& y) {
    Real number(53);
    mpfr_set(number.get(), y.get(), MPFR_RNDN);
    sum(z, x, number);
  };
  const double seen = worst([](Word x, Word y) { return of(dw::add(of(x), y.h)); }, drop);
  EXPECT_LE(seen, dw::add_number_bound);
  EXPECT_GE(seen, 1.6);
}

TEST(DoubleWord, ProductOfWords) {
  const double seen = worst([](Word x, Word y) { return of(dw::multiply(of(x), of(y))); }, product);
  EXPECT_LE(seen, dw::multiply_bound);
  EXPECT_GE(seen, 3.0);
}

TEST(DoubleWord, ProductWithoutOneCrossTermIsNoticed) {
  const auto dropped = [](Word x, Word y) {
    const Double c = dw::two_product(x.h, y.h);
    return of(dw::fast_two_sum(c.h, c.l + x.h * y.l));
  };
  EXPECT_GT(worst(dropped, product), 1000 * dw::multiply_bound);
}

TEST(DoubleWord, ProductWithNumber) {
  const auto drop = [](Real& z, const Real& x, const Real& y) {
    Real number(53);
    mpfr_set(number.get(), y.get(), MPFR_RNDN);
    product(z, x, number);
  };
  const double seen = worst([](Word x, Word y) { return of(dw::multiply(of(x), y.h)); }, drop);
  EXPECT_LE(seen, dw::multiply_number_bound);
  EXPECT_GE(seen, 1.5);
}

TEST(DoubleWord, Quotient) {
  const double seen = worst([](Word x, Word y) { return of(dw::divide(of(x), of(y))); }, quotient);
  EXPECT_LE(seen, dw::divide_bound);
  EXPECT_GE(seen, 5.0);
}

TEST(DoubleWord, QuotientWithoutTheDivisorsLowWordIsNoticed) {
  const auto dropped = [](Word x, Word y) {
    const double q = x.h / y.h;
    return of(dw::fast_two_sum(q, (dw::fused_less(q, y.h, x.h) + x.l) / y.h));
  };
  EXPECT_GT(worst(dropped, quotient), 1000 * dw::divide_bound);
}

TEST(DoubleWord, SquareRoot) {
  const auto exact = [](Real& z, const Real& x, const Real&) {
    mpfr_abs(z.get(), x.get(), MPFR_RNDN);
    mpfr_sqrt(z.get(), z.get(), MPFR_RNDN);
  };
  const auto computed = [](Word x, Word) {
    return of(dw::square_root(x.h < 0 ? Double{-x.h, -x.l} : Double{x.h, x.l}));
  };
  const double seen = worst(computed, exact);
  EXPECT_LE(seen, dw::root_bound);
  EXPECT_GE(seen, 1.5);
}

}  // namespace
}  // namespace qkcts
