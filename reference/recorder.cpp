// SPDX-License-Identifier: Apache-2.0
#include "reference/recorder.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace qkcts {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

template <class T>
void grow(std::vector<T>& numbers, std::size_t count, T value) {
  if (numbers.size() < count) numbers.resize(count, value);
}

}  // namespace

Recorder::Recorder(const Case& c, StageSet stages, const StageRows& rows, ReferenceResult& result)
    : result_(result),
      has_products_(c.contract.terms.rounding.product != 0),
      stages_(stages & stages_of(c.contract.terms)),
      held_(static_cast<std::size_t>(row_count(QKCTS_STAGE_LSE, c.shape)), -1) {
  for (const qkcts_stage stage : all_stages) {
    if ((stages_ & bit(stage)) == 0) continue;
    formats_[stage] = stage_format(stage, c.inputs.format);
    lengths_[stage] = row_length(stage, c.shape);
    const auto length = static_cast<std::size_t>(lengths_[stage]);
    const auto count = static_cast<std::size_t>(row_count(stage, c.shape));
    slot_[stage].assign(count, -1);
    has_point_[stage] = stage_point(c.contract.terms, stage) != 0;
    if ((attention_stages & bit(stage)) == 0) {
      result.exact.values[stage].reserve(count * length);
      if (has_point_[stage]) result.exact.before[stage].assign(count * length, nan_value);
    }
    ProvenStage& proven = result.stages[stage];
    proven.rows = rows[stage];
    for (std::size_t i = 0; i < proven.rows.size(); ++i) {
      if (proven.rows[i] >= count || (i > 0 && proven.rows[i] <= proven.rows[i - 1])) {
        throw InputError(
            fmt::format("case {}: rows of stage {} must ascend and stay below {}", c.slug, stage_name(stage), count));
      }
      slot_[stage][proven.rows[i]] = static_cast<std::int32_t>(i);
    }
    const std::size_t stored = proven.rows.size() * length;
    proven.expected.reserve(stored);
    proven.hi.reserve(stored);
    proven.lo.reserve(stored);
    proven.rule.reserve(stored);
  }
  if (has_rounding_points(c.contract.terms.rounding)) begin_all_vectors();  // points come before stages
}

void Recorder::grow_stored(qkcts_stage stage, std::size_t rows) {
  const std::size_t count = rows * static_cast<std::size_t>(lengths_[stage]);
  ProvenStage& proven = result_.stages[stage];
  grow<std::uint64_t>(proven.expected, count, 0);
  grow(proven.hi, count, 0.0);
  grow<std::int16_t>(proven.lo, count, 0);
  grow(proven.rule, count, ElementRule::budget);
}

void Recorder::grow_exact(qkcts_stage stage, std::size_t rows) {
  const std::size_t count = rows * static_cast<std::size_t>(lengths_[stage]);
  grow(result_.exact.values[stage], count, 0.0);
  if (has_point_[stage]) grow(result_.exact.before[stage], count, nan_value);
  if (has_products_ && stage == QKCTS_STAGE_SCORES) grow(result_.exact.products, count, nan_value);
}

void Recorder::begin(std::int64_t row) {
  const auto held = static_cast<std::size_t>(held_[static_cast<std::size_t>(row)]);
  for (const qkcts_stage stage : all_stages) {
    if ((stages_ & attention_stages & bit(stage)) == 0) continue;
    grow_exact(stage, held + 1);
    const std::int32_t slot = slot_[stage][static_cast<std::size_t>(row)];
    if (slot >= 0) grow_stored(stage, static_cast<std::size_t>(slot) + 1);
  }
}

void Recorder::begin_vector(qkcts_stage stage, std::int64_t row) {
  const std::size_t rows = static_cast<std::size_t>(row) + 1;
  grow(result_.exact.values[stage], rows * static_cast<std::size_t>(lengths_[stage]), nan_value);
  const std::int32_t slot = slot_[stage][static_cast<std::size_t>(row)];
  if (slot >= 0) grow_stored(stage, static_cast<std::size_t>(slot) + 1);
}

void Recorder::begin_all_vectors() {
  for (const qkcts_stage stage : all_stages) {
    if ((stages_ & ~attention_stages & bit(stage)) == 0) continue;
    grow(result_.exact.values[stage], slot_[stage].size() * static_cast<std::size_t>(lengths_[stage]), nan_value);
    grow_stored(stage, result_.stages[stage].rows.size());
  }
}

