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

// "q_norm[b0 h1 t2 c3]"; the column is left out where a stage has one number per row.
std::string place_text(const CaseValues& values, const ElementPlace& place);

// Throws UndecidedError with slug, stage, coordinates, precision and `bounds`.
[[noreturn]] void refuse(const CaseValues& values, const ElementPlace& place, long bits, const std::string& bounds);

}  // namespace qkcts
