// SPDX-License-Identifier: Apache-2.0
#include "vectors/case_reading.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "conformance/special_values.hpp"
#include "vectors/layout.hpp"
#include "vectors/schema.hpp"

namespace qkcts {
namespace {

namespace attribute = schema::attribute;

std::vector<std::uint64_t> widened(const std::vector<std::byte>& bytes, std::size_t size) {
  std::vector<std::uint64_t> patterns(bytes.size() / size, 0);
  for (std::size_t i = 0; i < patterns.size(); ++i) std::memcpy(&patterns[i], bytes.data() + i * size, size);
  return patterns;
}

// Hidden keys have scores that nobody looks at, and where their numbers may be anything, rows too.
bool may_hold_hidden_elements(qkcts_stage stage, const qkcts_contract& terms) {
  const bool of_scores = stage == QKCTS_STAGE_SCORES || stage == QKCTS_STAGE_CAPPED || stage == QKCTS_STAGE_MASKED;
  return of_scores || (is_of_keys(stage) && terms.softmax.hidden_values == QKCTS_HIDDEN_EXCLUDED);
}

// Field and value, as neighbours() names them. What is printed of a file holds no control characters.
bool is_neighbour_name(const std::string& name) {
  const auto printable = [](char c) { return c > ' ' && c <= '~'; };
  return name.size() <= schema::longest_neighbour && name.find('=') != std::string::npos && name[0] != '=' &&
         std::all_of(name.begin(), name.end(), printable);
}

}  // namespace

void CaseReading::refuse(const std::string& object, std::string_view reason) const {
  throw InputError(fmt::format("{}: /{}: {}", file_.path(), object, reason));
}

std::vector<std::string> CaseReading::expect_members(const std::string& group, const std::vector<std::string>& required,
                                                     const std::vector<std::string>& optional) const {
  std::vector<std::string> found;
  for (const StoredMember& member : file_.members(group)) {
    const auto is = [&member](const std::string& name) { return name == member.name; };
    if (std::none_of(required.begin(), required.end(), is) && std::none_of(optional.begin(), optional.end(), is))
      refuse(fmt::format("{}/{}", group, member.name), "does not belong there");
    found.push_back(member.name);
  }
  for (const std::string& name : required)
    if (std::find(found.begin(), found.end(), name) == found.end())
      refuse(fmt::format("{}/{}", group, name), "is missing");
  return found;
}

std::vector<std::byte> CaseReading::dataset(const std::string& name, StoredType type,
                                            const std::vector<std::uint64_t>& extents) {
  const StoredDataset stored = file_.describe(name);
  if (stored.type != type) refuse(name, "has another element type than the contract and format say");
  if (stored.extents != extents) refuse(name, "has another shape than the contract says");
  return take(name, stored.bytes);
}

std::vector<std::byte> CaseReading::take(const std::string& name, std::uint64_t bytes) {
  if (bytes > schema::largest_case_bytes - taken_) refuse(name, "makes the case larger than 512 MiB");
  taken_ += bytes;
  return file_.read(name);
}

qkcts_shape CaseReading::shape() const {
  const auto s = as_array<std::int64_t>(file_.read_numbers(group_, attribute::shape, StoredType::int64, 7));
  return {s[0], s[1], s[2], s[3], s[4], s[5], s[6]};
}

Range CaseReading::range(const char* name) const {
  const auto values = as_array<double>(file_.read_numbers(group_, name, StoredType::binary64, 3));
  return {values[0], values[1], values[2]};
}

Format CaseReading::format() const {
  const std::string name = file_.read_text(group_, attribute::format);
  const std::optional<Format> format = storage_format_named(name);
  if (!format) refuse(group_, "attribute format names no storage format");
  return *format;
}

Tensor CaseReading::input(const InputRequirement& need, const qkcts_shape& shape) {
  const std::string name = fmt::format("{}/{}/{}", group_, schema::inputs, input_name(need.input));
  const StoredDataset stored = file_.describe(name);
  if (stored.type != stored_type(need.type)) refuse(name, "has another element type than the contract and format say");
  bool fits = stored.extents.size() == need.shape.size();
  for (std::size_t axis = 0; fits && axis < need.shape.size(); ++axis) {
    const auto extent = static_cast<std::int64_t>(stored.extents[axis]);
    if (need.shape[axis] >= 0) fits = extent == need.shape[axis];
    if (need.shape[axis] == -1) fits = extent == 1 || extent == (axis == 0 ? shape.batch : shape.q_heads);
  }
  if (!fits) refuse(name, "has another shape than the contract says");
  Tensor tensor{need.type, {stored.extents.begin(), stored.extents.end()}, take(name, stored.bytes)};
  return tensor;
}

std::vector<std::uint32_t> CaseReading::all_rows(const std::string& group, qkcts_stage stage,
                                                 const qkcts_shape& shape) const {
  const auto all = static_cast<std::uint64_t>(row_count(stage, shape));
  if (all > schema::largest_case_bytes / 16) refuse(group, "has too many rows");
  std::vector<std::uint32_t> rows(all);
  std::iota(rows.begin(), rows.end(), 0U);
  return rows;
}

std::vector<std::uint32_t> CaseReading::some_rows(const std::string& group, qkcts_stage stage,
                                                  const qkcts_shape& shape) {
  const auto all = static_cast<std::uint64_t>(row_count(stage, shape));
  const std::string name = group + "/" + schema::rows;
  if (stage == QKCTS_STAGE_LSE || stage == QKCTS_STAGE_OUTPUT) refuse(name, "must be absent: every row is stored");
  const StoredDataset stored = file_.describe(name);
  if (stored.extents.size() != 1 || stored.extents[0] >= all) refuse(name, "does not select some of the rows");
  auto rows = as_array<std::uint32_t>(dataset(name, StoredType::uint32, stored.extents));
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] >= all || (i != 0 && rows[i] <= rows[i - 1])) refuse(name, "is no ascending list of rows");
  return rows;
}

