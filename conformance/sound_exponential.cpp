// SPDX-License-Identifier: Apache-2.0
// Exponentials of sound_math.hpp, one number or many.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "conformance/lanes.hpp"
#include "conformance/ln_2_parts.hpp"
#include "conformance/sound_math.hpp"

#if QKCTS_WIDE_LANES
#include <immintrin.h>
#endif

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double outward = 1 + sound_margin;
constexpr double inward = 1 - sound_margin;
constexpr double inverse_ln2 = 0x1.71547652b82fep+0;

// (e^r - 1) / r for |r| <= 0.36 by 14 terms of its series: the rest is below 0.36^14 / 15! < 2^-60. Horner from the
// smallest term: every step halves the error of the last, so rounding stays below 2^-51 relative (the value is > 0.8).
double expm1_over(double r) {
  double sum = 1;
  for (int k = 14; k >= 2; --k) {
    sum = 1 + r * sum / k;
  }
  return sum;
}

// e^x for -708 <= x <= 709. r = x - k ln 2 has absolute error below 2^-52 |r| + 2^-53 |k ln2_low| < 2^-52, which is the
// relative error it causes; the rest adds less than 2^-50.
double exp_middle(double x) {
  const double k = std::floor(x * inverse_ln2 + 0.5);
  const double r = (x - k * ln2_high) - k * ln2_low;
  // -1022 <= k <= 1023: 2^k is a normal number, and the product is rounded once, as by ldexp, at less cost.
  const auto power = std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::int64_t>(k) + 1023) << 52);
  return (1 + r * expm1_over(r)) * power;
}

// The same of several numbers: the operations of one wait for each other, those of several do not. More at a time with
// wider lanes.
constexpr std::size_t at_once = 8, more_at_once = 32, most_at_once = 64;

using PairLanes = LanesOf<2>::Numbers;

struct Pairs {
  std::array<PairLanes, at_once / 2> x{};

  void expm1_over(Pairs& sum) const {
    sum.x.fill(PairLanes{1, 1});
    for (int k = 14; k >= 2; --k) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        sum.x[i] = 1 + x[i] * sum.x[i] / k;
      }
    }
  }
  void expm1() {
    Pairs sum;
    expm1_over(sum);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = x[i] * sum.x[i] * outward;
    }
  }
  void exp();
};

// k = floor(x / ln 2 + 1/2) and 2^k. (A conversion goes towards 0.)
struct Whole {
  double k, power;
};

Whole whole_part(double x) {
  const double y = x * inverse_ln2 + 0.5;
  const auto truncated = static_cast<std::int64_t>(y);
  const std::int64_t k = truncated - (static_cast<double>(truncated) > y ? 1 : 0);
  return {static_cast<double>(k), std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52)};
}

void Pairs::exp() {
  Pairs r, power, sum;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Whole first = whole_part(x[i][0]), second = whole_part(x[i][1]);
    const PairLanes k{first.k, second.k};
    power.x[i] = PairLanes{first.power, second.power};
    r.x[i] = (x[i] - k * ln2_high) - k * ln2_low;
  }
  r.expm1_over(sum);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = (1 + r.x[i] * sum.x[i]) * power.x[i] * outward;
  }
}

#if QKCTS_WIDE_LANES
constexpr std::array<double, 15> inverses = {0.0,     1.0,     1.0 / 2,  1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6, 1.0 / 7,
                                             1.0 / 8, 1.0 / 9, 1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14};

// x / k without the divider, rounded as by it, for 3 <= k <= 14 that is no power of two and x = 0 or 2^-600 < |x| <
// 2^600. Let t = x/k, y = RN(1/k) and ulp be that of t. q = RN(x y) is off t by two roundings, less than 2.01 ulp. q is
// a multiple of ulp/2, and so is x - q k, which is below 57 of them: the fused product gives it exactly. q + (x - q k)
// y is off t by |t - q| 2^-53 < 2^-51 ulp. And no t is that close to where rounding changes: with k = 2^i j, j >= 3
// odd, and m an odd multiple of ulp/2, k m is an odd multiple of 2^(i-1) ulp, but x > 2^(i+1) t is a multiple of
// 2^(i+1) ulp; so they differ by 2^(i-1) ulp at least, and t and m by ulp/28. (The boundary below the power of two
// under t is ulp/4 away.) So the last fused product rounds as t does.
QKCTS_WIDE inline __m256d quotient(__m256d x, __m256d k, __m256d y) {
  const __m256d q = _mm256_mul_pd(x, y);
  return _mm256_fmadd_pd(_mm256_fnmadd_pd(q, k, x), y, q);
}

// Of 4 * parts numbers.
template <std::size_t parts>
struct Wide {
  __m256d part[parts];

