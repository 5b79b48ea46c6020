// SPDX-License-Identifier: Apache-2.0
// What is still open after the last precision is refused, never guessed.
#pragma once

#include <string>

#include "reference/case_values.hpp"
#include "reference/real.hpp"
#include "reference/recorder.hpp"

namespace qkcts {

// Stand-in stage of the row statistics in a list of open elements.
constexpr qkcts_stage statistics_stage = QKCTS_STAGE_COUNT;

// " between 1.0e+0 and 1.1e+0"
template <unsigned Digits>
std::string bounds_text(const Enclosure<Digits>& x) {
  return " between " + decimal_text(lower(x), 30) + " and " + decimal_text(upper(x), 30);
}

// Throws UndecidedError with slug, stage, coordinates, precision and `bounds`.
[[noreturn]] void refuse(const CaseValues& values, const ElementPlace& place, long bits, const std::string& bounds);

}  // namespace qkcts
