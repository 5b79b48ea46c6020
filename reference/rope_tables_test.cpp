// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include "reference/attention.hpp"
#include "reference/rounding.hpp"

namespace qkcts {
namespace {

// Plain MPFR at 600 bits, by a power instead of logarithm and exponential.
double twin(double theta, long rotated, long position, long i, bool sine, Format format) {
  Real power(600, static_cast<double>(2 * i));
  mpfr_div_si(power.get(), power.get(), rotated, MPFR_RNDN);
  Real angle(600, theta);
  mpfr_pow(angle.get(), angle.get(), power.get(), MPFR_RNDN);
  mpfr_si_div(angle.get(), position, angle.get(), MPFR_RNDN);
  (sine ? mpfr_sin : mpfr_cos)(angle.get(), angle.get(), MPFR_RNDN);
  return round_to_format(angle.get(), format);
}

// Tables without a scaling.
RopeTables plain_tables(double theta, std::int64_t rotated, std::int64_t first, std::int64_t count, Format format) {
  qkcts_rope rope{};
  rope.theta = theta;
  return rope_tables(rope, qkcts_rotation{}, rotated, first, count, format);
}

TEST(RopeTables, AgreeWithPlainMpfr) {
  for (const Format format : {Format::binary32, Format::binary64}) {
    for (const double theta : {1e4, 1e6, 1.5}) {
      for (const long first : {0L, 1000L, 1048570L}) {
        const RopeTables tables = plain_tables(theta, 24, first, 5, format);
        ASSERT_EQ(tables.cos.shape, (std::vector<std::int64_t>{5, 12}));
        for (long row = 0; row < 5; ++row)
          for (long i = 0; i < 12; ++i) {
            const auto at = static_cast<std::size_t>(row * 12 + i);
            EXPECT_EQ(tables.cos.value(at), twin(theta, 24, first + row, i, false, format));
            EXPECT_EQ(tables.sin.value(at), twin(theta, 24, first + row, i, true, format));
          }
      }
    }
  }
}

// Angles formed in binary32, as runtimes do, are far off at long positions: the reason why tables are inputs.
TEST(RopeTables, Binary32AnglesDiffer) {
  const RopeTables tables = plain_tables(1e4, 64, 32768, 1, Format::binary32);
  double worst = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    const float angle = 32768.0f * std::pow(10000.0f, -static_cast<float>(i) / 32.0f);
    worst = std::max(worst, std::fabs(std::cos(static_cast<double>(angle)) - tables.cos.value(i)));
  }
  EXPECT_GT(worst, 1e-4);
}

TEST(RopeTables, PositionZeroIsExact) {
  const RopeTables tables = plain_tables(1e6, 8, 0, 1, Format::binary64);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(tables.cos.value(i), 1.0);
    EXPECT_EQ(tables.sin.value(i), 0.0);
  }
}

// Frequencies by plain MPFR at 600 bits with case distinctions where the reference clamps; a wavelength instead of a
// frequency wherever that is as short.
class Frequency {
 public:
  Frequency(const qkcts_rope& rope, const qkcts_rotation& rotation, long rotated)
      : rope_(rope), rotation_(rotation), rotated_(rotated) {}

  Real at(long i) const {
    if (rotation_.scaling == QKCTS_SCALING_PROPORTIONAL &&
        static_cast<double>(i) + 1 > rotation_.factor * static_cast<double>(rotated_) / 2)
      return Real(600, 0.0);
    Real f = plain(i);
    Real slow(f);
    mpfr_div_d(slow.get(), slow.get(), rotation_.factor == 0 ? 1.0 : rotation_.factor, MPFR_RNDN);
    if (rotation_.scaling == QKCTS_SCALING_LINEAR) return slow;
    if (rotation_.scaling == QKCTS_SCALING_YARN) return mixed(slow, f, yarn_share(i));
    if (rotation_.scaling == QKCTS_SCALING_LLAMA3) return llama3(slow, f);
    return f;
  }

