// SPDX-License-Identifier: Apache-2.0
// Input families: what is drawn, why, and what is promised about it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "vectors/golden_case.hpp"

namespace qkcts {

struct Draft;

struct InputFamily {
  std::string_view name;
  std::string_view reason;   // one line: why the family exists
  std::string_view clause;   // the clause group that it exposes first
  std::string_view promise;  // what holds of every case of the family, and is checked on each
  // Why the family makes no sense for this contract, shape and format; empty if it does.
  std::string (*fault)(const Draft& draft);
  void (*draw)(Draft& draft);                       // from the ordinary draft
  std::string (*broken)(const GoldenCase& golden);  // how the promise is broken; empty if it is kept
  // It draws the rows of q and k themselves, so under a projection what that starts from is made to fit.
  bool plants = false;
};

std::span<const InputFamily> input_families();
const InputFamily& input_family(std::string_view name);  // InputError listing the names
// All of them as a Markdown table; docs/families.md holds it.
std::string family_table();

struct DrawnCase {
  Case c;                           // without cos and sin
  std::int64_t first_position = 0;  // position of row 0 of the rotary tables
  std::int64_t table_rows = 0;      // 0: no tables
};

// Empty if the family can be drawn, else one line.
std::string family_fault(std::string_view family, const Contract& contract, const qkcts_shape& shape, Format format);
// Throws InputError if family_fault() is not empty. Equal arguments give equal bits on every machine.
DrawnCase draw_case(std::string_view family, const Contract& contract, const qkcts_shape& shape, Format format,
                    std::uint64_t seed);

}  // namespace qkcts
