// SPDX-License-Identifier: Apache-2.0
// Functions of both arithmetics, and the rounding points of QK-ROUND.
#pragma once

#include <qkcts/contract.h>

#include "adapters/cuda/platform.hpp"

namespace qkcts::cuda {

// CUDA's accurate functions, none of the fast ones: exp and exp2 within 2 ulp of the rounded result, tanh 2, log 1.
QKCTS_DEVICE float fused(float a, float b, float c) {
  return fmaf(a, b, c);
}
QKCTS_DEVICE double fused(double a, double b, double c) {
  return fma(a, b, c);
}
QKCTS_DEVICE float square_root(float x) {
  return sqrtf(x);
}
QKCTS_DEVICE double square_root(double x) {
  return sqrt(x);
}
QKCTS_DEVICE float exponential(float x) {
  return expf(x);
}
QKCTS_DEVICE double exponential(double x) {
  return exp(x);
}
QKCTS_DEVICE float power_of_base(std::uint32_t base, float x) {
  return base == QKCTS_BASE_TWO ? exp2f(x) : expf(x);
}
QKCTS_DEVICE double power_of_base(std::uint32_t base, double x) {
  return base == QKCTS_BASE_TWO ? exp2(x) : exp(x);
}
QKCTS_DEVICE float logarithm_to_base(std::uint32_t base, float x) {
  return base == QKCTS_BASE_TWO ? log2f(x) : logf(x);
}
QKCTS_DEVICE double logarithm_to_base(std::uint32_t base, double x) {
  return base == QKCTS_BASE_TWO ? log2(x) : log(x);
}
QKCTS_DEVICE float hyperbolic_tangent(float x) {
  return tanhf(x);
}
QKCTS_DEVICE double hyperbolic_tangent(double x) {
  return tanh(x);
}

template <class Real>
QKCTS_DEVICE Real infinity() {
  return static_cast<Real>(HUGE_VAL);
}

template <class Real>
QKCTS_DEVICE bool is_nan(Real x) {
  return x != x;
}

// The larger of two; a NaN on the right does not count.
template <class Real>
QKCTS_DEVICE Real larger(Real a, Real b) {
  return a < b ? b : a;
}
template <class Real>
QKCTS_DEVICE Real smaller(Real a, Real b) {
  return b < a ? b : a;
}

// QK-CLIP; a bound of 0 says that there is none, and a NaN stays one.
template <class Real>
QKCTS_DEVICE Real clamped(double bound, Real x) {
  if (bound == 0) return x;
  const Real c = static_cast<Real>(bound);
  return smaller(larger(x, -c), c);
}

struct NumberGrid {
  int precision;          // bits of the significand
  int smallest_exponent;  // of a normal number
  double largest;
  bool has_infinity;
};

QKCTS_DEVICE NumberGrid grid_of(std::uint32_t format) {
  switch (format) {
    case QKCTS_BINARY32:
      return {24, -126, 0x1.fffffep+127, true};
    case QKCTS_BINARY16:
      return {11, -14, 65504, true};
    case QKCTS_BFLOAT16:
      return {8, -126, 0x1.fep+127, true};
    case QKCTS_E4M3FN:
      return {4, -6, 448, false};
    default:  // QKCTS_E5M2
      return {3, -14, 57344, true};
  }
}

// x at a point of QK-ROUND: rounded to nearest even in the format, 0: not rounded.
template <class Real>
QKCTS_DEVICE Real rounded(std::uint32_t format, std::uint32_t saturates, Real x) {
  const double value = static_cast<double>(x);
  if (format == 0 || format == QKCTS_BINARY64 || value == 0 || is_nan(value)) return x;
  const NumberGrid grid = grid_of(format);
  double result = value;
  if (fabs(value) < HUGE_VAL) {
    // Counted in quanta of its binade the value is rounded to an integer; both scalings are exact, and a carry into the
    // next binade is the right number there.
    const int exponent = ilogb(value) > grid.smallest_exponent ? ilogb(value) : grid.smallest_exponent;
    const int quantum = exponent - (grid.precision - 1);
    result = scalbn(nearbyint(scalbn(value, -quantum)), quantum);
  }
  if (fabs(result) > grid.largest) {
    const double beyond = grid.has_infinity ? HUGE_VAL : static_cast<double>(NAN);
    result = copysign(saturates != 0 ? grid.largest : beyond, value);
  }
  return static_cast<Real>(result);
}

}  // namespace qkcts::cuda
