// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "reference/double_word_distance.hpp"
#include "reference/double_word_kernels.hpp"

namespace qkcts {
namespace {

struct Columns {
  explicit Columns(std::size_t n) : h(padded(n)), l(padded(n)), error(padded(n)) {}
  Words words() { return {h.data(), l.data()}; }
  Word at(std::size_t i) const { return {h[i], l[i]}; }
  std::vector<double> h, l, error;
};

constexpr std::size_t count = 20000;

// Arguments of every magnitude from 2^-40 up, and some beside the points where a table entry changes.
Columns arguments(double largest, bool negative_too) {
  WordSource source(11);
  Columns x(count);
  for (std::size_t i = 0; i < count; ++i) {
    Word w = source.word(0);
    const int least = -40;
    const int top = std::ilogb(largest);
    const auto scale =
        static_cast<int>(source.below(static_cast<std::uint64_t>(top) - static_cast<std::uint64_t>(least) + 1)) + least;
    w = {std::ldexp(w.h, scale), std::ldexp(w.l, scale)};
    if (source.below(4) == 0) {
      const auto step = static_cast<double>(source.below(static_cast<std::uint64_t>(largest * 369)));
      w.h = (step + 0.5) * 0.00270760617;
      w.l = std::ldexp(w.h, -54) * source.unit();
    }
    if (std::fabs(w.h) > largest) w.h = largest, w.l = 0;
    if (!negative_too && w.h < 0) w = {-w.h, -w.l};
    x.h[i] = w.h;
    x.l[i] = w.l;
  }
  return x;
}

struct Seen {
  double worst = 0;        // error / bound
  double worst_units = 0;  // relative error in u^2
};
Seen compare(const Columns& x, const Columns& y, bool is_relative,
             const std::function<void(Real&, const Real&)>& exact) {
  Seen seen;
  for (std::size_t i = 0; i < count; ++i) {
    Real z(400);
    const Real argument = exactly(x.at(i), 200);
    exact(z, argument);
    const double bound = is_relative ? y.error[i] * std::fabs(y.h[i]) : y.error[i];
    const double d = distance(y.at(i), z.get());
    if (d == 0) continue;
    seen.worst = std::max(seen.worst, d / bound);
    seen.worst_units = std::max(seen.worst_units, relative_distance(y.at(i), z.get()));
  }
  return seen;
}

class DoubleWordFunction : public testing::TestWithParam<std::size_t> {
 protected:
  const Kernels& kernels() const { return all_kernels()[GetParam()]; }
};

TEST_P(DoubleWordFunction, Exponential) {
  const Columns x = arguments(600, true);
  Columns y(count);
  kernels().exponentials({x.h.data(), x.l.data()}, count, y.words(), y.error.data());
  const Seen seen = compare(x, y, true, [](Real& z, const Real& a) { mpfr_exp(z.get(), a.get(), MPFR_RNDN); });
  EXPECT_LT(seen.worst, 1);
  EXPECT_GT(seen.worst, 0.4);
}

TEST_P(DoubleWordFunction, HyperbolicTangent) {
  const Columns x = arguments(60, true);
  Columns y(count);
  kernels().tangents({x.h.data(), x.l.data()}, count, y.words(), y.error.data());
  const Seen seen = compare(x, y, false, [](Real& z, const Real& a) { mpfr_tanh(z.get(), a.get(), MPFR_RNDN); });
  EXPECT_LT(seen.worst, 1);
  EXPECT_GT(seen.worst, 0.4);
}

TEST_P(DoubleWordFunction, LogarithmOfOnePlus) {
  const Columns w = arguments(1e6, false);
  Columns y(count);
  std::vector<double> guess(padded(count));
  for (std::size_t i = 0; i < count; ++i) guess[i] = std::log1p(w.h[i]);
  kernels().log_one_plus({w.h.data(), w.l.data()}, guess.data(), count, y.words(), y.error.data());
  const Seen seen = compare(w, y, false, [](Real& z, const Real& a) { mpfr_log1p(z.get(), a.get(), MPFR_RNDN); });
  EXPECT_LT(seen.worst, 1);
  EXPECT_GT(seen.worst, 0.3);
}

// A guess from a bad library is refused, not trusted.
TEST_P(DoubleWordFunction, LogarithmRefusesABadGuess) {
  Columns w(1), y(1);
  w.h[0] = 0.75;
  const std::vector<double> guess(padded(1), std::log1p(0.75) * (1 + 0x1p-40));
  kernels().log_one_plus({w.h.data(), w.l.data()}, guess.data(), 1, y.words(), y.error.data());
  EXPECT_TRUE(std::isinf(y.error[0]));
}

// The low word of the argument decides beyond binary64: the check of the exponential would notice its loss.
TEST_P(DoubleWordFunction, ForgottenLowWordIsNoticed) {
  Columns x = arguments(600, true);
  Columns y(count);
  const std::vector<double> zeros(padded(count));
  kernels().exponentials({x.h.data(), zeros.data()}, count, y.words(), y.error.data());
  const Seen seen = compare(x, y, true, [](Real& z, const Real& a) { mpfr_exp(z.get(), a.get(), MPFR_RNDN); });
  EXPECT_GT(seen.worst, 1000);
}

INSTANTIATE_TEST_SUITE_P(Targets, DoubleWordFunction, testing::Range(std::size_t{0}, all_kernels().size()),
                         [](const auto& each) { return std::string(all_kernels()[each.param].name); });

}  // namespace
}  // namespace qkcts
