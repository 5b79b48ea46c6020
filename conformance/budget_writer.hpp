// SPDX-License-Identifier: Apache-2.0
// Collects the budgets of the wanted rows: storage rounding, resolution, rounding to binary32, trust.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "conformance/budget.hpp"
#include "conformance/budget_arithmetic.hpp"
#include "conformance/budget_store.hpp"
#include "conformance/budget_vector.hpp"

namespace qkcts {

class BudgetWriter {
 public:
  BudgetWriter(const Case& c, const StageRows& rows, const BudgetArithmetic& arithmetic);

  bool exists(qkcts_stage stage) const { return (stages_ & bit(stage)) != 0; }
  bool wants(qkcts_stage stage, std::uint32_t row);
  // Rows that any of these stages is asked for, ascending.
  std::vector<std::uint32_t> rows_of(std::span<const qkcts_stage> stages) const;

  // The next element, whose exact value is z and whose error before storage is `error` (infinite: domain).
  // A budget that reaches `mistrusted_from` says nothing of the element; 0: always judged. Behind a rounding point of
  // the stage, z and every conforming number are numbers of the format of that point.
  void put(qkcts_stage stage, double z, double error, double mistrusted_from) {
    put_element(to_[stage], z, error, mistrusted_from, to_[stage].point);
  }
  // The next ones, as many as z has numbers.
  void put(qkcts_stage stage, std::span<const double> z, std::span<const double> errors,
           std::span<const double> mistrusted_from);
  // The last ones of stage `from`, whose numbers and errors are the same, for `stage`; false, and nothing done, where
  // these are stored otherwise.
  bool put_again(qkcts_stage from, qkcts_stage stage, std::size_t count);
  // Exact clauses, or positions that are not judged by distance.
  void put_exact(qkcts_stage stage, std::int64_t count = 1) { extend(to_[stage], static_cast<std::size_t>(count)); }
  // A row of a norm or of a rotation.
  void put_vector(qkcts_stage stage, const double* exact, const VectorError& vector);

  std::array<StageBudget, QKCTS_STAGE_COUNT> take() { return std::move(result_); }

 private:
  // Where elements of a stage go, one row after another: so that what is written is in the cache, memory grows with
  // them, within what was reserved.
  struct Destination {
    Format stored = Format::binary32;
    StoreTerms terms;
    std::uint32_t point = 0;  // format whose numbers scores hold and what is made of them; 0: any
    StageBudget* budget = nullptr;
    std::size_t asked = 0;  // how many rows of the stage wants() has passed
  };
  // Exact ones; where the first of them stands.
  static std::size_t extend(Destination& to, std::size_t count) {
    const std::size_t first = to.budget->delta.size();
    to.budget->delta.resize(first + count);
    to.budget->trust.resize(first + count);
    return first;
  }
  // `held` is the format of the point whose numbers these are, 0: none.
  void put_element(Destination& to, double z, double error, double mistrusted_from, std::uint32_t held) {
    double total = std::numeric_limits<double>::infinity();
    if (std::isfinite(error)) {
      const double storage = held != 0 && is_kept(to, held) ? 0 : to.terms.rounding.error(std::fabs(z), error);
      total = error + storage + (held != 0 ? 0 : arithmetic_.resolution(z));
      total *= 1 + 0x1p-30;
    }
    const float delta = binary32_upper(total);
    Trust trust = Trust::judged;
    if (!std::isfinite(delta)) {
      trust = Trust::domain;
    } else if (mistrusted_from > 0 && static_cast<double>(delta) >= mistrusted_from) {
      trust = Trust::mistrusted;
    }
    to.budget->delta.push_back(delta);
    to.budget->trust.push_back(trust);
  }
  // Numbers of a point are stored as they are where the storage format has them, and recorded exactly.
  static bool is_kept(const Destination& to, std::uint32_t held);
  void put_elements(Destination& to, std::span<const double> z, std::span<const double> errors,
                    std::span<const double> mistrusted_from);

  const StageRows& rows_;
  const BudgetArithmetic& arithmetic_;
  StageSet stages_;
  std::array<Destination, QKCTS_STAGE_COUNT> to_{};
  std::array<StageBudget, QKCTS_STAGE_COUNT> result_;
  std::vector<double> total_, size_;  // of one vector
};

}  // namespace qkcts
