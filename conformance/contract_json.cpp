// SPDX-License-Identifier: Apache-2.0
// JSON -> C struct. The schema says which keys and types exist; this file says which are required when, and fills in
// the defaults of docs/contract.md, section "The JSON form".
#include <cstring>

#include <fmt/format.h>

#include "conformance/contract.hpp"
#include "conformance/contract_field.hpp"
#include "conformance/json.hpp"
#include "conformance/json_schema.hpp"

namespace qkcts {
namespace {

// The file, and what went wrong at which place in it.
class Fault {
 public:
  explicit Fault(std::string_view origin) : origin_(origin) {}
  [[noreturn]] void at(std::string_view pointer, std::string_view reason) const {
    throw InputError(fmt::format("{}: {}: {}", origin_, pointer, reason));
  }

 private:
  std::string_view origin_;
};

std::string pointer_of(const ContractField& field) {
  return fmt::format("/{}/{}", field.section, field.key);
}

std::uint32_t enumerator(const ContractField& field, const std::string& text, const Fault& fault) {
  std::string allowed;
  for (std::uint32_t i = 0; i < field.texts.size(); ++i) {
    if (field.texts[i] == text) return i;
    allowed += (i == 0 ? "" : ", ") + std::string(field.texts[i]);
  }
  fault.at(pointer_of(field), fmt::format("\"{}\" is unknown; allowed: {}", text, allowed));
}

void read_field(qkcts_contract& terms, const ContractField& field, const Json& value, const Fault& fault) {
  switch (field.type) {
    case FieldType::enumeration:
      set_field_value(terms, field, enumerator(field, value.get<std::string>(), fault));
      break;
    case FieldType::flag:
      set_field_value(terms, field, static_cast<std::uint32_t>(value.get<bool>() ? 1 : 0));
      break;
    case FieldType::lanes:
      set_field_value(terms, field, value.is_null() ? std::uint32_t{0} : value.get<std::uint32_t>());
      break;
    case FieldType::number:
      set_field_value(terms, field, value.get<double>() + 0.0);  // -0 becomes 0
      break;
    case FieldType::optional_number:
      set_field_value(terms, field, value.is_null() ? 0.0 : value.get<double>());
      break;
    case FieldType::integer:
      set_field_value(terms, field, value.get<std::int64_t>());
      break;
    case FieldType::optional_integer:
      set_field_value(terms, field, value.is_null() ? std::int64_t{0} : value.get<std::int64_t>());
      break;
  }
}

// `kind` names a combination; a file may write the combination itself, or both if they agree.
void read_norm_kind(qkcts_norm& norm, const Json& section, const std::string& pointer, const Fault& fault) {
  norm.applied = 1;
  if (!section.contains("kind")) {
    if (!section.contains("center") || !section.contains("statistic"))
      fault.at(pointer, "give \"kind\", or both \"center\" and \"statistic\"");
    return;
  }
  const std::string kind = section.at("kind").get<std::string>();
  qkcts_norm wanted{};
  std::string allowed;
  for (const std::uint32_t applied : {0U, 1U})
    for (const std::uint32_t statistic : {0U, 1U})
      for (const std::uint32_t center : {0U, 1U}) {
        if (applied == 0 && (center != 0 || statistic != 0)) continue;
        const qkcts_norm candidate{applied, center, statistic};
        if (norm_kind(candidate) == kind) wanted = candidate;
        allowed += (allowed.empty() ? "" : ", ") + std::string(norm_kind(candidate));
      }
  if (norm_kind(wanted) != kind)
    fault.at(pointer + "/kind", fmt::format("\"{}\" is unknown; allowed: {}", kind, allowed));
  if (wanted.applied == 0) {
    for (const auto& [key, value] : section.items())
      if (key != "kind" && key != "clip_before" && key != "multiplier" && key != "clip_after")
        fault.at(fmt::format("{}/{}", pointer, key), "has no meaning beside kind \"none\": remove it");
    norm = qkcts_norm{};
    return;
  }
  const bool agrees = (!section.contains("center") || norm.center == wanted.center) &&
                      (!section.contains("statistic") || norm.statistic == wanted.statistic);
  if (!agrees) fault.at(pointer, fmt::format("center and statistic contradict kind \"{}\"", kind));
  norm.center = wanted.center;
  norm.statistic = wanted.statistic;
}

void read_window(qkcts_mask& mask, const Json& section) {
  if (!section.contains("window") || section.at("window").is_null()) return;
  const auto side = [&](const char* key) {
    const Json& value = section.at("window").at(key);
    return value.is_null() ? std::int64_t{-1} : value.get<std::int64_t>();
  };
  mask.has_window = 1;
  mask.window_left = side("left");
  mask.window_right = side("right");
}

// A field that a contract may not leave to a default once it has a meaning: two readers would guess differently.
bool guessable(const ContractField& field) {
  for (const std::string_view key :
       {"root", "eps", "gain_axes", "order", "pairing", "theta", "scale_form", "scale_value", "alignment", "empty_row",
        "offset", "factor", "original_length", "low", "high", "query_alpha", "query_period", "query_shift"})
    if (field.key == key) return false;
  return true;
}

// A section that came with ABI 1.1 or 1.2 may be missing as a whole.
const Json& section_of(const Json& document, std::string_view name) {
  static const Json absent = Json::object();
  return document.contains(name) ? document.at(name) : absent;
}

void check_presence(const qkcts_contract& terms, const Json& document, const Fault& fault) {
  for (const NormSection& section : norm_sections())
    if (!section.meant(terms) && norm_of(terms, section).applied != 0)
      fault.at(fmt::format("/{}", section.name), "has no meaning beside the other clauses: remove it");
  for (const ContractField& field : contract_field_table()) {
    const bool given = section_of(document, field.section).contains(field.key);
    const bool meant = field.meant(terms);
    if (meant && !given && !guessable(field))
      fault.at(fmt::format("/{}", field.section), fmt::format("key \"{}\" is missing", field.key));
    if (!meant && given && field.key != "span" && field.key != "variance" && field.key != "empty_row" &&
        !(field.type == FieldType::enumeration && section_of(document, field.section).at(field.key) == "none"))
      fault.at(pointer_of(field), "has no meaning beside the other clauses: remove it");
  }
}

}  // namespace

Contract contract_from_json(std::string_view text, std::string_view origin) {
  const Json document = parse_json(text, origin);
  require_schema(document, "contract", origin);
  const Fault fault(origin);
  Contract contract;
  contract.name = document.at("name").get<std::string>();
  if (contract.name.empty() ||
      contract.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
    fault.at("/name", "must be one or more of a-z, 0-9 and _");
  contract.title = document.value("title", std::string());
  contract.sources = document.value("sources", std::vector<std::string>());
  if (document.contains("model")) {
    const Json& model = document.at("model");
    contract.model_shape.q_heads = model.at("q_heads").get<std::int64_t>();
    contract.model_shape.kv_heads = model.at("kv_heads").get<std::int64_t>();
    contract.model_shape.head_dim = model.at("head_dim").get<std::int64_t>();
    contract.model_shape.v_head_dim = model.value("v_head_dim", contract.model_shape.head_dim);
    if (contract.model_shape.q_heads % contract.model_shape.kv_heads != 0)
      fault.at("/model", "q_heads must be a multiple of kv_heads");
  }
  qkcts_contract terms{};
  for (const ContractField& field : contract_field_table()) {
    const Json& section = section_of(document, field.section);
    if (section.contains(field.key)) read_field(terms, field, section.at(field.key), fault);
  }
  for (const NormSection& section : norm_sections())
    if (document.contains(section.name))
      read_norm_kind(norm_of(terms, section), document.at(section.name), "/" + std::string(section.name), fault);
  read_window(terms.mask, document.at("mask"));
  check_presence(terms, document, fault);
  if (const std::string rule = contract_fault(terms); !rule.empty()) {
    const std::size_t end = rule.find_first_of(" .");
    const bool named = document.contains(rule.substr(0, end));
    fault.at(named ? "/" + rule.substr(0, end) : "/", rule);
  }
  contract.terms = normalised(terms);
  return contract;
}

}  // namespace qkcts
