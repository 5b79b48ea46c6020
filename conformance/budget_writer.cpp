// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_writer.hpp"

#include <algorithm>

#include "conformance/budget_rounding.hpp"

namespace qkcts {

BudgetWriter::BudgetWriter(const Case& c, const StageRows& rows, const BudgetArithmetic& arithmetic)
    : rows_(rows), arithmetic_(arithmetic), stages_(stages_of(c.contract.terms)) {
  const qkcts_contract& terms = c.contract.terms;
  for (const qkcts_stage stage : all_stages) {
    Destination& to = to_[stage];
    to.stored = stage_format(stage, c.inputs.format);
    to.terms = {arithmetic.storage(to.stored), arithmetic.resolution(0x1p52)};
    to.point = stage_point(terms, stage);
    if (exists(stage)) {
      const std::size_t elements = rows[stage].size() * static_cast<std::size_t>(row_length(stage, c.shape));
      result_[stage].delta.resize(elements);
      result_[stage].trust.resize(elements);
      to.delta = result_[stage].delta.data();
      to.trust = result_[stage].trust.data();
    }
  }
  // What is hidden apart, `masked` holds the numbers of the stage before it.
  to_[QKCTS_STAGE_MASKED].point = to_[exists(QKCTS_STAGE_CAPPED) ? QKCTS_STAGE_CAPPED : QKCTS_STAGE_SCORES].point;
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

bool BudgetWriter::is_kept(const Destination& to, std::uint32_t held) {
  return holds(to.stored, static_cast<Format>(held));
}

void BudgetWriter::put_elements(Destination& to, std::span<const double> z, std::span<const double> errors,
                                std::span<const double> mistrusted_from) {
  store_budgets(to.terms, z.size(), z.data(), errors.data(), mistrusted_from.data(), to.delta + to.next,
                to.trust + to.next);
  to.next += z.size();
}

void BudgetWriter::put(qkcts_stage stage, std::span<const double> z, std::span<const double> errors,
                       std::span<const double> mistrusted_from) {
  Destination& to = to_[stage];
  if (to.point == 0) {
    put_elements(to, z, errors, mistrusted_from);
    return;
  }
  for (std::size_t i = 0; i < z.size(); ++i) {
    put_element(to, z[i], errors[i], mistrusted_from[i], to.point);
  }
}

void BudgetWriter::put_vector(qkcts_stage stage, const double* exact, const VectorError& vector) {
  const std::size_t n = vector.magnitude.size();
  total_.resize(n);
  size_.resize(n);
  for (std::size_t d = 0; d < n; ++d) {
    total_[d] = vector.domain ? std::numeric_limits<double>::infinity() : vector.total(d);
    size_[d] = std::fabs(exact[d]);
  }
  if (vector.held.empty()) {
    put_elements(to_[stage], {exact, n}, total_, size_);
    return;
  }
  for (std::size_t d = 0; d < n; ++d) {
    put_element(to_[stage], exact[d], total_[d], size_[d], vector.held[d]);
  }
}

}  // namespace qkcts
