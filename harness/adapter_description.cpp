// SPDX-License-Identifier: Apache-2.0
#include "harness/adapter_description.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "conformance/contract_field.hpp"
#include "conformance/json_schema.hpp"
#include "harness/adapter_error.hpp"
#include "harness/utf8_text.hpp"

namespace qkcts {
namespace {

struct ShapeField {
  std::string_view name;
  std::int64_t qkcts_shape::*extent;
};

constexpr std::array shape_fields = {
    ShapeField{"batch", &qkcts_shape::batch},          ShapeField{"q_heads", &qkcts_shape::q_heads},
    ShapeField{"kv_heads", &qkcts_shape::kv_heads},    ShapeField{"q_len", &qkcts_shape::q_len},
    ShapeField{"k_len", &qkcts_shape::k_len},          ShapeField{"head_dim", &qkcts_shape::head_dim},
    ShapeField{"v_head_dim", &qkcts_shape::v_head_dim}};

std::optional<std::int64_t> optional_integer(const Json& object, const char* key) {
  if (!object.contains(key)) return std::nullopt;
  return object.at(key).get<std::int64_t>();
}

Claim claim(const Json& document, const char* name) {
  return document.value("claims", Json::object()).value(name, false) ? Claim::made : Claim::not_made;
}

// In a list of /supports: every value. Only for fields of numbers, since a later version may know further enumerators.
constexpr const char* any_number = "\"*\"";

// Canonical JSON of the values that a field can have at all; empty if they are numbers.
std::vector<std::string> possible_values(const std::string& path) {
  const auto quoted = [](std::span<const std::string_view> texts) {
    std::vector<std::string> values;
    for (const std::string_view text : texts) values.push_back(fmt::format("\"{}\"", text));
    return values;
  };
  const std::span<const NormSection> norms = norm_sections();
  if (std::any_of(norms.begin(), norms.end(), [&](const NormSection& norm) { return norm.path() == path; })) {
    std::vector<std::string> values = quoted(norm_kind_texts());
    if (std::find(values.begin(), values.end(), "\"none\"") == values.end()) values.emplace_back("\"none\"");
    return values;
  }
  for (const ContractField& field : contract_field_table()) {
    if (field.path() != path) continue;
    if (field.type == FieldType::enumeration) return quoted(field.texts);
    if (field.type == FieldType::flag) return {"true", "false"};
  }
  return {};
}

void read_supports(AdapterDescription& description, const Json& supports, std::string_view origin) {
  const std::vector<std::string> paths = contract_field_paths();
  for (const auto& [path, values] : supports.items()) {
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) {
      throw InputError(
          fmt::format("{}: /supports/{}: no such contract field; there are: {}", origin, path, fmt::join(paths, ", ")));
    }
    auto& allowed = description.supports[path];
    const std::vector<std::string> possible = possible_values(path);
    for (const Json& value : values) {
      allowed.push_back(canonical_text(value));
      if (!possible.empty() && std::find(possible.begin(), possible.end(), allowed.back()) == possible.end()) {
        throw InputError(fmt::format("{}: /supports/{}: {} is no value of this field; allowed: {}", origin, path,
                                     allowed.back(), fmt::join(possible, ", ")));
      }
    }
  }
}

std::string limit_breach(const ShapeField& field, const ShapeLimit& limit, std::int64_t extent) {
  if (limit.min && extent < *limit.min) return fmt::format("{} {} is less than {}", field.name, extent, *limit.min);
  if (limit.max && extent > *limit.max) return fmt::format("{} {} is more than {}", field.name, extent, *limit.max);
  if (limit.multiple_of && extent % *limit.multiple_of != 0) {
    return fmt::format("{} {} is no multiple of {}", field.name, extent, *limit.multiple_of);
  }
  return {};
}

}  // namespace

AdapterDescription description_from_json(std::string_view text, std::string_view origin) {
  const Json document = parse_json(text, origin);
  require_schema(document, "adapter_describe", origin);
  AdapterDescription description;
  description.text = canonical_text(document);
  description.name = utf8_line(document.at("name").get<std::string>());
  description.version = utf8_line(document.at("version").get<std::string>());
  description.build = utf8_text(document.value("build", ""));
  description.device = utf8_text(document.value("device", ""));
  for (const Json& name : document.at("formats")) description.formats.push_back(*format_named(name.get<std::string>()));
  for (const Json& name : document.at("stages")) description.stages |= bit(*stage_named(name.get<std::string>()));
  for (const auto& [format, name] : document.at("profile").items()) {
    description.profile[*format_named(format)] = name.get<std::string>();
  }
  read_supports(description, document.value("supports", Json::object()), origin);
  const Json limits = document.value("limits", Json::object());
  for (const auto& [field, limit] : limits.items()) {
    description.limits[field] = {optional_integer(limit, "min"), optional_integer(limit, "max"),
                                 optional_integer(limit, "multiple_of")};
  }
  for (const Format format : description.formats) {
    if (description.profile.contains(format)) continue;
    throw InputError(fmt::format("{}: /profile: names no machine profile for {}, which /formats declares", origin,
                                 parameters(format).name));
  }
  description.alignment = document.value("alignment", std::size_t{1});
  for (const Json& name : document.value("layouts", Json::array()))
    description.layouts.push_back(*layout_named(name.get<std::string>()));
  description.bitwise_repeatable = claim(document, "bitwise_repeatable");
  description.batch_invariant = claim(document, "batch_invariant");
  description.data_dependent_order = document.value("data_dependent_order", false) ? Claim::made : Claim::not_made;
  if (!description.formats.empty() && (description.stages & bit(QKCTS_STAGE_OUTPUT)) == 0) {
    throw InputError(
        fmt::format("{}: /stages: `output` is missing; only an adapter without formats may leave it out", origin));
  }
  return description;
}

AdapterDescription description_from_adapter(std::string_view text, const std::string& given) {
  try {
    return description_from_json(text, given + ": describe()");
  } catch (const InputError& error) {
    throw AdapterError(error.what());
  }
}

std::string unsupported_reason(const AdapterDescription& description, const Case& c) {
  const Format format = c.inputs.format;
  if (std::find(description.formats.begin(), description.formats.end(), format) == description.formats.end()) {
    return fmt::format("format {}", parameters(format).name);
  }
  for (const FieldValue& field : contract_field_values(c.contract.terms)) {
    const auto declared = description.supports.find(field.path);
    if (declared == description.supports.end()) {
      if (field.by_claim) return fmt::format("{} = {} (not declared in /supports)", field.path, field.json);
      continue;
    }
    const std::vector<std::string>& allowed = declared->second;
    const auto named = [&](const std::string& value) { return value == field.json || value == any_number; };
    if (std::none_of(allowed.begin(), allowed.end(), named)) {
      return fmt::format("{} = {}", field.path, field.json);
    }
  }
  for (const ShapeField& field : shape_fields) {
    const auto limit = description.limits.find(std::string(field.name));
    if (limit == description.limits.end()) continue;
    if (std::string breach = limit_breach(field, limit->second, c.shape.*field.extent); !breach.empty()) return breach;
  }
  return {};
}

}  // namespace qkcts
