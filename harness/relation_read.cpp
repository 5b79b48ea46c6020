// SPDX-License-Identifier: Apache-2.0
// Relations of a run.json.
#include <fmt/format.h>

#include "harness/record_values.hpp"
#include "harness/relation_report.hpp"

namespace qkcts {
namespace {

RelationBreach breach_from(const JsonAt& at, const RelationResult& owner) {
  RelationBreach breach;
  breach.stage = stage_from(at["stage"]);
  breach.what = at["what"].text();
  breach.first = place_from(at["first_index"], breach.stage, owner.first_shape);
  breach.second = place_from(at["second_index"], breach.stage, owner.second_shape);
  const Format format = stage_format(breach.stage, owner.format);
  breach.first_bits = bits_from(at["first_bits"], format);
  breach.second_bits = bits_from(at["second_bits"], format);
  // Where a row is at fault, values are sums and the bits stand for nothing.
  const auto value = [&](const char* key, std::uint64_t bits) {
    return at[key].is_null() ? decode(format, bits) : at[key].get<double>();
  };
  breach.first_value = value("first", breach.first_bits);
  breach.second_value = value("second", breach.second_bits);
  breach.due = figure_from(at["due"]);
  breach.allowed = figure_from(at["allowed"]);
  return breach;
}

}  // namespace

RelationResult relation_from_json(const JsonAt& at) {
  RelationResult result;
  result.slug = at["relation"].text();
  const auto kind = relation_kind_named(at["kind"].text());
  if (!kind) at["kind"].refuse("is no kind of relation");
  result.kind = *kind;
  const auto rule = relation_rule_named(at["rule"].text());
  if (!rule) at["rule"].refuse("is no rule of a relation");
  result.rule = *rule;
  result.cases = at["cases"].get<std::vector<std::string>>();
  if (result.cases.size() != row(*kind).cases)
    at["cases"].refuse(fmt::format("must be {} for this kind", row(*kind).cases));
  result.format = format_from(at["format"]);
  result.first_shape = shape_from(at["first_shape"]);
  result.second_shape = shape_from(at["second_shape"]);
  result.profile = at["profile"].text();
  result.verdict = verdict_from(at["verdict"]);
  result.detail = at["detail"].text();
  result.compared = at["compared"].get<std::uint64_t>();
  result.violated = at["violated"].get<std::uint64_t>();
  if (!at["breach"].is_null()) result.breach = breach_from(at["breach"], result);
  return result;
}

}  // namespace qkcts
