// SPDX-License-Identifier: Apache-2.0
#include "conformance/sound_math.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double outward = 1 + sound_margin;
constexpr double inward = 1 - sound_margin;

// ln 2 in two parts; the high part has 32 bits, so k * ln2_high is exact for |k| < 2^20. Together they are off by less
// than 2^-86.
constexpr double ln2_high = 0x1.62e42feep-1;
constexpr double ln2_low = 0x1.a39ef35793c76p-33;
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

// 2 atanh(s) for |s| <= 0.1716 (arguments from sqrt(1/2) to sqrt(2)): 13 terms, the rest is below 0.1716^26/27 < 2^-70.
double twice_atanh(double s) {
  const double square = s * s;
  double sum = 0;
  for (int k = 25; k >= 3; k -= 2) {
    sum = (sum + 1.0 / k) * square;
  }
  return 2 * (s + s * sum);
}

// ln x for normal x > 0. k ln 2 and the second part cancel at most by half, so the relative error stays below 2^-49.
double log_middle(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0x1.6a09e667f3bcdp-1) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);
  return exponent * ln2_high + (twice_atanh(s) + exponent * ln2_low);
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

double log1p_upper(double x) {
  if (x == infinity) {
    return infinity;
  }
  // ln(1 + x) = 2 atanh(x / (2 + x)); for x >= 0.4 the rounding of 1 + x is 2^-53 against ln 1.4 > 0.33.
  return (x < 0.4 ? twice_atanh(x / (2 + x)) : log_middle(1 + x)) * outward;
}

double log_upper(double x) {
  if (x == infinity) {
    return infinity;
  }
  return x > 1 ? log_middle(x) * outward + 0x1p-60 : 0;
}

double minus_log1m_upper(double y) {
  if (!(y < 1)) {
    return infinity;
  }
  // 1/(1 - y) = 1 + y/(1 - y). Where 1 - y is inexact it is so by at most 2^-54.
  const double rest = 1 - y - 0x1p-53 * y;
  return rest > 0 ? log1p_upper(y / rest) : infinity;
}

CircleBound circle_upper(double angle, double slack) {
  if (!(angle < 0x1p20)) {
    return {};
  }
  // angle = k pi/2 + r, |r| < 0.79. pi/2 in two parts, the first of 33 bits: k times it is exact, and r is off by less
  // than 2^-50.
  constexpr double half_pi_high = 0x1.921fb544p+0;
  constexpr double half_pi_low = 0x1.0b4611a626331p-34;
  const double k = std::floor(angle * 0x1.45f306dc9c883p-1 + 0.5);
  const double r = (angle - k * half_pi_high) - k * half_pi_low;
  const double square = r * r;
  // Series to r^19 and r^18: the rest is below 0.79^20 / 20! < 2^-67. Horner halves the error of the last term at
  // least.
  double cosine = 1, sine = 1;
  for (int n = 18; n >= 2; n -= 2) {
    cosine = 1 - square / (n * (n - 1)) * cosine;
    sine = 1 - square / (n * (n + 1)) * sine;
  }
  const double near = std::fabs(cosine) * outward;
  const double far = std::fabs(r * sine) * outward;
  const double blur = slack + (k > 0 ? 0x1p-49 : 0);
  const bool even = k - 2 * std::floor(k / 2) == 0;
  const auto bound = [&](double value) { return value + blur < 1 ? value + blur : 1.0; };
  return even ? CircleBound{bound(near), bound(far)} : CircleBound{bound(far), bound(near)};
}

double growth_upper(double n, double u) {
  return expm1_upper(n * u * (1 + 0x1p-52));
}

float binary32_upper(double x) {
  if (x > static_cast<double>(std::numeric_limits<float>::max())) {
    return std::numeric_limits<float>::infinity();
  }
  const auto nearest = static_cast<float>(x);
  const bool below = static_cast<double>(nearest) < x;
  if (nearest < 0) {
    return below ? std::nextafter(nearest, std::numeric_limits<float>::infinity()) : nearest;
  }
  // The next number has the next pattern. No branch: which way it would go is anybody's guess.
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) + static_cast<std::uint32_t>(below));
}

}  // namespace qkcts
