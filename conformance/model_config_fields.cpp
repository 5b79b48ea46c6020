// SPDX-License-Identifier: Apache-2.0
#include "conformance/model_config_fields.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace qkcts {
namespace {

// A name with one of these in it may change what attention computes.
bool speaks_of_attention(std::string_view key) {
  std::string name(key);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string_view word :
       {"attn",        "attention", "rope",  "rotary",     "head",          "qk",      "query",
        "kv",          "norm",      "eps",   "window",     "sliding",       "softcap", "soft_cap",
        "clip",        "clamp",     "sink",  "mask",       "alibi",         "causal",  "scal",
        "position",    "theta",     "chunk", "layer_type", "bidirectional", "cross",   "multiplier",
        "temperature", "softmax",   "key_",  "bias",       "gate",          "pattern", "interval"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

bool matches(std::string_view key, const Json& names) {
  for (const Json& name : names) {
    const std::string& pattern = name.get_ref<const std::string&>();
    if (pattern.back() == '*' ? key.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1))
                              : key == pattern)
      return true;
  }
  return false;
}

bool harmless(std::string_view key, const Json& value, const Json& pairs) {
  for (const Json& pair : pairs)
    if (pair[0] == key && pair[1] == value) return true;
  return false;
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true);  // ASCII: a cut leaves it valid
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace

const Json* ConfigFields::at(std::string_view key) const {
  const Json* value = &object_;
  for (std::size_t start = 0;;) {
    const std::size_t end = std::min(key.find('/', start), key.size());
    const std::string step(key.substr(start, end - start));
    if (!value->is_object() || !value->contains(step)) return nullptr;
    value = &value->at(step);
    if (end == key.size()) return value;
    start = end + 1;
  }
}

bool ConfigFields::has(std::string_view key) const {
  return at(key) != nullptr;
}

const Json* ConfigFields::find(std::string_view key) const {
  const Json* const value = at(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<double> ConfigFields::number(std::string_view key) const {
  const Json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) refuse(key, "must be a number");
  return value->get<double>();
}

std::optional<std::int64_t> ConfigFields::integer(std::string_view key) const {
  const std::optional<double> value = number(key);
  if (!value) return std::nullopt;
  if (*value != std::floor(*value) || std::abs(*value) > 0x1p40) refuse(key, "must be a whole number within 2^40");
  return static_cast<std::int64_t>(*value);
}

std::optional<bool> ConfigFields::flag(std::string_view key) const {
  const Json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(key, "must be true or false");
  return value->get<bool>();
}

std::optional<std::string> ConfigFields::text(std::string_view key) const {
  const Json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse(key, "must be a text");
  return value->get<std::string>();
}

void ConfigFields::use(std::string_view key, std::string_view clause) {
  Fate& fate = record_[std::string(key)];
  fate.text = fate.used && fate.text != clause ? fmt::format("{}, {}", fate.text, clause) : std::string(clause);
  fate.used = true;
}

void ConfigFields::pass_over(std::string_view key, std::string_view why) {
  if (has(key)) record_.try_emplace(std::string(key), Fate{false, std::string(why)});
}

void ConfigFields::refuse(std::string_view key, std::string_view reason) const {
  const Json* const value = find(key);
  throw InputError(fmt::format("{}: {}/{}: {}{}", origin_, place_, key,
                               value != nullptr ? fmt::format("is {}; ", shown(*value)) : "", reason));
}

void ConfigFields::settle_leftover(const Json& table, const std::set<std::string>& nested, std::string_view family) {
  const auto settle = [&](const Json& object, const std::string& before, const auto& again) -> void {
    for (const auto& [key, value] : object.items()) {
      const std::string path = before + key;
      if (seen(path)) continue;
      const auto inner = record_.lower_bound(path + "/");
      const bool looked_into = inner != record_.end() && inner->first.starts_with(path + "/");
      if ((looked_into || nested.count(path) != 0) && value.is_object()) {
        again(value, path + "/", again);
        continue;
      }
      if (value.is_null())
        pass_over(path, "null");
      else if (matches(key, table.at("irrelevant")) || harmless(key, value, table.at("harmless")))
        pass_over(path, "says nothing about this attention");
      else if (value.is_object() && key.ends_with("_config"))
        pass_over(path, "another part of the model");
      else if (speaks_of_attention(key))
        refuse(path, fmt::format("speaks of attention, and the table of families does not know it for {}", family));
      else
        pass_over(path, "says nothing about attention");
    }
  };
  settle(object_, "", settle);
}

void ConfigFields::append_to(std::vector<ModelConfigField>& used, std::vector<ModelConfigField>& ignored) const {
  for (const auto& [key, fate] : record_) {
    const Json* const value = find(key);
    std::string path = place_.empty() ? key : place_.substr(1) + "/" + key;
    std::replace(path.begin(), path.end(), '/', '.');
    (fate.used ? used : ignored).push_back({path, value == nullptr ? "null" : shown(*value), fate.text});
  }
}

}  // namespace qkcts
