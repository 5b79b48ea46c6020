// SPDX-License-Identifier: Apache-2.0
// The operations of double_word.hpp on one number at a time, outside of the kernels.
#pragma once

#include "reference/double_word.hpp"
#include "reference/double_word_kernels.hpp"

namespace qkcts {

namespace dw = qkcts::HWY_NAMESPACE;
using Double = dw::DoubleWord<double>;

constexpr double u2 = dw::unit_square;

inline Double of(Word w) {
  return {w.h, w.l};
}
inline Word of(Double x) {
  return {x.h, x.l};
}

}  // namespace qkcts