 private:
  Real plain(long i) const {
    Real theta(600, rope_.theta);
    if (rotation_.scaling == QKCTS_SCALING_NTK) {
      Real exponent(600, static_cast<double>(rotated_));
      mpfr_div_si(exponent.get(), exponent.get(), rotated_ - 2, MPFR_RNDN);
      Real factor(600, rotation_.factor);
      mpfr_pow(factor.get(), factor.get(), exponent.get(), MPFR_RNDN);
      mpfr_mul(theta.get(), theta.get(), factor.get(), MPFR_RNDN);
    }
    Real exponent(600, static_cast<double>(-2 * i));
    mpfr_div_si(exponent.get(), exponent.get(), rotated_, MPFR_RNDN);
    mpfr_pow(theta.get(), theta.get(), exponent.get(), MPFR_RNDN);
    return theta;
  }

  // slow + share (fast - slow)
  static Real mixed(const Real& slow, const Real& fast, const Real& share) {
    Real result(fast);
    mpfr_sub(result.get(), result.get(), slow.get(), MPFR_RNDN);
    mpfr_fma(result.get(), result.get(), share.get(), slow.get(), MPFR_RNDN);
    return result;
  }

  Real llama3(const Real& slow, const Real& f) const {
    Real turns(f);  // over L0 positions: L0 f / (2 pi)
    Real pi(600);
    mpfr_const_pi(pi.get(), MPFR_RNDN);
    mpfr_mul_d(turns.get(), turns.get(), rotation_.original_length / 2, MPFR_RNDN);
    mpfr_div(turns.get(), turns.get(), pi.get(), MPFR_RNDN);
    if (mpfr_cmp_d(turns.get(), rotation_.high) > 0) return f;
    if (mpfr_cmp_d(turns.get(), rotation_.low) < 0) return slow;
    Real width(600, rotation_.high);
    mpfr_sub_d(width.get(), width.get(), rotation_.low, MPFR_RNDN);
    mpfr_sub_d(turns.get(), turns.get(), rotation_.low, MPFR_RNDN);
    mpfr_div(turns.get(), turns.get(), width.get(), MPFR_RNDN);
    return mixed(slow, f, turns);
  }

  Real end(double turns) const {
    Real x(600);
    mpfr_const_pi(x.get(), MPFR_RNDN);
    mpfr_mul_d(x.get(), x.get(), 2 * turns, MPFR_RNDN);
    mpfr_d_div(x.get(), rotation_.original_length, x.get(), MPFR_RNDN);
    mpfr_log2(x.get(), x.get(), MPFR_RNDN);
    Real theta(600, rope_.theta);
    mpfr_log2(theta.get(), theta.get(), MPFR_RNDN);
    mpfr_div(x.get(), x.get(), theta.get(), MPFR_RNDN);
    mpfr_mul_d(x.get(), x.get(), static_cast<double>(rotated_) / 2, MPFR_RNDN);
    return x;
  }

  Real yarn_share(long i) const {
    Real a = end(rotation_.high);
    Real b = end(rotation_.low);
    if (rotation_.untruncated == 0) {
      mpfr_floor(a.get(), a.get());
      mpfr_ceil(b.get(), b.get());
    }
    if (mpfr_sgn(a.get()) < 0) mpfr_set_zero(a.get(), 1);
    if (mpfr_cmp_si(b.get(), rotated_ - 1) > 0) mpfr_set_si(b.get(), rotated_ - 1, MPFR_RNDN);
    if (mpfr_equal_p(a.get(), b.get())) mpfr_add_d(b.get(), b.get(), 0.001, MPFR_RNDN);
    Real share(600, static_cast<double>(i));
    mpfr_sub(share.get(), b.get(), share.get(), MPFR_RNDN);
    mpfr_sub(b.get(), b.get(), a.get(), MPFR_RNDN);
    mpfr_div(share.get(), share.get(), b.get(), MPFR_RNDN);  // (b - i) / (b - a)
    if (mpfr_sgn(share.get()) < 0) mpfr_set_zero(share.get(), 1);
    if (mpfr_cmp_ui(share.get(), 1) > 0) mpfr_set_ui(share.get(), 1, MPFR_RNDN);
    return share;
  }

  qkcts_rope rope_;
  qkcts_rotation rotation_;
  long rotated_;
};

