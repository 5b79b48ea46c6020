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

Json field_json(const qkcts_contract& terms, const ContractField& field) {
  switch (field.type) {
    case FieldType::enumeration: {
      const auto value = field_value<std::uint32_t>(terms, field);
      if (value >= field.texts.size()) throw std::invalid_argument(field.path() + " holds no enumerator");
      return std::string(field.texts[value]);
    }
    case FieldType::flag:
      return field_value<std::uint32_t>(terms, field) != 0;
    case FieldType::lanes: {
      const auto value = field_value<std::uint32_t>(terms, field);
      return value == 0 ? Json() : Json(value);
    }
    case FieldType::number:
      return field_value<double>(terms, field);
    case FieldType::optional_number: {
      const auto value = field_value<double>(terms, field);
      return value == 0 ? Json() : Json(value);
    }
    case FieldType::optional_integer: {
      const auto value = field_value<std::int64_t>(terms, field);
      return value == 0 ? Json() : Json(value);
    }
    case FieldType::integer:
      break;
  }
  return field_value<std::int64_t>(terms, field);
}

std::size_t field_size(FieldType type) {
  return type == FieldType::enumeration || type == FieldType::flag || type == FieldType::lanes ? 4 : 8;
}

// Holds the field, as normalised, what an older reader takes for granted?
bool at_default(const qkcts_contract& terms, const ContractField& field) {
  if (field.type == FieldType::number) return field_value<double>(terms, field) == field.standard;
  const std::byte zero[8] = {};
  return std::memcmp(reinterpret_cast<const char*>(&terms) + field.offset, zero, field_size(field.type)) == 0;
}

bool written(const qkcts_contract& terms, const ContractField& field) {
  return field.meant(terms) && (field.presence == Presence::always || !at_default(terms, field));
}

Json window_json(const qkcts_mask& mask) {
  if (mask.has_window == 0) return {};
  const auto side = [](std::int64_t value) { return value < 0 ? Json() : Json(value); };
  return {{"left", side(mask.window_left)}, {"right", side(mask.window_right)}};
}

// Sections and keys of the clauses alone.
Json clauses_json(const qkcts_contract& terms) {
  Json document = Json::object();
  for (const NormSection& section : norm_sections())
    if (section.written(terms))
      document[std::string(section.name)]["kind"] = std::string(norm_kind(norm_of(terms, section)));
  document["mask"]["window"] = window_json(terms.mask);
  for (const ContractField& field : contract_field_table())
    if (written(terms, field)) document[std::string(field.section)][std::string(field.key)] = field_json(terms, field);
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
  for (const NormSection& section : norm_sections())
    if (section.meant(terms)) norm_of(result, section).applied = norm_of(terms, section).applied;
  result.mask.has_window = terms.mask.has_window;
  if (terms.mask.has_window != 0) {
    result.mask.window_left = terms.mask.window_left < 0 ? -1 : terms.mask.window_left;
    result.mask.window_right = terms.mask.window_right < 0 ? -1 : terms.mask.window_right;
  }
  for (const ContractField& field : contract_field_table()) {
    if (!field.meant(terms)) continue;
    std::memcpy(reinterpret_cast<char*>(&result) + field.offset, reinterpret_cast<const char*>(&terms) + field.offset,
                field_size(field.type));
    if (field.standard != 0 && field_value<double>(result, field) == 0)
      std::memcpy(reinterpret_cast<char*>(&result) + field.offset, &field.standard, sizeof field.standard);
  }
  if (!has_rounding_points(result.rounding)) result.rounding.saturate = 0;  // its points had no meaning
  return result;
}

std::vector<FieldValue> contract_field_values(const qkcts_contract& terms) {
  const qkcts_contract plain = normalised(terms);
  std::vector<FieldValue> values;
  for (const NormSection& section : norm_sections()) {
    if (!section.meant(plain)) continue;
    const qkcts_norm& norm = norm_of(plain, section);
    const bool by_claim = section.presence == Presence::beside_default && norm.applied != 0;
    values.push_back({section.path(), section.clause, canonical_text(std::string(norm_kind(norm))), by_claim});
  }
  for (const ContractField& field : contract_field_table()) {
    if (!field.meant(plain)) continue;
    const bool by_claim = field.presence == Presence::beside_default && !at_default(plain, field);
    values.push_back({field.path(), field.clause, canonical_text(field_json(plain, field)), by_claim});
  }
  values.push_back({"mask.window", "QK-MASK-05", canonical_text(window_json(plain.mask))});
  return values;
}

std::vector<std::string> contract_field_paths() {
  std::vector<std::string> paths = {"mask.window"};
  for (const NormSection& section : norm_sections()) paths.push_back(section.path());
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
