// SPDX-License-Identifier: Apache-2.0
#include "adapters/scalar/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <qkcts/contract.h>

namespace qkcts::scalar {

namespace {

struct Grid {
  int precision;          // bits of the significand
  int smallest_exponent;  // of a normal number
  double largest;
};

Grid grid_of(std::uint32_t format) {
  switch (format) {
    case QKCTS_BINARY32:
      return {24, -126, 0x1.fffffep+127};
    case QKCTS_BINARY16:
      return {11, -14, 65504};
    case QKCTS_BFLOAT16:
      return {8, -126, 0x1.fep+127};
    case QKCTS_E4M3FN:
      return {4, -6, 448};
    default:  // QKCTS_E5M2
      return {3, -14, 57344};
  }
}

}  // namespace

double nearest(std::uint32_t format, Overflow overflow, double value) {
  if (format == QKCTS_BINARY64 || std::isnan(value) || value == 0) return value;
  const Grid grid = grid_of(format);
  double rounded = value;
  if (std::isfinite(value)) {
    // Counted in quanta of the binade the value is an integer of the format after rounding, and a carry into the next
    // binade is the right number there. Both scalings are exact: the count has at most 53 bits and no exponent near
    // the ends of binary64.
    const int quantum = std::max(std::ilogb(value), grid.smallest_exponent) - (grid.precision - 1);
    rounded = std::scalbn(std::nearbyint(std::scalbn(value, -quantum)), quantum);
  }
  if (std::fabs(rounded) <= grid.largest) return rounded;
  if (overflow == Overflow::saturates) return std::copysign(grid.largest, value);
  const bool has_infinity = format != QKCTS_E4M3FN;
  return has_infinity ? std::copysign(std::numeric_limits<double>::infinity(), value)
                      : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace qkcts::scalar
