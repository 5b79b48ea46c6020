// SPDX-License-Identifier: Apache-2.0
// What is known of the exact values of one stage, and how each element is judged.
#pragma once

#include <cstdint>
#include <vector>

namespace qkcts {

enum class ElementRule : std::uint8_t {
  budget = 0,  // by class, then |got - z| <= Delta; the value is proven by an enclosure that rounds alike at both ends
  budget_exact = 1,  // as budget; an exact-case rule gave the value (it lies on a rounding boundary, or is 0)
  exact_clause = 2,  // the contract fixes it (hidden key: p = 0; empty row under zero, nan): must match; zeros of
                     // either sign are equal
  hidden = 3,        // hidden position of scores or capped: not judged; of masked: -inf or an admitted finite sentinel
  special = 4,       // QK-SPECIAL: expected NaN: NaN is due; expected an infinity: that or NaN
  not_finite = 5,    // QK-SPECIAL: an infinity of either sign or NaN, never a number; expected is NaN
  free = 6,          // QK-SPECIAL: legal implementations differ; not judged, domain in every profile; expected is NaN
};

// Is the class of the element all that is judged?
constexpr bool is_by_class(ElementRule rule) {
  return rule == ElementRule::special || rule == ElementRule::not_finite;
}

// The stored rows of one stage. expected, hi, lo and rule have rows.size() * row_length elements, row by row.
// The exact value is z = hi + lo/256 * ulp64(hi), up to 2^-9 ulp64(hi).
struct ProvenStage {
  std::vector<std::uint32_t> rows;      // ascending indices into the flattened leading axes
  std::vector<std::uint64_t> expected;  // bits of z correctly rounded (roundTiesToEven) to stage_format()
  std::vector<double> hi;               // RN64(z); infinities and NaN where the contract says so
  std::vector<std::int16_t> lo;         // RN((z - hi) / ulp64(hi) * 256)
  std::vector<ElementRule> rule;
};

}  // namespace qkcts