void Recorder::begin_all() {
  for (const qkcts_stage stage : all_stages) {
    if ((stages_ & attention_stages & bit(stage)) == 0) continue;
    if (result_.exact.attention_rows) grow_exact(stage, result_.exact.attention_rows->size());
    grow_stored(stage, result_.stages[stage].rows.size());
  }
}

void Recorder::hold(std::span<const std::uint32_t> rows) {
  std::optional<std::vector<std::uint32_t>>& held = result_.exact.attention_rows;
  for (const std::uint32_t row : held.value_or(std::vector<std::uint32_t>{})) held_[row] = -1;
  held.emplace(rows.begin(), rows.end());
  for (std::size_t i = 0; i < rows.size(); ++i) held_[rows[i]] = static_cast<std::int32_t>(i);
  for (const qkcts_stage stage : all_stages) {
    if ((stages_ & attention_stages & bit(stage)) == 0) continue;
    const std::size_t count = rows.size() * static_cast<std::size_t>(lengths_[stage]);
    const auto clear = [count](std::vector<double>& numbers) {
      numbers.clear();
      numbers.reserve(count);
    };
    clear(result_.exact.values[stage]);
    if (has_point_[stage]) clear(result_.exact.before[stage]);
    if (has_products_ && stage == QKCTS_STAGE_SCORES) clear(result_.exact.products);
  }
}

std::size_t Recorder::element(const ElementPlace& place) const {
  const bool of_attention = (attention_stages & bit(place.stage)) != 0;
  const std::int64_t row = of_attention ? held_[static_cast<std::size_t>(place.row)] : place.row;
  return static_cast<std::size_t>(row * lengths_[place.stage] + place.column);
}

void Recorder::keep_value(const ElementPlace& place, double value) {
  result_.exact.values[place.stage][element(place)] = value;
  if (!has_point_[place.stage]) return;
  double& before = result_.exact.before[place.stage][element(place)];
  if (std::isnan(before)) before = value;
}

void Recorder::record(const ElementPlace& place, const Proven& proven, ElementRule rule) {
  keep_value(place, proven.hi);
  const std::int32_t slot = slot_[place.stage][static_cast<std::size_t>(place.row)];
  if (slot < 0) return;
  const auto i = static_cast<std::size_t>(slot * lengths_[place.stage] + place.column);
  ProvenStage& stage = result_.stages[place.stage];
  stage.expected[i] = proven.expected;
  stage.hi[i] = proven.hi;
  stage.lo[i] = proven.lo;
  stage.rule[i] = rule;
}

bool Recorder::settle(const ElementPlace& place, RealView lower, RealView upper, ElementRule rule) {
  if (is_stored(place.stage, place.row)) {
    const std::optional<Proven> proven = round_if_decided(lower, upper, formats_[place.stage]);
    if (!proven) return false;
    const bool is_exact = has_point_[place.stage] && mpfr_equal_p(lower, upper) != 0;
    record(place, *proven, is_exact && rule == ElementRule::budget ? ElementRule::budget_exact : rule);
    return true;
  }
  const std::optional<double> near = approximate_if_narrow(lower, upper);
  if (!near) return false;
  keep_value(place, *near);
  return true;
}

bool Recorder::copy(const ElementPlace& from, qkcts_stage stage) {
  const std::int32_t source = slot_[from.stage][static_cast<std::size_t>(from.row)];
  if (!is_stored(stage, from.row)) {
    result_.exact.values[stage][element(from)] = result_.exact.values[from.stage][element(from)];
    return true;
  }
  if (source < 0) return false;
  const auto i = static_cast<std::size_t>(source * lengths_[from.stage] + from.column);
  const ProvenStage& proven = result_.stages[from.stage];
  record({stage, from.row, from.column}, {proven.expected[i], proven.hi[i], proven.lo[i]}, proven.rule[i]);
  return true;
}

void Recorder::fix(const ElementPlace& place, double value, ElementRule rule) {
  Proven proven;
  proven.expected = encode(formats_[place.stage], value);
  proven.hi = value;
  if (has_point_[place.stage]) set_before(place, value);
  record(place, proven, rule);
}

}  // namespace qkcts
