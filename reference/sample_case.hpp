// SPDX-License-Identifier: Apache-2.0
// Small cases with deterministic inputs for the tests of this folder: any contract, any format.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "conformance/budget.hpp"
#include "conformance/case.hpp"

namespace qkcts {

enum class SampleValues : std::uint8_t {
  full,    // random significands of the whole precision, magnitudes around 1
  coarse,  // multiples of 1/4 in [-1, 1]: equal scores, zeros and ties are common
  wide,    // magnitudes over a third of the exponent range
  tiny,    // magnitudes around 2^-10 ... 2^-8, where epsilon decides
};

struct SampleSpec {
  Format format = Format::binary32;
  SampleValues values = SampleValues::full;
  std::uint64_t seed = 1;
  qkcts_shape shape{1, 4, 2, 3, 5, 8, 6};  // B, Hq, Hkv, Lq, Lk, D, Dv
  std::int64_t width = 5;                  // E of the rows that are projected
};

Case sample_case(const Contract& contract, const SampleSpec& spec);

// Every row of every stage of the case.
StageRows every_row(const Case& c);

// Replaces an input by the given values, which must be representable in its format.
void set_values(Case& c, Input input, std::span<const double> values);

}  // namespace qkcts
