// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_writer.hpp"

#include <algorithm>
#include <iterator>

#include "conformance/budget_rounding.hpp"
#include "conformance/lanes.hpp"

namespace qkcts {
namespace {

// As VectorError::total() of every element.
[[gnu::always_inline]] inline void set_totals(std::size_t n, double common, const double* __restrict magnitude,
                                              const double* __restrict error, double* __restrict total) {
  for (std::size_t d = 0; d < n; ++d) {
    total[d] = common * magnitude[d] + (1 + common) * error[d];
  }
}

}  // namespace

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
      result_[stage].delta.reserve(elements);
      result_[stage].trust.reserve(elements);
      to.budget = &result_[stage];
    }
  }
  // What is hidden apart, `masked` holds the numbers of the stage before it.
  to_[QKCTS_STAGE_MASKED].point = to_[exists(QKCTS_STAGE_CAPPED) ? QKCTS_STAGE_CAPPED : QKCTS_STAGE_SCORES].point;
}

// Rows are mostly asked for in their order.
bool BudgetWriter::wants(qkcts_stage stage, std::uint32_t row) {
  if (!exists(stage)) {
    return false;
  }
  const std::vector<std::uint32_t>& rows = rows_[stage];
  std::size_t& asked = to_[stage].asked;
  while (asked < rows.size() && rows[asked] < row) {
    ++asked;
  }
  if (asked > 0 && rows[asked - 1] >= row) {
    return std::binary_search(rows.begin(), rows.end(), row);
  }
  return asked < rows.size() && rows[asked] == row;
}

std::vector<std::uint32_t> BudgetWriter::rows_of(std::span<const qkcts_stage> stages) const {
  std::vector<std::uint32_t> rows, more;
  for (const qkcts_stage stage : stages) {
    if (exists(stage) && rows_[stage] != rows) {
      more.clear();
      std::set_union(rows.begin(), rows.end(), rows_[stage].begin(), rows_[stage].end(), std::back_inserter(more));
      rows.swap(more);
    }
  }
  return rows;
}

bool BudgetWriter::put_again(qkcts_stage from, qkcts_stage stage, std::size_t count) {
  const Destination &source = to_[from], &to = to_[stage];
  if (source.stored != to.stored || source.point != to.point) {
    return false;
  }
  const StageBudget& last = *source.budget;
  to.budget->delta.insert(to.budget->delta.end(), last.delta.end() - static_cast<std::ptrdiff_t>(count),
                          last.delta.end());
  to.budget->trust.insert(to.budget->trust.end(), last.trust.end() - static_cast<std::ptrdiff_t>(count),
                          last.trust.end());
  return true;
}

bool BudgetWriter::is_kept(const Destination& to, std::uint32_t held) {
  return holds(to.stored, static_cast<Format>(held));
}

void BudgetWriter::put_elements(Destination& to, std::span<const double> z, std::span<const double> errors,
                                std::span<const double> mistrusted_from) {
  const std::size_t first = extend(to, z.size());
  store_budgets(to.terms, z.size(), z.data(), errors.data(), mistrusted_from.data(), to.budget->delta.data() + first,
                to.budget->trust.data() + first);
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
  std::transform(exact, exact + n, size_.begin(), [](double value) { return std::fabs(value); });
  if (vector.domain) {
    std::fill(total_.begin(), total_.end(), std::numeric_limits<double>::infinity());
  } else {
    in_widest_lanes([=, common = vector.common, magnitude = vector.magnitude.data(), error = vector.error.data(),
                     total = total_.data()]() QKCTS_STRAIGHT { set_totals(n, common, magnitude, error, total); });
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