  QKCTS_WIDE void read(const double* from) {
    for (std::size_t i = 0; i < parts; ++i) part[i] = _mm256_loadu_pd(from + 4 * i);
  }
  QKCTS_WIDE void expm1_over(Wide& sum) const {
    const __m256d one = _mm256_set1_pd(1);
    for (__m256d& of_part : sum.part) of_part = one;
    for (int k = 14; k >= 2; --k) {
      const __m256d divisor = _mm256_set1_pd(k), inverse = _mm256_set1_pd(inverses[static_cast<std::size_t>(k)]);
      const bool is_power_of_two = (k & (k - 1)) == 0;
      for (std::size_t i = 0; i < parts; ++i) {
        const __m256d x = _mm256_mul_pd(part[i], sum.part[i]);
        sum.part[i] = _mm256_add_pd(one, is_power_of_two ? _mm256_mul_pd(x, inverse) : quotient(x, divisor, inverse));
      }
    }
  }
};

template <std::size_t parts>
QKCTS_WIDE void expm1_wide(double* t) {
  Wide<parts> x, sum;
  x.read(t);
  x.expm1_over(sum);
  const __m256d moved = _mm256_set1_pd(outward);
  for (std::size_t i = 0; i < parts; ++i) {
    _mm256_storeu_pd(t + 4 * i, _mm256_mul_pd(_mm256_mul_pd(x.part[i], sum.part[i]), moved));
  }
}

// 2^k for whole -1022 <= k <= 1023.
QKCTS_WIDE inline __m256d power_of_two(__m256d k) {
  const __m256i whole = _mm256_cvtepi32_epi64(_mm256_cvttpd_epi32(k));
  return _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_add_epi64(whole, _mm256_set1_epi64x(1023)), 52));
}

template <std::size_t parts>
QKCTS_WIDE void exp_wide(double* x) {
  Wide<parts> k, r, sum;
  r.read(x);
  for (std::size_t i = 0; i < parts; ++i) {
    const __m256d value = r.part[i];
    k.part[i] = _mm256_floor_pd(_mm256_add_pd(_mm256_mul_pd(value, _mm256_set1_pd(inverse_ln2)), _mm256_set1_pd(0.5)));
    r.part[i] = _mm256_sub_pd(_mm256_sub_pd(value, _mm256_mul_pd(k.part[i], _mm256_set1_pd(ln2_high))),
                              _mm256_mul_pd(k.part[i], _mm256_set1_pd(ln2_low)));
  }
  r.expm1_over(sum);
  for (std::size_t i = 0; i < parts; ++i) {
    const __m256d exponential = _mm256_add_pd(_mm256_set1_pd(1), _mm256_mul_pd(r.part[i], sum.part[i]));
    _mm256_storeu_pd(x + 4 * i,
                     _mm256_mul_pd(_mm256_mul_pd(exponential, power_of_two(k.part[i])), _mm256_set1_pd(outward)));
  }
}

// The same of 64 numbers.
struct Widest {
  static constexpr std::size_t count = most_at_once / 8;
  __m512d part[count];

  QKCTS_WIDEST void read(const double* from) {
    for (std::size_t i = 0; i < count; ++i) part[i] = _mm512_loadu_pd(from + 8 * i);
  }
  QKCTS_WIDEST void expm1_over(Widest& sum) const {
    const __m512d one = _mm512_set1_pd(1);
    for (__m512d& of_part : sum.part) of_part = one;
    for (int k = 14; k >= 2; --k) {
      const __m512d divisor = _mm512_set1_pd(k), inverse = _mm512_set1_pd(inverses[static_cast<std::size_t>(k)]);
      const bool is_power_of_two = (k & (k - 1)) == 0;
      for (std::size_t i = 0; i < count; ++i) {
        const __m512d x = _mm512_mul_pd(part[i], sum.part[i]);
        __m512d q = _mm512_mul_pd(x, inverse);
        if (!is_power_of_two) {  // as quotient()
          q = _mm512_fmadd_pd(_mm512_fnmadd_pd(q, divisor, x), inverse, q);
        }
        sum.part[i] = _mm512_add_pd(one, q);
      }
    }
  }
};

QKCTS_WIDEST void expm1_widest(double* t) {
  Widest x, sum;
  x.read(t);
  x.expm1_over(sum);
  const __m512d moved = _mm512_set1_pd(outward);
  for (std::size_t i = 0; i < Widest::count; ++i) {
    _mm512_storeu_pd(t + 8 * i, _mm512_mul_pd(_mm512_mul_pd(x.part[i], sum.part[i]), moved));
  }
}

