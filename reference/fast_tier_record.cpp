// SPDX-License-Identifier: Apache-2.0
#include "reference/fast_tier_record.hpp"

#include <algorithm>
#include <array>

namespace qkcts {
namespace {

void bring(const void* from, std::size_t bytes) {
  constexpr std::size_t line = 64;
  for (std::size_t i = 0; i < bytes; i += line) __builtin_prefetch(static_cast<const char*>(from) + i, 1, 2);
}

bool is_run(std::span<const std::uint32_t> columns) {
  return !columns.empty() && columns.back() - columns.front() + 1 == columns.size();
}

}  // namespace

RowRecorder::RowRecorder(const CaseValues& values, ReferenceResult& result, const Kernels& kernels)
    : result_(result), kernels_(kernels) {
  for (const qkcts_stage stage : all_stages) {
    lengths_[stage] = static_cast<std::size_t>(row_length(stage, values.shape));
    formats_[stage] = stage_format(stage, values.input.inputs.format);
  }
}

RowRecorder::Place RowRecorder::place(qkcts_stage stage, std::int64_t row) const {
  const std::size_t length = lengths_[stage];
  const std::vector<std::uint32_t>& stored = result_.stages[stage].rows;
  const auto wanted = static_cast<std::uint32_t>(row);
  Place place{result_.exact.place(stage, static_cast<std::size_t>(row)) * length, -1};
  // Mostly that of the last time, or the next one.
  std::size_t& nearest = nearest_[stage];
  const auto stands = [&](std::size_t at) { return at < stored.size() && stored[at] == wanted; };
  if (!stands(nearest)) ++nearest;
  if (!stands(nearest))
    nearest = static_cast<std::size_t>(std::lower_bound(stored.begin(), stored.end(), wanted) - stored.begin());
  if (stands(nearest)) place.stored = static_cast<std::ptrdiff_t>(nearest * length);
  return place;
}

RoundedRow RowRecorder::target(qkcts_stage stage, const Place& place, std::size_t first) {
  RoundedRow row{result_.exact.values[stage].data() + place.exact + first, nullptr, nullptr, nullptr};
  if (place.stored < 0) return row;
  ProvenStage& proven = result_.stages[stage];
  const std::size_t at = static_cast<std::size_t>(place.stored) + first;
  row.expected = proven.expected.data() + at;
  row.hi = proven.hi.data() + at;
  row.lo = proven.lo.data() + at;
  return row;
}

// Where the next row of the stage will go, brought into the cache while other things are computed.
void RowRecorder::expect_next(qkcts_stage stage, const Place& place) const {
  const std::size_t length = lengths_[stage];
  const std::vector<double>& exact = result_.exact.values[stage];
  const std::size_t next = place.exact + length;
  if (next + length <= exact.capacity()) bring(exact.data() + next, length * sizeof(double));
  if (place.stored < 0) return;
  const ProvenStage& proven = result_.stages[stage];
  const std::size_t at = static_cast<std::size_t>(place.stored) + length;
  if (at + length > proven.expected.capacity()) return;
  bring(proven.expected.data() + at, length * sizeof(std::uint64_t));
  bring(proven.hi.data() + at, length * sizeof(double));
  bring(proven.lo.data() + at, length * sizeof(std::int16_t));
  bring(proven.rule.data() + at, length * sizeof(ElementRule));
}

void RowRecorder::record(qkcts_stage stage, std::int64_t row, std::int64_t first, ConstWords z, const double* error,
                         std::size_t n, std::vector<ElementPlace>& open) {
  undecided_.resize(std::max(undecided_.size(), n));
  const Place at = place(stage, row);
  const RoundedRow to = target(stage, at, static_cast<std::size_t>(first));
  expect_next(stage, at);
  if (kernels_.round(z, error, n, formats_[stage], to, undecided_.data()) == 0) return;
  for (std::size_t i = 0; i < n; ++i)
    if (undecided_[i] != 0) open.push_back({stage, row, first + static_cast<std::int64_t>(i)});
}

void RowRecorder::record(qkcts_stage stage, std::int64_t row, std::span<const std::uint32_t> columns, ConstWords z,
                         const double* error, std::vector<ElementPlace>& open) {
  if (columns.empty()) return;
  const std::size_t n = columns.size();
  if (is_run(columns)) return record(stage, row, columns.front(), z, error, n, open);
  undecided_.resize(std::max(undecided_.size(), n));
  exact_.resize(std::max(exact_.size(), n));
  hi_.resize(exact_.size());
  expected_.resize(exact_.size());
  lo_.resize(exact_.size());
  const RoundedRow to = target(stage, place(stage, row), 0);
  const bool is_stored = to.expected != nullptr;
  const RoundedRow packed{exact_.data(), is_stored ? expected_.data() : nullptr, hi_.data(), lo_.data()};
  kernels_.round(z, error, n, formats_[stage], packed, undecided_.data());
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t column = columns[i];
    if (undecided_[i] != 0) {
      open.push_back({stage, row, static_cast<std::int64_t>(column)});
      continue;
    }
    to.exact[column] = exact_[i];
    if (!is_stored) continue;
    to.expected[column] = expected_[i];
    to.hi[column] = hi_[i];
    to.lo[column] = lo_[i];
  }
}

