// SPDX-License-Identifier: Apache-2.0
// Delta: how far a conforming implementation may be from the exact value, per element, as a theorem about a profile.
// docs/budgets.md holds the derivation of every term; ids here and there are the same.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "conformance/case.hpp"
#include "conformance/machine_profile.hpp"

namespace qkcts {

// binary64 values within 2^-50 relative of the exact ones (or exact 0), every element of every stage of the contract;
// empty for a stage that does not exist. Hidden positions of scores and capped hold the value before masking;
// masked holds -inf there, probs 0. Empty rows hold what the contract's empty_row says.
struct ExactStages {
  std::array<std::vector<double>, QKCTS_STAGE_COUNT> values;
  // Before the rounding point of the stage itself (QK-ROUND), likewise; empty where the stage has none.
  std::array<std::vector<double>, QKCTS_STAGE_COUNT> before;
  // <q,k> before the point `product`, likewise, [B,Hq,Lq,Lk]; empty where the contract has none.
  std::vector<double> products;
  // Rows of [B,Hq,Lq], ascending, that the stages from scores on hold; nothing: all of them.
  std::optional<std::vector<std::uint32_t>> attention_rows;

  const std::vector<double>& unrounded(qkcts_stage stage) const {
    return before[stage].empty() ? values[stage] : before[stage];
  }
  // Where a row of a stage stands among the rows that are held. Throws std::out_of_range if it is not.
  std::size_t place(qkcts_stage stage, std::size_t row) const;
  std::span<const double> row(qkcts_stage stage, std::size_t row, std::size_t length) const {
    return std::span(values[stage]).subspan(place(stage, row) * length, length);
  }
  std::span<const double> products_row(std::size_t row, std::size_t length) const {
    return std::span(products).subspan(place(QKCTS_STAGE_SCORES, row) * length, length);
  }
  std::span<const double> unrounded_row(qkcts_stage stage, std::size_t row, std::size_t length) const {
    return std::span(unrounded(stage)).subspan(place(stage, row) * length, length);
  }
};

// The stages whose rows are rows of attention, [B,Hq,Lq]; those of the others are vectors of q, k and v.
constexpr StageSet attention_stages = bit(QKCTS_STAGE_SCORES) | bit(QKCTS_STAGE_CAPPED) | bit(QKCTS_STAGE_MASKED) |
                                      bit(QKCTS_STAGE_PROBS) | bit(QKCTS_STAGE_LSE) | bit(QKCTS_STAGE_OUTPUT);

enum class Trust : std::uint8_t {
  judged = 0,
  mistrusted = 1,  // Delta reaches what the element could be at all: it can fail, it never counts as a pass
  domain = 2,      // an intermediate may overflow legally: not judged
};

struct StageBudget {
  std::vector<float> delta;  // one per element of the selected rows, >= 0, finite unless domain
  std::vector<Trust> trust;
};

// Rows for which budgets are wanted, per stage, ascending; every stage of the contract has an entry.
using StageRows = std::array<std::vector<std::uint32_t>, QKCTS_STAGE_COUNT>;

// Sources of error that can be switched on one after another; `explain` shows how Delta grows.
enum class BudgetTerm : std::uint32_t;
std::vector<BudgetTerm> budget_terms();               // in the order in which explain switches them on
std::string_view budget_term_id(BudgetTerm term);     // e.g. "N1": heading in docs/budgets.md
std::string_view budget_term_title(BudgetTerm term);  // one line
using TermSet = std::uint64_t;                        // bit i: term i
constexpr TermSet all_budget_terms = ~TermSet{0};

// Evaluated in a fixed order by + - * / sqrt on binary64 only, rounded up to binary32: the same bits everywhere.
std::array<StageBudget, QKCTS_STAGE_COUNT> stage_budgets(const Case& c, const ExactStages& exact, const StageRows& rows,
                                                         const Profile& profile, TermSet terms = all_budget_terms);

class SpecialValues;

// The same, some rows at a time: errors of q, k and v are made when they are first needed, and kept.
class CaseBudgets {
 public:
  // `vectors` holds the stages of q, k and v, as far as the rows need them: of a row of attention its q and all k and v
  // of its key/value head. `c` and `vectors` must outlive the object.
  CaseBudgets(const Case& c, const ExactStages& vectors, const Profile& profile, TermSet terms = all_budget_terms);
  // The same profile under another contract whose vectors are the same; shares their errors with `other`, in one
  // thread.
  CaseBudgets(const Case& c, const CaseBudgets& other);
  CaseBudgets(CaseBudgets&&) noexcept;
  CaseBudgets& operator=(CaseBudgets&&) noexcept;
  ~CaseBudgets();

  // Of `rows`; rows of attention must be held by `exact`.
  std::array<StageBudget, QKCTS_STAGE_COUNT> of(const ExactStages& exact, const StageRows& rows);

 private:
  class Composition;
  std::unique_ptr<const SpecialValues> special_;  // null: every input is a number
  std::unique_ptr<Composition> composition_;
};

}  // namespace qkcts
