// SPDX-License-Identifier: Apache-2.0
#include "conformance/sound_math.hpp"

#include <array>

#include "conformance/ln_2_parts.hpp"

namespace qkcts {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double outward = 1 + sound_margin;

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

// One row after another asks for the same few: each thread remembers some.
double growth_upper(double n, double u) {
  struct Growth {
    double n = 0, u = 0, value = 0;
  };
  thread_local std::array<Growth, 1024> known;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(n) ^ (std::bit_cast<std::uint64_t>(u) >> 7);
  Growth& growth = known[bits * 0x9e3779b97f4a7c15u >> 54];
  if (growth.n != n || growth.u != u) {
    growth = {n, u, expm1_upper(n * u * (1 + 0x1p-52))};
  }
  return growth.value;
}

}  // namespace qkcts
