// SPDX-License-Identifier: Apache-2.0
#include "harness/limits.hpp"

#include "conformance/json_schema.hpp"

namespace qkcts {
namespace {

std::optional<double> optional_number(const Json& rule, const char* key) {
  if (!rule.contains(key)) return std::nullopt;
  return rule.at(key).get<double>();
}

}  // namespace

std::optional<Limit> LimitTable::find(qkcts_stage stage, Format storage) const {
  for (const LimitRule& rule : rules) {
    if (rule.stage.value_or(stage) == stage && rule.format.value_or(storage) == storage) return rule.limit;
  }
  return std::nullopt;
}

LimitTable limits_from_json(std::string_view text, std::string_view origin) {
  const Json document = parse_json(text, origin);
  require_schema(document, "limits", origin);
  LimitTable table;
  table.text = canonical_text(document);
  for (const Json& entry : document.at("limits")) {
    LimitRule rule;
    if (const std::string stage = entry.at("stage"); stage != "*") rule.stage = *stage_named(stage);
    if (const std::string format = entry.value("format", "*"); format != "*") rule.format = *format_named(format);
    rule.limit = {optional_number(entry, "max_ulp"), optional_number(entry, "max_error_over_delta"),
                  optional_number(entry, "atol"), optional_number(entry, "rtol")};
    table.rules.push_back(rule);
  }
  return table;
}

}  // namespace qkcts