void CaseReading::check_values(const std::string& group, qkcts_stage stage, const Case& c,
                               const GoldenStage& golden) const {
  const bool may_hide = may_hold_hidden_elements(stage, c.contract.terms);
  bool by_class = false;
  for (const ElementRule rule : golden.values.rule) {
    if (rule > ElementRule::free) refuse(group + "/" + schema::rule, "holds an unknown rule");
    by_class = by_class || rule > ElementRule::hidden;
    if (rule == ElementRule::hidden && !may_hide)
      refuse(group + "/" + schema::rule, "calls an element hidden in a stage that hides nothing");
  }
  for (const StageBudget& budget : golden.budgets)
    for (std::size_t i = 0; i < budget.delta.size(); ++i) {
      if (budget.trust[i] > Trust::domain) refuse(group + "/" + schema::trust, "holds an unknown trust");
      if (!(budget.delta[i] >= 0)) refuse(group + "/" + schema::budget, "holds a negative number or NaN");
      if (std::isinf(budget.delta[i]) && budget.trust[i] == Trust::judged)
        refuse(group + "/" + schema::budget, "is infinite for an element that is judged");
    }
  if (by_class) check_special(group, stage, c, golden);
}

// What special values reach has nothing beside its class.
void CaseReading::check_special(const std::string& group, qkcts_stage stage, const Case& c,
                                const GoldenStage& golden) const {
  if (!has_special_values(c)) refuse(group + "/" + schema::rule, "judges by class, though every input is a number");
  const ProvenStage& values = golden.values;
  const Format format = stage_format(stage, c.inputs.format);
  for (std::size_t i = 0; i < values.rule.size(); ++i) {
    const ElementRule rule = values.rule[i];
    if (rule <= ElementRule::hidden) continue;
    const bool fits = rule == ElementRule::special ? !std::isfinite(values.hi[i]) : std::isnan(values.hi[i]);
    if (!fits || values.lo[i] != 0 || values.expected[i] != encode(format, values.hi[i]))
      refuse(group + "/" + schema::expected, "holds a number where a class alone is judged");
    for (const StageBudget& budget : golden.budgets) {
      const bool open = budget.trust[i] == Trust::domain && std::isinf(budget.delta[i]);
      const bool judged = budget.trust[i] == Trust::judged && budget.delta[i] == 0;
      if (rule == ElementRule::free ? !open : !judged)
        refuse(group + "/" + schema::budget, "does not fit an element whose class alone is judged");
    }
  }
}

