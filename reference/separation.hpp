// SPDX-License-Identifier: Apache-2.0
// How surely a case tells two contracts apart: sep = max |z - z_m| / (Delta + Delta_m), per stage and profile.
//
// If sep > 1, no implementation that is within Delta_m of the neighbour's values is within Delta of the contract's own:
// |got - z| <= Delta and |got - z_m| <= Delta_m would give |z - z_m| <= Delta + Delta_m. So an adapter that is right
// for the wrong contract cannot pass this case. The largest over some of the elements is a lower bound of the largest
// over all of them, and proves as much where it exceeds 1.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "reference/attention.hpp"
#include "reference/evaluation.hpp"
#include "reference/separation_rows.hpp"

namespace qkcts {

struct Separation {
  double value = 0;  // a lower bound; infinite where the special-value classes differ, or where both values are fixed
  std::uint32_t row = 0;
  std::int64_t column = 0;  // of the element
};

// [stage][profile]; empty where a stage does not exist in both contracts.
using SeparationTable = std::array<std::vector<Separation>, QKCTS_STAGE_COUNT>;

// The largest over all stages, of one profile.
Separation largest_separation(const SeparationTable& table, std::size_t profile);

// Proven values of one stage, and their budgets by profile; null where the case has no such stage.
struct StageView {
  const ProvenStage* values = nullptr;
  const std::vector<StageBudget>* budgets = nullptr;
};
using CaseView = std::array<StageView, QKCTS_STAGE_COUNT>;

class Separator {
 public:
  // Evaluates the case under its own contract, once. `c` must outlive the object. Throws what evaluate() throws.
  Separator(const Case& c, const StageRows& rows, std::vector<Profile> profiles);
  // Of evidence that is there already; it must outlive the object.
  Separator(const Case& c, const CaseView& own, std::vector<Profile> profiles);
  ~Separator();
  Separator(const Separator&) = delete;
  Separator& operator=(const Separator&) = delete;

  // `neighbour` is the same case under another contract: case_under() of conformance/neighbour.hpp. Over every row that
  // the case stores. Throws what evaluate() throws.
  SeparationTable to(const Case& neighbour) const;

  // The same, [stored row][profile] of a stage that both have.
  std::vector<std::vector<Separation>> by_row(const Case& neighbour, qkcts_stage stage) const;

  // Over a few rows (separation_rows.hpp), and over further ones only where the first do not tell the two apart with
  // room to spare. The same on every machine.
  SeparationTable quickly_to(const Case& neighbour) const;

 private:
  struct Evaluated;
  class Other;
  void hold_vectors();
  Evaluated evaluated(const Case& c, const StageRows& rows) const;
  SeparationTable empty_table(const Case& neighbour) const;
  StageRows stored_rows(const Case& neighbour) const;
  void raise(std::vector<Separation>& largest, const Evaluated& other, qkcts_stage stage, std::size_t at) const;
  void raise(SeparationTable& table, const Evaluated& other) const;
  void raise_by_all(SeparationTable& table, Other& other) const;

  const Case& case_;
  std::vector<Profile> profiles_;
  std::unique_ptr<Evaluated> held_;
  CaseView own_;
  StageRows stored_;
  SeparationRows rows_;  // of stored_
  // q, k and v of the case and their errors, as far as they were needed, for the neighbours that have the same.
  std::unique_ptr<Evaluation> vectors_;
  std::vector<CaseBudgets> vector_budgets_;  // by profile
};

}  // namespace qkcts
