// SPDX-License-Identifier: Apache-2.0
// What the refinement loops of vectors and of rows do with the elements that are open at one precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "reference/exact_cases.hpp"
#include "reference/real.hpp"
#include "reference/recorder.hpp"
#include "reference/refusal.hpp"
#include "reference/rounding.hpp"

namespace qkcts {

using OpenElements = std::vector<ElementPlace>;

class ElementLoop {
 public:
  // `levels` of level_digits may be used; `exact_cases` counts what a rule decides.
  ElementLoop(const CaseValues& values, Recorder& recorder, std::size_t levels, std::uint64_t& exact_cases)
      : recorder_(recorder),
        seen_(values.exists(QKCTS_STAGE_CAPPED) ? QKCTS_STAGE_CAPPED : QKCTS_STAGE_SCORES),
        levels_(levels),
        exact_cases_(exact_cases) {}

  // Removes from `open` what is decided at level L.
  template <std::size_t L, class EnclosureOf, class Rule, class JudgedAs>
  void settle(OpenElements& open, const EnclosureOf& enclosure, const Rule& rule, const JudgedAs& judged_as) {
    OpenElements left;
    for (const ElementPlace& place : open) {
      if (place.stage == statistics_stage) {
        left.push_back(place);
        continue;
      }
      // At a visible key `masked` is the number before it; that was settled in this pass, unless it is still open.
      const bool is_copy = L == 0 && place.stage == QKCTS_STAGE_MASKED && left.empty() &&
                           recorder_.copy({seen_, place.row, place.column}, QKCTS_STAGE_MASKED);
      if (is_copy) continue;
      const auto& x = enclosure(place);
      if (recorder_.settle(place, lower(x), upper(x), judged_as(place))) continue;
      const bool is_last = L + 1 >= levels_;
      if (L > 0 && settle_by_rule(place, lower(x), upper(x), rule, judged_as(place), is_last)) continue;
      left.push_back(place);
    }
    open = std::move(left);
  }

 private:
  // Beside zero the last precision has to have shown that z is negligible: the sign is all that is missing then.
  template <class Rule>
  bool settle_by_rule(const ElementPlace& place, RealView low, RealView high, const Rule& rule, ElementRule judged_as,
                      bool is_last) {
    const std::optional<Boundary> boundary = only_boundary(low, high);
    if (!boundary) return false;
    const Standing standing = rule(place, rational_of(boundary->value.get()));
    const bool at_zero = mpfr_zero_p(boundary->value.get()) != 0;
    if (standing == Standing::unknown) return false;
    const ElementRule decided = judged_as == ElementRule::hidden ? judged_as : ElementRule::budget_exact;
    const int direction = standing == Standing::below ? -1 : 1;
    const bool is_small = is_last && is_negligible(low) && is_negligible(high);
    if (at_zero && standing != Standing::equal && !is_small) return false;
    const Real z = standing == Standing::equal ? boundary->value : beside(*boundary, direction);
    if (!recorder_.settle(place, z.get(), z.get(), decided)) return false;
    ++exact_cases_;
    return true;
  }

  Recorder& recorder_;
  qkcts_stage seen_;  // what `masked` copies
  std::size_t levels_;
  std::uint64_t& exact_cases_;
};

}  // namespace qkcts