GoldenStage CaseReading::stage(qkcts_stage stage, const Case& c, std::size_t profiles) {
  const std::string group = fmt::format("{}/{}/{}", group_, schema::stages, stage_name(stage));
  const std::string name = group + "/";
  const std::vector<std::string> members =
      expect_members(group, {schema::expected, schema::value_hi, schema::value_lo, schema::budget},
                     {schema::rows, schema::rule, schema::trust});
  const auto has = [&members](const char* member) {
    return std::find(members.begin(), members.end(), member) != members.end();
  };
  GoldenStage golden;
  golden.present = true;
  ProvenStage& values = golden.values;
  values.rows = has(schema::rows) ? some_rows(group, stage, c.shape) : all_rows(group, stage, c.shape);
  const StageLayout layout = stage_layout(stage, c.shape, values.rows.size());
  const StageLayout profiled = per_profile(layout, profiles);
  const ElementType type = element_type(stage_format(stage, c.inputs.format));
  values.expected = widened(dataset(name + schema::expected, stored_type(type), layout.extents), element_size(type));
  values.hi = as_array<double>(dataset(name + schema::value_hi, StoredType::binary64, layout.extents));
  values.lo = as_array<std::int16_t>(dataset(name + schema::value_lo, StoredType::int16, layout.extents));
  const std::size_t count = values.expected.size();
  values.rule.assign(count, ElementRule::budget);
  if (has(schema::rule))
    values.rule = as_array<ElementRule>(dataset(name + schema::rule, StoredType::uint8, layout.extents));
  const auto budgets = as_array<float>(dataset(name + schema::budget, StoredType::binary32, profiled.extents));
  std::vector<Trust> trust(count * profiles, Trust::judged);
  if (has(schema::trust)) trust = as_array<Trust>(dataset(name + schema::trust, StoredType::uint8, profiled.extents));
  for (std::size_t profile = 0; profile < profiles; ++profile) {
    const auto first = static_cast<std::ptrdiff_t>(profile * count);
    const auto last = first + static_cast<std::ptrdiff_t>(count);
    golden.budgets.push_back(
        {{budgets.begin() + first, budgets.begin() + last}, {trust.begin() + first, trust.begin() + last}});
  }
  check_values(group, stage, c, golden);
  return golden;
}

void CaseReading::check_separation(const SeparationRecord& record, const GoldenCase& golden) const {
  const std::string name = fmt::format("{}/{}/", group_, schema::separation);
  std::size_t i = 0;
  for (std::size_t neighbour = 0; neighbour < record.neighbours.size(); ++neighbour)
    for (const qkcts_stage stage : all_stages) {
      if (!golden.stages[stage].present) continue;
      const std::vector<std::uint32_t>& rows = golden.stages[stage].values.rows;
      for (std::size_t profile = 0; profile < golden.profiles.size(); ++profile, ++i) {
        const auto bits = std::bit_cast<std::uint32_t>(record.values[i]);
        const std::uint32_t row = record.places[2 * i], column = record.places[2 * i + 1];
        if (bits != std::bit_cast<std::uint32_t>(no_separation) && bits > 0x7f800000)
          refuse(name + schema::separation_value, "holds a negative number or a NaN that is not the canonical one");
        if (!(record.values[i] > 0) && (row != 0 || column != 0))
          refuse(name + schema::separation_place, "names an element where there is none");
        if (record.values[i] > 0 && (!std::binary_search(rows.begin(), rows.end(), row) ||
                                     column >= static_cast<std::uint64_t>(row_length(stage, golden.input.shape))))
          refuse(name + schema::separation_place, "names an element that is not stored");
      }
    }
}

SeparationRecord CaseReading::separation(const GoldenCase& golden) {
  const std::string group = fmt::format("{}/{}", group_, schema::separation);
  expect_members(group, {schema::separation_value, schema::separation_place});
  SeparationRecord record;
  record.neighbours = file_.read_texts(group, schema::attribute::neighbours);
  const std::set<std::string> names(record.neighbours.begin(), record.neighbours.end());
  if (record.neighbours.empty() || names.size() != record.neighbours.size() ||
      !std::all_of(names.begin(), names.end(), is_neighbour_name))
    refuse(group, "attribute neighbours is no list of different clauses and values");
  const StageLayout layout =
      separation_layout(record.neighbours.size(), stages_of(golden.input.contract.terms), golden.profiles.size());
  record.values = as_array<float>(
      dataset(fmt::format("{}/{}", group, schema::separation_value), StoredType::binary32, layout.extents));
  record.places = as_array<std::uint32_t>(dataset(fmt::format("{}/{}", group, schema::separation_place),
                                                  StoredType::uint32, with_coordinates(layout).extents));
  check_separation(record, golden);
  return record;
}

}  // namespace qkcts