void RowRecorder::fix_all_but(qkcts_stage stage, std::int64_t row, std::span<const std::uint32_t> columns, double value,
                              ElementRule rule) {
  const Place at = place(stage, row);
  const RoundedRow to = target(stage, at, 0);
  const std::size_t length = lengths_[stage];
  const std::uint64_t pattern = encode(formats_[stage], value);
  ElementRule* rules = at.stored < 0 ? nullptr : result_.stages[stage].rule.data() + at.stored;
  const auto fix = [&](std::size_t begin, std::size_t end) {
    std::fill(to.exact + begin, to.exact + end, value);
    if (rules == nullptr) return;
    std::fill(to.expected + begin, to.expected + end, pattern);
    std::fill(to.hi + begin, to.hi + end, value);
    std::fill(to.lo + begin, to.lo + end, std::int16_t{0});
    std::fill(rules + begin, rules + end, rule);
  };
  if (is_run(columns)) {
    fix(0, columns.front());
    return fix(columns.back() + 1, length);
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= columns.size(); ++i) {
    const std::size_t end = i < columns.size() ? columns[i] : length;
    fix(begin, end);
    begin = end + 1;
  }
}

void RowRecorder::hide_all_but(qkcts_stage stage, std::int64_t row, std::span<const std::uint32_t> columns) {
  const Place at = place(stage, row);
  if (at.stored < 0) return;
  const std::size_t length = lengths_[stage];
  ElementRule* rule = result_.stages[stage].rule.data() + at.stored;
  std::fill_n(rule, length, ElementRule::hidden);
  if (is_run(columns)) {
    std::fill_n(rule + columns.front(), columns.size(), ElementRule::budget);
    return;
  }
  for (const std::uint32_t column : columns) rule[column] = ElementRule::budget;
}

void RowRecorder::record_zero(qkcts_stage stage, std::int64_t row, std::int64_t column) {
  const RoundedRow to = target(stage, place(stage, row), static_cast<std::size_t>(column));
  *to.exact = 0;
  if (to.expected == nullptr) return;
  *to.expected = 0;
  *to.hi = 0;
  *to.lo = 0;
}

bool RowRecorder::round(std::span<const Statistic> statistics) {
  std::array<double, padding> h{}, l{}, error{}, exact{};
  std::array<std::uint8_t, padding> undecided{};
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    h[i] = statistics[i].z.h;
    l[i] = statistics[i].z.l;
    error[i] = statistics[i].error;
  }
  const RoundedRow to{exact.data(), nullptr, nullptr, nullptr};
  if (kernels_.round({h.data(), l.data()}, error.data(), statistics.size(), Format::binary64, to, undecided.data()) > 0)
    return false;
  for (std::size_t i = 0; i < statistics.size(); ++i) *statistics[i].target = exact[i];
  return true;
}

}  // namespace qkcts
