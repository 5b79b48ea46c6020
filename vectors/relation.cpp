// SPDX-License-Identifier: Apache-2.0
#include "vectors/relation.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "conformance/json_schema.hpp"
#include "vectors/slug.hpp"

namespace qkcts {
namespace {

// Unless it is nothing: 0, an empty text or list.
template <class T>
void set_if_any(Json& json, const char* key, const T& value) {
  if constexpr (requires { value.empty(); }) {
    if (!value.empty()) json[key] = value;
  } else if (value != T{}) {
    json[key] = value;
  }
}

// The members that a kind has a use for, beside those that every relation has.
std::set<std::string_view> parameters_of(RelationKind kind) {
  switch (kind) {
    case RelationKind::score_bound:
      return {"bounds"};
    case RelationKind::weight_bound:
      return {"row_bounds"};
    case RelationKind::eps_rescaling:
    case RelationKind::value_scale:
      return {"exponent"};
    case RelationKind::common_shift:
    case RelationKind::shift_seen:
    case RelationKind::score_shift:
      return {"shift"};
    case RelationKind::batch_position:
      return {"entry"};
    case RelationKind::prefix:
      return {"from_key", "rows"};
    case RelationKind::key_permutation:
      return {"permutation"};
    case RelationKind::liveness:
      return {"neighbour"};
    default:
      return {};
  }
}

// Empty if the members are those of the kind: nothing missing that is not 0, nothing foreign.
std::string member_fault(const Json& json, RelationKind kind) {
  std::set<std::string_view> known = parameters_of(kind);
  for (const std::string_view name : known)
    if (!json.contains(std::string(name)) && name != "entry") return fmt::format("has no {}", name);
  known.insert({"kind", "id", "rule", "cases", "stages"});
  for (const auto& [key, value] : json.items())
    if (!known.contains(key)) return fmt::format("has no use for {}", key);
  return {};
}

std::string text_fault(const Json& json, const RelationRow& row) {
  if (json["id"] != row.id || json["rule"] != relation_rule_name(row.rule))
    return fmt::format("must have id {} and rule {}", row.id, relation_rule_name(row.rule));
  if (json["cases"].size() != row.cases) return fmt::format("must have {} case(s)", row.cases);
  return member_fault(json, row.kind);
}

StageSet stages_from(const Json& names) {
  StageSet stages = 0;
  for (const Json& name : names) {
    const std::optional<qkcts_stage> stage = stage_named(name.get<std::string>());
    if (!stage) return 0;
    stages |= bit(*stage);
  }
  return stages;
}

// With the keys and values of batches, rows and lanes inside the shapes.
std::string parameter_fault(const Relation& relation, std::span<const RelationCase> cases) {
  const qkcts_shape& s = cases[0].shape;
  const std::int64_t query_rows = s.batch * s.q_heads * s.q_len;
  if (!relation.row_bounds.empty() && static_cast<std::int64_t>(relation.row_bounds.size()) != query_rows)
    return "row_bounds are not one for each row";
  for (std::size_t i = 0; i < relation.rows.size(); ++i)
    if (relation.rows[i] >= query_rows || (i != 0 && relation.rows[i] <= relation.rows[i - 1]))
      return "rows is no ascending list of rows";
  if (relation.from_key > s.k_len) return "from_key lies behind the last key";
  if (!relation.permutation.empty()) {
    std::vector<std::uint32_t> sorted = relation.permutation;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i)
      if (sorted[i] != i) return "permutation is none";
    if (static_cast<std::int64_t>(sorted.size()) != s.k_len) return "permutation is not one of the keys";
  }
  return {};
}

std::string shape_relation_fault(const Relation& relation, const qkcts_shape& a, const qkcts_shape& b) {
  qkcts_shape expected = a;
  if (relation.kind == RelationKind::batch_position) {
    if (a.batch != 1 || relation.entry >= b.batch) return "entry is none of the batch";
    expected.batch = b.batch;
  }
  if (relation.kind == RelationKind::repeated_heads) expected.kv_heads = a.q_heads;
  const bool same = expected.batch == b.batch && expected.q_heads == b.q_heads && expected.kv_heads == b.kv_heads &&
                    expected.q_len == b.q_len && expected.k_len == b.k_len && expected.head_dim == b.head_dim &&
                    expected.v_head_dim == b.v_head_dim;
  return same ? std::string() : "the shapes of its cases do not belong together";
}

}  // namespace

