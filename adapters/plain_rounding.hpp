// SPDX-License-Identifier: Apache-2.0
// The part of plain_attention that rounds: the number of a point's format that is nearest to x.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <qkcts/contract.h>

namespace qkcts {

// x less what is over after whole quanta of its binade: std::remainder takes the nearest multiple, the even one on
// ties. `point` 0 is none.
inline double plain_rounded(const qkcts_contract& terms, std::uint32_t point, double x) {
  struct {
    int bits, smallest_exponent;
    double largest;
  } const formats[] = {
      {}, {}, {24, -126, 0x1.fffffep+127}, {11, -14, 65504}, {8, -126, 0x1.fep+127}, {4, -6, 448}, {3, -14, 57344}};
  if (point == 0 || point == QKCTS_BINARY64 || !std::isfinite(x) || x == 0) return x;
  const auto& format = formats[point];
  int exponent = 0;
  std::frexp(x, &exponent);
  const double quantum = std::ldexp(1, std::max(exponent - 1, format.smallest_exponent) - format.bits + 1);
  const double y = x - std::remainder(x, quantum);
  if (std::fabs(y) <= format.largest) return y;
  if (terms.rounding.saturate != 0) return std::copysign(format.largest, x);
  return point == QKCTS_E4M3FN ? std::numeric_limits<double>::quiet_NaN() : y * std::numeric_limits<double>::infinity();
}

}  // namespace qkcts