std::size_t wrong_entries(const RopeTables& tables, const Frequency& twin, double factor, long first, Format format) {
  std::size_t wrong = 0;
  const long pairs = static_cast<long>(tables.cos.shape[1]);
  for (long i = 0; i < pairs; ++i) {
    const Real f = twin.at(i);
    for (long row = 0; row < static_cast<long>(tables.cos.shape[0]); ++row) {
      Real angle(f);
      mpfr_mul_si(angle.get(), angle.get(), first + row, MPFR_RNDN);
      Real cos(600), sin(600);
      mpfr_sin_cos(sin.get(), cos.get(), angle.get(), MPFR_RNDN);
      for (Real* x : {&cos, &sin}) mpfr_mul_d(x->get(), x->get(), factor, MPFR_RNDN);
      const auto at = static_cast<std::size_t>(row * pairs + i);
      wrong += tables.cos.value(at) == round_to_format(cos.get(), format) ? 0 : 1;
      wrong += tables.sin.value(at) == round_to_format(sin.get(), format) ? 0 : 1;
    }
  }
  return wrong;
}

struct Scaled {
  qkcts_rope rope{};
  qkcts_rotation rotation{};
  long rotated = 64;
};

// Published settings and constructed ones, of every scaling.
std::vector<Scaled> scalings() {
  const auto make = [](std::uint32_t scaling, double theta, long rotated, double factor, double length, double low,
                       double high, double attention_factor, std::uint32_t untruncated) {
    Scaled s;
    s.rope.theta = theta;
    s.rotated = rotated;
    s.rotation.scaling = scaling;
    s.rotation.factor = factor;
    s.rotation.original_length = length;
    s.rotation.low = low;
    s.rotation.high = high;
    s.rotation.attention_factor = attention_factor;
    s.rotation.untruncated = untruncated;
    return s;
  };
  return {make(QKCTS_SCALING_LINEAR, 1e6, 64, 8, 0, 0, 0, 0, 0),
          make(QKCTS_SCALING_NTK, 1e4, 64, 2.5, 0, 0, 0, 0, 0),
          make(QKCTS_SCALING_YARN, 1e4, 64, 40, 4096, 1, 32, 0, 0),
          make(QKCTS_SCALING_YARN, 1e6, 64, 4, 32768, 1, 32, 1.1386294361119891, 0),
          make(QKCTS_SCALING_YARN, 150000, 64, 32, 4096, 1, 32, 1.3465735902799727, 1),
          make(QKCTS_SCALING_YARN, 1000, 8, 8, 64, 1, 32, 1.25, 0),
          make(QKCTS_SCALING_YARN, 2, 8, 8, 1e6, 1, 32, 1.25, 1),  // both ends beyond the last pair
          make(QKCTS_SCALING_YARN, 1000, 8, 8, 2, 1, 32, 0, 0),    // both ends before the first
          make(QKCTS_SCALING_LLAMA3, 5e5, 64, 8, 8192, 1, 4, 0, 0),
          make(QKCTS_SCALING_LLAMA3, 1000, 16, 8, 64, 1, 4, 0, 0),
          make(QKCTS_SCALING_PROPORTIONAL, 1e6, 64, 0.25, 0, 0, 0, 0, 0),
          make(QKCTS_SCALING_PROPORTIONAL, 1e6, 64, 0.3, 0, 0, 0, 0, 0),
          make(QKCTS_SCALING_NONE, 1e4, 64, 0, 0, 0, 0, 0.7, 0)};
}

TEST(RopeTables, ScalingsAgreeWithPlainMpfr) {
  for (const Scaled& s : scalings()) {
    for (const Format format : {Format::binary32, Format::binary64}) {
      for (const long first : {0L, 100000L}) {
        const RopeTables tables = rope_tables(s.rope, s.rotation, s.rotated, first, 3, format);
        const double factor = s.rotation.attention_factor == 0 ? 1 : s.rotation.attention_factor;
        EXPECT_EQ(wrong_entries(tables, Frequency(s.rope, s.rotation, s.rotated), factor, first, format), 0u)
            << "scaling " << s.rotation.scaling << " theta " << s.rope.theta << " from " << first;
      }
    }
  }
}

