// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "reference/double_word_distance.hpp"
#include "reference/double_word_kernels.hpp"

namespace qkcts {
namespace {

constexpr std::size_t columns = padding;

enum class LowWords { none, x, both };
enum class Spread { even, cancelling, wide };

// x of n terms, y of n rows and 32 columns.
struct Operands {
  Operands(std::size_t n, LowWords low, Spread spread, std::uint64_t seed)
      : xh(n), xl(n), yh(n * columns), yl(n * columns) {
    WordSource source(seed);
    const int reach = spread == Spread::wide ? 30 : 1;
    for (std::size_t i = 0; i < n; ++i) {
      const Word w = source.word(reach);
      xh[i] = w.h;
      xl[i] = low == LowWords::none ? 0 : w.l;
      if (spread == Spread::cancelling && i % 2 == 1) {
        xh[i] = -xh[i - 1];
        xl[i] = -xl[i - 1];
      }
      for (std::size_t c = 0; c < columns; ++c) {
        const Word v = source.word(reach);
        yh[i * columns + c] = v.h;
        yl[i * columns + c] = low == LowWords::both ? v.l : 0;
        if (spread == Spread::cancelling && i % 2 == 1) {
          yh[i * columns + c] = yh[(i - 1) * columns + c];
          yl[i * columns + c] = source.below(2) == 0 ? yl[(i - 1) * columns + c] : yl[i * columns + c] * 0x1p-3;
        }
      }
    }
  }
  double norm(std::size_t column) const {
    double x = 0, y = 0;
    for (std::size_t i = 0; i < xh.size(); ++i) {
      x += xh[i] * xh[i];
      y += yh[i * columns + column] * yh[i * columns + column];
    }
    return std::sqrt(x) * std::sqrt(y) * (1 + 0x1p-30);
  }
  Real exact(std::size_t column) const {
    Real sum(1200, 0.0);
    for (std::size_t i = 0; i < xh.size(); ++i) {
      Real product(1200);
      const std::size_t at = i * columns + column;
      mpfr_mul(product.get(), exactly({xh[i], xl[i]}).get(), exactly({yh[at], yl[at]}).get(), MPFR_RNDN);
      mpfr_add(sum.get(), sum.get(), product.get(), MPFR_RNDN);
    }
    return sum;
  }
  std::vector<double> xh, xl, yh, yl;
};

enum class Fault { none, without_low_words, anchor_too_small };

// Largest error / bound over the columns.
double worst(const Kernels& kernels, const Operands& o, LowWords low, Fault fault = Fault::none) {
  const std::size_t n = o.xh.size();
  std::vector<double> norms(columns), anchors(columns), h(columns), l(columns);
  for (std::size_t c = 0; c < columns; ++c) norms[c] = o.norm(c) * (fault == Fault::anchor_too_small ? 0x1p-9 : 1);
  kernels.anchors(norms.data(), columns, 1, anchors.data());
  const bool keep = fault != Fault::without_low_words;
  const DotOperands operands{o.xh.data(), low != LowWords::none && keep ? o.xl.data() : nullptr, n,      nullptr,
                             o.yh.data(), low == LowWords::both && keep ? o.yl.data() : nullptr, columns};
  kernels.dot(operands, columns, anchors.data(), {h.data(), l.data()});
  const DotSize size(n, low == LowWords::none ? 0 : (low == LowWords::x ? 1 : 2));
  double result = 0;
  for (std::size_t c = 0; c < columns; ++c) {
    const Real z = o.exact(c);
    const double bound = anchors[c] * size.grid_error + norms[c] * size.sum_error +
                         1.01 * u2 * std::fabs(mpfr_get_d(z.get(), MPFR_RNDN));
    result = std::max(result, distance({h[c], l[c]}, z.get()) / bound);
    EXPECT_EQ(h[c] + l[c], h[c]);
  }
  return result;
}

class AnchoredDot : public testing::TestWithParam<std::size_t> {
 protected:
  const Kernels& kernels() const { return all_kernels()[GetParam()]; }
};

TEST_P(AnchoredDot, BoundHoldsAndIsApproached) {
  double largest = 0;
  for (const std::size_t n : {1u, 2u, 31u, 32u, 33u, 128u, 1000u})
    for (const LowWords low : {LowWords::none, LowWords::x, LowWords::both})
      for (const Spread spread : {Spread::even, Spread::cancelling, Spread::wide}) {
        const double seen = worst(kernels(), Operands(n, low, spread, n + 7), low);
        EXPECT_LT(seen, 1) << n;
        largest = std::max(largest, seen);
      }
  EXPECT_GT(largest, 0.02);
}

TEST_P(AnchoredDot, ForgottenLowWordsAreNoticed) {
  for (const LowWords low : {LowWords::x, LowWords::both})
    EXPECT_GT(worst(kernels(), Operands(128, low, Spread::even, 3), low, Fault::without_low_words), 1);
}

TEST_P(AnchoredDot, AnAnchorThatIsTooSmallIsNoticed) {
  EXPECT_GT(worst(kernels(), Operands(128, LowWords::none, Spread::even, 3), LowWords::none, Fault::anchor_too_small),
            1);
}

// Integers on a coarse grid: every partial sum fits, nothing is lost.
TEST_P(AnchoredDot, CoarseNumbersAreExact) {
  const std::size_t n = 128;
  Operands o(n, LowWords::none, Spread::even, 5);
  WordSource source(9);
  for (double& x : o.xh) x = static_cast<double>(source.below(4001)) - 2000;
  for (double& y : o.yh) y = static_cast<double>(source.below(4001)) - 2000;
  EXPECT_EQ(worst(kernels(), o, LowWords::none), 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, AnchoredDot, testing::Range(std::size_t{0}, all_kernels().size()),
                         [](const auto& each) { return std::string(all_kernels()[each.param].name); });

}  // namespace
}  // namespace qkcts
