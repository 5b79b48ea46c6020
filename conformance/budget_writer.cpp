// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_writer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/budget_rounding.hpp"

namespace qkcts {

BudgetWriter::BudgetWriter(const Case& c, const StageRows& rows, const BudgetArithmetic& arithmetic)
    : rows_(rows), arithmetic_(arithmetic), format_(c.inputs.format), stages_(stages_of(c.contract.terms)) {
  const qkcts_contract& terms = c.contract.terms;
  for (const qkcts_stage stage : all_stages) {
    points_[stage] = stage_point(terms, stage);
    if (exists(stage)) {
      const std::size_t elements = rows[stage].size() * static_cast<std::size_t>(row_length(stage, c.shape));
      result_[stage].delta.reserve(elements);
      result_[stage].trust.reserve(elements);
    }
  }
  // What is hidden apart, `masked` holds the numbers of the stage before it.
  points_[QKCTS_STAGE_MASKED] = points_[exists(QKCTS_STAGE_CAPPED) ? QKCTS_STAGE_CAPPED : QKCTS_STAGE_SCORES];
}

bool BudgetWriter::wants(qkcts_stage stage, std::uint32_t row) const {
  return exists(stage) && std::binary_search(rows_[stage].begin(), rows_[stage].end(), row);
}

std::vector<std::uint32_t> BudgetWriter::rows_of(std::span<const qkcts_stage> stages) const {
  std::vector<std::uint32_t> rows;
  for (const qkcts_stage stage : stages) {
    if (exists(stage)) {
      rows.insert(rows.end(), rows_[stage].begin(), rows_[stage].end());
    }
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

void BudgetWriter::put(qkcts_stage stage, double z, double error, double mistrusted_from) {
  put_element(stage, z, error, mistrusted_from, points_[stage]);
}

void BudgetWriter::put_element(qkcts_stage stage, double z, double error, double mistrusted_from, std::uint32_t held) {
  double total = std::numeric_limits<double>::infinity();
  if (std::isfinite(error)) {
    // Numbers of a point are stored as they are where the storage format has them, and recorded exactly.
    const Format stored = stage_format(stage, format_);
    const bool kept = held != 0 && holds(stored, static_cast<Format>(held));
    const double storage = kept ? 0 : arithmetic_.storage(stored, std::fabs(z), error);
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
  result_[stage].delta.push_back(delta);
  result_[stage].trust.push_back(trust);
}

void BudgetWriter::put_exact(qkcts_stage stage, std::int64_t count) {
  StageBudget& budget = result_[stage];
  budget.delta.insert(budget.delta.end(), static_cast<std::size_t>(count), 0.0f);
  budget.trust.insert(budget.trust.end(), static_cast<std::size_t>(count), Trust::judged);
}

void BudgetWriter::put_vector(qkcts_stage stage, const double* exact, const VectorError& vector) {
  for (std::size_t d = 0; d < vector.magnitude.size(); ++d) {
    const double error = vector.domain ? std::numeric_limits<double>::infinity() : vector.total(d);
    put_element(stage, exact[d], error, std::fabs(exact[d]), vector.held.empty() ? 0 : vector.held[d]);
  }
}

}  // namespace qkcts
