// SPDX-License-Identifier: Apache-2.0
#include "reference/double_word_midpoint.hpp"

#include <cmath>

#include "reference/double_word_kernels.hpp"

namespace qkcts {
namespace {

// Infinity stands where the next value of the format would.
double as_value(Format format, std::uint64_t pattern) {
  const double value = decode(format, pattern);
  return std::isinf(value) ? std::copysign(std::ldexp(1.0, parameters(format).emax + 1), value) : value;
}

}  // namespace

// Nothing of the format's grid or its midpoints lies strictly between h and its binary64 neighbours. If these round
// differently, h or one of them is a midpoint; h is it if it stands in the middle of what the two round to.
bool encode_near(Format format, const Word& w, double error, std::uint64_t& expected) {
  const std::uint64_t below = encode(format, std::nextafter(w.h, -HUGE_VAL));
  const std::uint64_t above = encode(format, std::nextafter(w.h, HUGE_VAL));
  const double low = as_value(format, below);
  const double high = as_value(format, above);
  const bool is_midpoint = low != high && w.h - low == high - w.h;
  if (!is_midpoint || (error == 0 && w.l == 0)) {
    expected = encode(format, w.h);
    return true;
  }
  const double reach = error * (1 + 0x1p-20);
  if (!(std::fabs(w.l) > reach)) return false;
  expected = w.l > 0 ? above : below;
  return true;
}

}  // namespace qkcts
