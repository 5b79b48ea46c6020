// SPDX-License-Identifier: Apache-2.0
// Inputs that drive legal errors to their bounds, one family per way of doing so.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "conformance/case.hpp"

namespace qkcts {

enum class SoakFamily : std::uint8_t {
  normal,             // magnitudes around 1
  small,              // where the epsilon of a norm decides
  absorbed_squares,   // one large element; the square of any other is half an ulp of its square
  absorbed_weights,   // one key far above; the weight of any other is half an ulp of the row sum
  stored_weights,     // weights half way between two numbers of the storage format
  ascending,          // every key is a new row maximum
  cancelling,         // scores are small differences of large products
  saturating,         // scores of hundreds
  large_scores,       // scores near 1000 that differ little
  falling,            // large scores, the first key highest: rescaling by e^0 at every block
  offset,             // rows far from 0 with a small spread: mean against variance
  storage_bound,      // results in the subnormal range of the storage format
  near_underflow,     // intermediate results around the smallest normal number
  near_equal_values,  // v nearly constant
  rising,             // large scores, every key a new row maximum: rescaling that does not cancel; v nearly constant
  subnormal_factors   // products of a subnormal and a huge number, which a matrix unit may align as larger than all
};
constexpr int soak_family_count = 16;
std::string_view soak_family_name(SoakFamily family);

Case soak_case(const Contract& contract, Format format, SoakFamily family, const qkcts_shape& shape,
               std::uint64_t seed);

}  // namespace qkcts
