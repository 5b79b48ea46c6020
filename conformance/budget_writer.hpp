// SPDX-License-Identifier: Apache-2.0
// Collects the budgets of the wanted rows: storage rounding, resolution, rounding to binary32, trust.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "conformance/budget.hpp"
#include "conformance/budget_arithmetic.hpp"
#include "conformance/budget_vector.hpp"

namespace qkcts {

class BudgetWriter {
 public:
  BudgetWriter(const Case& c, const StageRows& rows, const BudgetArithmetic& arithmetic);

  bool exists(qkcts_stage stage) const { return (stages_ & bit(stage)) != 0; }
  bool wants(qkcts_stage stage, std::uint32_t row) const;
  // Rows that any of these stages is asked for, ascending.
  std::vector<std::uint32_t> rows_of(std::span<const qkcts_stage> stages) const;

  // Appends one element whose exact value is z and whose error before storage is `error` (infinite: domain).
  // A budget that reaches `mistrusted_from` says nothing of the element; 0: always judged. Behind a rounding point of
  // the stage, z and every conforming number are numbers of the format of that point.
  void put(qkcts_stage stage, double z, double error, double mistrusted_from);
  // An exact clause, or a position that is not judged by distance.
  void put_exact(qkcts_stage stage, std::int64_t count = 1);
  // A row of a norm or of a rotation.
  void put_vector(qkcts_stage stage, const double* exact, const VectorError& vector);

  std::array<StageBudget, QKCTS_STAGE_COUNT> take() { return std::move(result_); }

 private:
  // `held` is the format of the point whose numbers these are, 0: none.
  void put_element(qkcts_stage stage, double z, double error, double mistrusted_from, std::uint32_t held);

  const StageRows& rows_;
  const BudgetArithmetic& arithmetic_;
  Format format_;
  StageSet stages_;
  std::array<std::uint32_t, QKCTS_STAGE_COUNT> points_{};  // of scores and of what is made of them
  std::array<StageBudget, QKCTS_STAGE_COUNT> result_;
};

}  // namespace qkcts
