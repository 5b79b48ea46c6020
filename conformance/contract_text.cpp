// SPDX-License-Identifier: Apache-2.0
// C struct -> canonical JSON, its digest, and what tells two contracts apart.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "conformance/contract.hpp"
#include "conformance/contract_field.hpp"
#include "conformance/digest.hpp"
#include "conformance/json.hpp"

namespace qkcts {
namespace {

template <typename Value>
Value load(const qkcts_contract& terms, const ContractField& field) {
  Value value;
  std::memcpy(&value, reinterpret_cast<const char*>(&terms) + field.offset, sizeof value);
  return value;
}

Json field_json(const qkcts_contract& terms, const ContractField& field) {
  switch (field.type) {
    case FieldType::enumeration: {
      const auto value = load<std::uint32_t>(terms, field);
      if (value >= field.texts.size()) throw std::invalid_argument(field.path() + " holds no enumerator");
      return std::string(field.texts[value]);
    }
    case FieldType::flag:
      return load<std::uint32_t>(terms, field) != 0;
    case FieldType::lanes: {
      const auto value = load<std::uint32_t>(terms, field);
      return value == 0 ? Json() : Json(value);
    }
    case FieldType::number:
      return load<double>(terms, field);
    case FieldType::optional_number: {
      const auto value = load<double>(terms, field);
      return value == 0 ? Json() : Json(value);
    }
    case FieldType::integer:
      break;
  }
  return load<std::int64_t>(terms, field);
}

Json window_json(const qkcts_mask& mask) {
  if (mask.has_window == 0) return {};
  const auto side = [](std::int64_t value) { return value < 0 ? Json() : Json(value); };
  return {{"left", side(mask.window_left)}, {"right", side(mask.window_right)}};
}

// Sections and keys of the clauses alone.
Json clauses_json(const qkcts_contract& terms) {
  Json document = Json::object();
  document["q_norm"]["kind"] = std::string(norm_kind(terms.q_norm));
  document["k_norm"]["kind"] = std::string(norm_kind(terms.k_norm));
  document["mask"]["window"] = window_json(terms.mask);
  for (const ContractField& field : contract_field_table())
    if (field.meant(terms)) document[std::string(field.section)][std::string(field.key)] = field_json(terms, field);
  return document;
}

std::string display(const std::string& json) {
  return json.size() > 1 && json.front() == '"' ? json.substr(1, json.size() - 2) : json;
}

}  // namespace

qkcts_contract normalised(const qkcts_contract& terms) {
  qkcts_contract result{};
  result.struct_size = sizeof result;
  result.version = QKCTS_CONTRACT_VERSION;
  result.q_norm.applied = terms.q_norm.applied;
  result.k_norm.applied = terms.k_norm.applied;
  result.mask.has_window = terms.mask.has_window;
  if (terms.mask.has_window != 0) {
    result.mask.window_left = terms.mask.window_left < 0 ? -1 : terms.mask.window_left;
    result.mask.window_right = terms.mask.window_right < 0 ? -1 : terms.mask.window_right;
  }
  for (const ContractField& field : contract_field_table()) {
    if (!field.meant(terms)) continue;
    const std::size_t size =
        field.type == FieldType::number || field.type == FieldType::optional_number || field.type == FieldType::integer
            ? 8
            : 4;
    std::memcpy(reinterpret_cast<char*>(&result) + field.offset, reinterpret_cast<const char*>(&terms) + field.offset,
                size);
  }
  if (result.score.temperature == 0) result.score.temperature = 1;
  return result;
}

std::vector<FieldValue> contract_field_values(const qkcts_contract& terms) {
  const qkcts_contract plain = normalised(terms);
  const Json document = clauses_json(plain);
  std::vector<FieldValue> values;
  const auto add = [&](std::string_view section, std::string_view key, std::string_view clause) {
    const Json& value = document.at(std::string(section)).at(std::string(key));
    values.push_back({std::string(section) + "." + std::string(key), clause, canonical_text(value)});
  };
  add("q_norm", "kind", "QK-NORM-01");
  add("k_norm", "kind", "QK-NORM-01");
  for (const ContractField& field : contract_field_table())
    if (field.meant(plain)) add(field.section, field.key, field.clause);
  add("mask", "window", "QK-MASK-05");
  return values;
}

std::vector<std::string> contract_field_paths() {
  std::vector<std::string> paths = {"q_norm.kind", "k_norm.kind", "mask.window"};
  for (const ContractField& field : contract_field_table()) paths.push_back(field.path());
  return paths;
}

std::string canonical_json(const Contract& contract) {
  Json document = clauses_json(normalised(contract.terms));
  document["schema"] = "qkcts-contract/1";
  document["name"] = contract.name;
  document["title"] = contract.title;
  document["sources"] = contract.sources;
  if (contract.model_shape.q_heads > 0)
    document["model"] = {{"q_heads", contract.model_shape.q_heads},
                         {"kv_heads", contract.model_shape.kv_heads},
                         {"head_dim", contract.model_shape.head_dim},
                         {"v_head_dim", contract.model_shape.v_head_dim}};
  return canonical_text(document);
}

std::string contract_digest(const Contract& contract) {
  return sha256_hex(canonical_text(clauses_json(normalised(contract.terms))));
}

// A field that has a meaning on one side only is governed by another field (kind, gain, order, ...) that differs as
// well and says it all.
std::vector<ClauseDifference> contract_differences(const Contract& left, const Contract& right) {
  const std::vector<FieldValue> others = contract_field_values(right.terms);
  std::vector<ClauseDifference> differences;
  for (const FieldValue& value : contract_field_values(left.terms)) {
    const auto other =
        std::find_if(others.begin(), others.end(), [&](const FieldValue& o) { return o.path == value.path; });
    if (other == others.end() || other->json == value.json) continue;
    ClauseDifference difference{std::string(value.clause), value.path, display(value.json), display(other->json)};
    // Between two norms, center and statistic say which part of the kind differs.
    if (value.path.ends_with(".kind") && difference.left != "none" && difference.right != "none") continue;
    differences.push_back(std::move(difference));
  }
  return differences;
}

}  // namespace qkcts