// The twin notices a neighbour: each number that a scaling uses, moved a little, and the other way to round the ends.
TEST(RopeTables, TheTwinNoticesANeighbouringScaling) {
  for (const Scaled& s : scalings()) {
    const double factor = s.rotation.attention_factor == 0 ? 1 : s.rotation.attention_factor;
    const RopeTables tables = rope_tables(s.rope, s.rotation, s.rotated, 100, 3, Format::binary64);
    const auto wrong_under = [&](auto change) {
      Scaled other = s;
      change(other);
      return wrong_entries(tables, Frequency(other.rope, other.rotation, other.rotated), factor, 100, Format::binary64);
    };
    EXPECT_GT(wrong_under([](Scaled& x) { x.rope.theta *= 1 + 0x1p-40; }), 0u);
    EXPECT_GT(
        wrong_entries(tables, Frequency(s.rope, s.rotation, s.rotated), factor * (1 + 0x1p-45), 100, Format::binary64),
        0u);
    if (s.rotation.scaling == QKCTS_SCALING_NONE) continue;
    const bool proportional = s.rotation.scaling == QKCTS_SCALING_PROPORTIONAL;
    EXPECT_GT(wrong_under([&](Scaled& x) { x.rotation.factor *= proportional ? 2 : 1 + 0x1p-40; }), 0u);
    EXPECT_GT(wrong_under([](Scaled& x) { x.rotation.scaling = QKCTS_SCALING_NONE; }), 0u);
  }
  Scaled yarn = scalings()[2];
  const RopeTables tables = rope_tables(yarn.rope, yarn.rotation, yarn.rotated, 100, 3, Format::binary64);
  yarn.rotation.untruncated = 1;
  EXPECT_GT(wrong_entries(tables, Frequency(yarn.rope, yarn.rotation, yarn.rotated), 1, 100, Format::binary64), 0u);
  Scaled llama = scalings()[8];
  const RopeTables others = rope_tables(llama.rope, llama.rotation, llama.rotated, 100, 3, Format::binary64);
  llama.rotation.high = 3.9;
  EXPECT_GT(wrong_entries(others, Frequency(llama.rope, llama.rotation, llama.rotated), 1, 100, Format::binary64), 0u);
}

TEST(RopeTables, PairsThatStayHaveTheFactorExactly) {
  qkcts_rope rope{};
  rope.theta = 1e4;
  qkcts_rotation rotation{};
  rotation.scaling = QKCTS_SCALING_PROPORTIONAL;
  rotation.factor = 0.5;
  rotation.attention_factor = 1.1;
  const RopeTables tables = rope_tables(rope, rotation, 8, 1000, 1, Format::binary64);
  EXPECT_NE(tables.sin.value(1), 0.0);
  for (const std::size_t i : {2u, 3u}) {
    EXPECT_EQ(tables.cos.value(i), 1.1);
    EXPECT_EQ(tables.sin.value(i), 0.0);
  }
}

TEST(RopeTables, BadRequestsAreRefused) {
  EXPECT_THROW(plain_tables(1e4, 7, 0, 1, Format::binary32), InputError);
  EXPECT_THROW(plain_tables(0.0, 8, 0, 1, Format::binary32), InputError);
  EXPECT_THROW(plain_tables(1e4, 8, -1, 1, Format::binary32), InputError);
  EXPECT_THROW(plain_tables(1e4, 8, 0, std::int64_t{1} << 50, Format::binary32), InputError);
  qkcts_rope rope{};
  rope.theta = 1e4;
  qkcts_rotation rotation{};
  rotation.scaling = QKCTS_SCALING_NTK;
  rotation.factor = 2;
  EXPECT_THROW(rope_tables(rope, rotation, 2, 0, 1, Format::binary32), InputError);  // exponent R / (R - 2)
  rotation.factor = -1;
  EXPECT_THROW(rope_tables(rope, rotation, 8, 0, 1, Format::binary32), InputError);
  rope.rotated = 16;
  EXPECT_THROW(rope_tables(rope, qkcts_rotation{}, 8, 0, 1, Format::binary32), InputError);  // more than the head
}

}  // namespace
}  // namespace qkcts