QKCTS_WIDEST void exp_widest(double* x) {
  constexpr __mmask8 every_lane = 0xff;  // the forms without a mask begin with a register that g++ 12 takes for unset
  Widest k, r, sum;
  r.read(x);
  for (std::size_t i = 0; i < Widest::count; ++i) {
    const __m512d value = r.part[i];
    const __m512d shifted = _mm512_add_pd(_mm512_mul_pd(value, _mm512_set1_pd(inverse_ln2)), _mm512_set1_pd(0.5));
    k.part[i] = _mm512_maskz_roundscale_pd(every_lane, shifted, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    r.part[i] = _mm512_sub_pd(_mm512_sub_pd(value, _mm512_mul_pd(k.part[i], _mm512_set1_pd(ln2_high))),
                              _mm512_mul_pd(k.part[i], _mm512_set1_pd(ln2_low)));
  }
  r.expm1_over(sum);
  for (std::size_t i = 0; i < Widest::count; ++i) {
    const __m512i biased = _mm512_add_epi64(_mm512_cvtpd_epi64(k.part[i]), _mm512_set1_epi64(1023));
    const __m512d power = _mm512_castsi512_pd(_mm512_maskz_slli_epi64(every_lane, biased, 52));
    const __m512d exponential = _mm512_add_pd(_mm512_set1_pd(1), _mm512_mul_pd(r.part[i], sum.part[i]));
    _mm512_storeu_pd(x + 8 * i, _mm512_mul_pd(_mm512_mul_pd(exponential, power), _mm512_set1_pd(outward)));
  }
}
#endif

template <class Covers>
[[gnu::always_inline]] inline std::uint64_t uncovered_of(std::size_t count, const double* __restrict x,
                                                         const Covers& covers) {
  std::uint64_t others = 0;
  for (std::size_t i = 0; i < count; ++i) {
    others += covers(x[i]) ? 0 : 1;
  }
  return others;
}

// `together` where `covers` every number of a group of `count` (0 stands for those beyond the end), else
// `otherwise(group)`.
template <std::size_t count, class Covers, class Together, class Otherwise>
void of_groups(std::span<double> x, const Covers& covers, const Together& together, const Otherwise& otherwise) {
  for (std::size_t start = 0; start < x.size(); start += count) {
    const std::span<double> group = x.subspan(start, std::min(count, x.size() - start));
    std::uint64_t others = 0;
    in_widest_lanes([=, size = group.size(), first = group.data(), to = &others]()
                        QKCTS_STRAIGHT { *to = uncovered_of(size, first, covers); });
    if (others != 0) {
      otherwise(group);
    } else if (group.size() == count) {
      together(group.data());
    } else {
      std::array<double, count> values{};
      std::copy(group.begin(), group.end(), values.begin());
      together(values.data());
      std::copy_n(values.begin(), group.size(), group.begin());
    }
  }
}

template <class Covers, class Together, class Single>
void of_each(std::span<double> x, const Covers& covers, const Together& together, const Single& single) {
  of_groups<at_once>(x, covers, together, [&](std::span<double> group) {
    std::transform(group.begin(), group.end(), group.begin(), single);
  });
}

// Nothing on the way to the exponential of such a number, quotients by 14 included, is near the ends of the range.
bool is_plain(double x) {
  return (std::fabs(x) > 0x1p-500) | (x == 0);
}

}  // namespace

double exp_upper(double x) {
  if (!(x <= 709)) {
    return infinity;
  }
  return x < -708 ? 0x1p-1021 : exp_middle(x) * outward;
}

double exp_lower(double x) {
  if (!(x >= -708)) {
    return 0;
  }
  return exp_middle(x > 709 ? 709 : x) * inward;
}

double expm1_upper(double t) {
  if (!(t <= 709)) {
    return infinity;
  }
  // Above 0.34 the subtraction costs at most a factor of 3.5 in relative error: still below 2^-47.
  return (t < 0.34 ? t * expm1_over(t) : exp_middle(t) - 1) * outward;
}

void exp_upper(std::span<double> x) {
  const auto covers = [](double value) { return (value >= -708) & (value <= 709) & is_plain(value); };
  const auto single = [](double value) { return exp_upper(value); };
#if QKCTS_WIDE_LANES
  const auto few = [&](std::span<double> group) { of_each(group, covers, exp_wide<at_once / 4>, single); };
  const auto wide = [&](std::span<double> group) {
    of_groups<more_at_once>(group, covers, exp_wide<more_at_once / 4>, few);
  };
  if (lane_count() == 8) {
    return of_groups<most_at_once>(x, covers, exp_widest, wide);
  }
  if (lane_count() == 4) {
    return wide(x);
  }
#endif
  const auto together = [](double* values) {
    Pairs pairs;
    std::memcpy(&pairs.x, values, sizeof pairs.x);
    pairs.exp();
    std::memcpy(values, &pairs.x, sizeof pairs.x);
  };
  of_each(x, covers, together, single);
}

void expm1_upper(std::span<double> t) {
  const auto covers = [](double value) { return (value < 0.34) & is_plain(value); };
  const auto single = [](double value) { return expm1_upper(value); };
#if QKCTS_WIDE_LANES
  const auto few = [&](std::span<double> group) { of_each(group, covers, expm1_wide<at_once / 4>, single); };
  const auto wide = [&](std::span<double> group) {
    of_groups<more_at_once>(group, covers, expm1_wide<more_at_once / 4>, few);
  };
  if (lane_count() == 8) {
    return of_groups<most_at_once>(t, covers, expm1_widest, wide);
  }
  if (lane_count() == 4) {
    return wide(t);
  }
#endif
  const auto together = [](double* values) {
    Pairs pairs;
    std::memcpy(&pairs.x, values, sizeof pairs.x);
    pairs.expm1();
    std::memcpy(values, &pairs.x, sizeof pairs.x);
  };
  of_each(t, covers, together, single);
}

}  // namespace qkcts
