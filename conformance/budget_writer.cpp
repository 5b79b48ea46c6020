// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_writer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkcts {

BudgetWriter::BudgetWriter(const Case& c, const StageRows& rows, const BudgetArithmetic& arithmetic)
    : rows_(rows), arithmetic_(arithmetic), format_(c.inputs.format), stages_(stages_of(c.contract.terms)) {
  for (const qkcts_stage stage : all_stages) {
    if (exists(stage)) {
      const std::size_t elements = rows[stage].size() * static_cast<std::size_t>(row_length(stage, c.shape));
      result_[stage].delta.reserve(elements);
      result_[stage].trust.reserve(elements);
    }
  }
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
  double total = std::numeric_limits<double>::infinity();
  if (std::isfinite(error)) {
    total = error + arithmetic_.storage(stage_format(stage, format_), std::fabs(z), error) + arithmetic_.resolution(z);
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
    put(stage, exact[d], error, std::fabs(exact[d]));
  }
}

}  // namespace qkcts
