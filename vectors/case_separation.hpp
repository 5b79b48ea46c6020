// SPDX-License-Identifier: Apache-2.0
// The separations that a corpus stores of a case: how surely it tells its contract from each neighbouring one.
#pragma once

#include "vectors/golden_case.hpp"

namespace qkcts {

// From the stored values and budgets, so that `verify` finds the same; every neighbour that the case has inputs for and
// whose values exist and can be proven on some of the rows that are looked at.
SeparationRecord make_separations(const GoldenCase& golden);

// The same over all stored rows: slow, and never less.
SeparationRecord full_separations(const GoldenCase& golden);

// Entry of a record; the stage is one of the case.
struct SeparationEntry {
  float value;
  std::uint32_t row, column;
};
SeparationEntry separation_entry(const GoldenCase& golden, const SeparationRecord& record, std::size_t neighbour,
                                 qkcts_stage stage, std::size_t profile);

}  // namespace qkcts
