// SPDX-License-Identifier: Apache-2.0
// Elementary functions for error bounds: the same bits on every machine, and one-sided.
//
// Only + - * / sqrt, floor and scaling by powers of two on binary64 in a fixed order are used (IEEE 754 requires all of
// them exactly rounded), so no math library can change a bound. Each function is within 2^-46 relative of the exact
// value before its result is moved outward by 2^-44: `_upper` never lies below, `_lower` never above the exact value.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace qkcts {

// Relative distance by which results are moved outward.
constexpr double sound_margin = 0x1p-44;

// e^x. Upper: infinity above 709, at least 2^-1021 everywhere. Lower: 0 below -708, at most e^709.
double exp_upper(double x);
double exp_lower(double x);

double expm1_upper(double t);  // e^t - 1 for t >= 0, relative; infinity above 709
// The same of many numbers, in place: the same bits, in a fraction of the time.
void exp_upper(std::span<double> x);
void expm1_upper(std::span<double> t);

double log1p_upper(double x);  // ln(1 + x) for x >= 0, relative
double log_upper(double x);    // ln x for x >= 1 (0 for x < 1), absolute error 2^-46 near 1

// -ln(1 - y) for 0 <= y, relative; infinity for y >= 1.
double minus_log1m_upper(double y);

// |cos| and |sin| of an angle >= 0 that is known to within `slack`, from above; both 1 for angles from 2^20 on.
struct CircleBound {
  double cos = 1;
  double sin = 1;
};
CircleBound circle_upper(double angle, double slack);

// (1 + u)^n - 1 <= e^(n u) - 1: n roundings of relative size u met by one term.
double growth_upper(double n, double u);

// (1 + a)(1 + b) - 1 without cancellation. All bounds of roundings are combined by it.
constexpr double joined(double a, double b) {
  return a + b + a * b;
}
template <typename... More>
constexpr double joined(double a, double b, More... more) {
  return joined(joined(a, b), more...);
}

// A sum of `terms` non-negative terms, each with a handful of roundings, moved above (below) its exact value.
constexpr double sum_upper(double sum, double terms) {
  return sum * (1 + (terms + 16) * 0x1p-52);
}
constexpr double sum_lower(double sum, double terms) {
  return sum * (1 - (terms + 16) * 0x1p-52);
}

// The least binary32 number that is not below x >= 0; infinity above the largest.
inline float binary32_upper(double x) {
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