std::string relation_text(const Relation& relation) {
  const RelationRow& row = qkcts::row(relation.kind);
  Json json = {{"kind", row.name}, {"id", row.id}, {"rule", relation_rule_name(row.rule)}, {"cases", relation.cases}};
  json["stages"] = Json::array();
  for (const qkcts_stage stage : all_stages)
    if ((relation.stages & bit(stage)) != 0) json["stages"].push_back(stage_name(stage));
  set_if_any(json, "exponent", relation.exponent);
  set_if_any(json, "shift", relation.shift);
  set_if_any(json, "entry", relation.entry);
  set_if_any(json, "from_key", relation.from_key);
  set_if_any(json, "rows", relation.rows);
  set_if_any(json, "permutation", relation.permutation);
  set_if_any(json, "neighbour", relation.neighbour);
  for (const qkcts_stage stage : all_stages)
    if (relation.bounds[stage] != 0) json["bounds"][std::string(stage_name(stage))] = relation.bounds[stage];
  set_if_any(json, "row_bounds", relation.row_bounds);
  return canonical_text(json);
}

Relation relation_from_text(const std::string& slug, const std::string& text, std::string_view origin) {
  const Json json = parse_json(text, origin);
  require_schema(json, "relation", origin);
  const std::optional<RelationKind> kind = relation_kind_named(json["kind"].get<std::string>());
  if (!kind) throw InputError(fmt::format("{}: names no kind of relation", origin));
  if (const std::string fault = text_fault(json, row(*kind)); !fault.empty())
    throw InputError(fmt::format("{}: {} {}", origin, row(*kind).name, fault));
  Relation relation;
  relation.slug = slug;
  relation.kind = *kind;
  relation.cases = json["cases"].get<std::vector<std::string>>();
  relation.stages = stages_from(json["stages"]);
  relation.exponent = json.value("exponent", 0);
  relation.shift = json.value("shift", 0.0);
  relation.entry = json.value("entry", std::int64_t{0});
  relation.from_key = json.value("from_key", std::int64_t{0});
  relation.rows = json.value("rows", relation.rows);
  relation.permutation = json.value("permutation", relation.permutation);
  relation.neighbour = json.value("neighbour", "");
  relation.row_bounds = json.value("row_bounds", relation.row_bounds);
  const Json bounds = json.value("bounds", Json::object());
  for (const auto& [name, bound] : bounds.items())
    if (const std::optional<qkcts_stage> stage = stage_named(name)) relation.bounds[*stage] = bound.get<double>();
  if (!std::all_of(relation.cases.begin(), relation.cases.end(), is_slug))
    throw InputError(fmt::format("{}: names no case", origin));
  // Unknown stages, spaces, other spellings of numbers: whatever would not be written like this.
  if (relation_text(relation) != text) throw InputError(fmt::format("{}: is not canonical", origin));
  return relation;
}

std::string relation_fault(const Relation& relation, std::span<const RelationCase> cases) {
  if (cases.size() != row(relation.kind).cases) return "has another number of cases than its kind";
  StageSet there = ~StageSet{0};
  for (const RelationCase& c : cases) there &= stages_of(c.terms);
  if (relation.stages == 0 || (relation.stages & ~there) != 0) return "compares stages that its cases do not have";
  if (cases.size() == 2 && cases[0].format != cases[1].format) return "has cases of two formats";
  for (const qkcts_stage stage : all_stages)
    if (relation.bounds[stage] != 0 && (relation.stages & bit(stage)) == 0) return "bounds a stage that it leaves out";
  if (std::string fault = parameter_fault(relation, cases); !fault.empty() || cases.size() < 2) return fault;
  return shape_relation_fault(relation, cases[0].shape, cases[1].shape);
}

}  // namespace qkcts
