// SPDX-License-Identifier: Apache-2.0
#include "conformance/model_config.hpp"

#include <cmath>
#include <set>

#include <fmt/format.h>

#include "conformance/contract_field.hpp"
#include "conformance/model_config_effect.hpp"
#include "conformance/model_config_family.hpp"
#include "conformance/model_config_fields.hpp"
#include "conformance/model_config_layers.hpp"
#include "conformance/model_config_rope.hpp"

namespace qkcts {
namespace {

// What a table entry says for this part: {"self": ..., "cross": ...} where the parts differ, or one value for all.
const Json& of_kind(const Json& entry, const std::string& kind) {
  return entry.is_object() && entry.contains(kind) ? entry.at(kind) : entry;
}

// "q_heads" or the name that this family has for it.
std::string name_of(const Json& family, const std::string& kind, const char* role, const char* usual) {
  return family.contains("names") ? of_kind(family.at("names"), kind).value(role, usual) : std::string(usual);
}

// A number, or a list with one per layer.
std::optional<std::int64_t> extent(ConfigFields& fields, const std::string& key, std::int64_t layer) {
  const Json* const value = fields.find(key);
  if (value == nullptr) return std::nullopt;
  std::int64_t number = 0;
  if (value->is_array()) {
    if (layer >= static_cast<std::int64_t>(value->size()) ||
        !(*value)[static_cast<std::size_t>(layer)].is_number_unsigned())
      fields.refuse(key, "must be a list with a whole number per layer");
    number = (*value)[static_cast<std::size_t>(layer)].get<std::int64_t>();
  } else {
    number = *fields.integer(key);
  }
  if (number < 1 || number > 1048576) fields.refuse(key, "must lie in 1..1048576");
  fields.use(key, "heads");
  return number;
}

qkcts_shape read_heads(const Json& family, ConfigFields& fields, qkcts_shape shape, const ChosenLayer& layer) {
  if (family.contains("shape")) {
    const Json& heads = of_kind(family.at("shape"), layer.kind);
    shape.q_heads = heads[0];
    shape.kv_heads = heads[1];
    shape.head_dim = heads[2];
  }
  const double ratio = family.value("width_ratio", 1.0);  // width of all heads over hidden_size
  const std::int64_t width = shape.q_heads * shape.head_dim;
  const std::string kv_key = name_of(family, layer.kind, "kv_heads", "num_key_value_heads");
  const std::string lanes_key = name_of(family, layer.kind, "head_dim", "head_dim");
  const std::string width_key = name_of(family, layer.kind, "width", "hidden_size");
  const auto q_heads = extent(fields, name_of(family, layer.kind, "q_heads", "num_attention_heads"), layer.index);
  const auto kv_heads = extent(fields, kv_key, layer.index);
  const auto head_dim = extent(fields, lanes_key, layer.index);
  const auto hidden = extent(fields, width_key, layer.index);
  if (q_heads) shape.q_heads = *q_heads;
  const bool as_many = family.value("kv", "given") == "heads";
  // {"sliding": 2}: layers of that kind have twice as many.
  const std::int64_t factor = family.contains("kv_factor") ? family.at("kv_factor").value(layer.kind, 1) : 1;
  if (kv_heads)
    shape.kv_heads = *kv_heads * factor;
  else if (as_many || fields.has(kv_key))
    shape.kv_heads = shape.q_heads;
  if (family.contains("kv_instead") && family.at("kv_instead").contains(layer.kind)) {
    const Json& rule = family.at("kv_instead").at(layer.kind);  // {"key": ..., "flag": ...}
    const bool on = !rule.contains("flag") || fields.flag(rule.at("flag").get<std::string>()).value_or(false);
    if (const auto own = on ? extent(fields, rule.at("key"), layer.index) : std::nullopt) shape.kv_heads = *own;
  }
  if (head_dim)
    shape.head_dim = *head_dim;
  else if (family.value("head_dim", "given") == "width" || fields.has(lanes_key))
    shape.head_dim =
        static_cast<std::int64_t>(hidden ? static_cast<double>(*hidden) * ratio / static_cast<double>(shape.q_heads)
                                         : static_cast<double>(width) / static_cast<double>(shape.q_heads));
  if (shape.head_dim < 1) fields.refuse(width_key, fmt::format("leaves no lane for {} heads", shape.q_heads));
  if (shape.q_heads % shape.kv_heads != 0)
    fields.refuse(kv_key,
                  fmt::format("{} query heads are no multiple of {} key/value heads", shape.q_heads, shape.kv_heads));
  const std::string values_key = name_of(family, layer.kind, "v_head_dim", "");
  if (values_key.empty())
    shape.v_head_dim = shape.head_dim;
  else if (const auto lanes = extent(fields, values_key, layer.index))
    shape.v_head_dim = *lanes;
  return shape;
}

// Constants that follow the size of a head.
void follow_head_dim(const std::string& rule, Contract& contract) {
  const auto lanes = static_cast<double>(contract.model_shape.head_dim);
  qkcts_contract& terms = contract.terms;
  if (rule == "half_head_scalar") terms.score.scale_value = lanes / 2;
  if (rule == "inverse_head_dim") terms.score.scale_value = 1 / lanes;
  if (rule == "root_multiplier") terms.q_range.multiplier = terms.k_range.multiplier = std::sqrt(lanes);
}

void check_must(const Json& family, ConfigFields& fields) {
  if (!family.contains("must")) return;
  for (const auto& [key, allowed] : family.at("must").items()) {
    const Json* const value = fields.find(key);
    if (value == nullptr) continue;
    bool fits = false;
    for (const Json& entry : allowed) fits = fits || entry == *value;
    if (!fits) fields.refuse(key, fmt::format("is understood only as {}", allowed.dump()));
    fields.pass_over(key, "as it must be");
  }
}

// Objects of the file in which this family reads keys: "attn_config" of "attn_config/clip_qkv".
std::set<std::string> nested_objects(const Json& family) {
  std::set<std::string> nested;
  const auto note = [&nested](const std::string& key) {
    if (const std::size_t end = key.find('/'); end != std::string::npos) nested.insert(key.substr(0, end));
  };
  for (const char* const part : {"gates", "must", "reads"})
    if (family.contains(part))
      for (const auto& [key, value] : family.at(part).items()) note(key);
  if (family.contains("names"))
    for (const auto& [role, key] : family.at("names").items()) {
      if (!key.is_object()) {
        note(key);
        continue;
      }
      for (const auto& [inner_role, inner_key] : key.items()) note(inner_key);  // role is a part here
    }
  return nested;
}

std::string slug(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const char low = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    name += (low >= 'a' && low <= 'z') || (low >= '0' && low <= '9') ? low : '_';
  }
  return name;
}

ChosenLayer chosen_part(const Json& family, const FoundFamily& found, ConfigFields& fields,
                        const ModelConfigRequest& request) {
  if (!family.contains("parts")) return choose_layer(family, fields, request);
  ChosenLayer chosen;
  chosen.index = request.layer.value_or(0);
  chosen.kind = found.part.empty() ? family.at("parts").get<std::string>() : found.part;
  for (const auto& [kind, name] : family.at("contracts").items())
    chosen.layers += fmt::format("{}{}", chosen.layers.empty() ? "parts (--section): " : ", ", kind);
  return chosen;
}

}  // namespace

std::vector<std::string> configurable_model_types() {
  std::vector<std::string> types;
  for (const Json& family : model_families().at("families"))
    if (!family.contains("lacks"))
      for (const Json& type : family.at("types")) types.push_back(type);
  return types;
}

ModelConfigContract contract_from_config(std::string_view text, std::string_view origin,
                                         const ModelConfigRequest& request) {
  if (request.section.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
    throw InputError("--section: a name of a-z, 0-9 and _");
  const Json file = parse_json(text, origin);
  const FoundFamily found = find_family(file, request.section, origin);
  const Json& family = *found.family;
  ConfigFields fields(*found.object, origin, found.place);
  if (family.contains("lacks"))
    throw InputError(fmt::format("{}: {}/model_type: is \"{}\"; it needs a clause that there is not: {}", origin,
                                 found.place, found.model_type, family.at("lacks").get<std::string>()));
  for (const char* const key : {"model_type", "_class_name"}) fields.pass_over(key, "names the family");
  check_must(family, fields);
  ModelConfigContract derived;
  const ChosenLayer layer = chosen_part(family, found, fields, request);
  derived.base = family.at("contracts").at(layer.kind);
  derived.layer = layer.index;
  derived.kind = layer.kind;
  derived.layers = layer.layers;
  derived.model_type = found.model_type;
  derived.contract = shipped_contract(derived.base);
  Contract& contract = derived.contract;
  contract.model_shape = read_heads(family, fields, contract.model_shape, layer);
  if (family.contains("require"))
    for (const Json& key : family.at("require"))
      if (fields.find(key.get<std::string>()) == nullptr) fields.refuse(key.get<std::string>(), "is missing");
  const auto apply = [&](const std::string& key, const std::string& effect) {
    apply_config_effect(key, effect, family, fields, layer, contract);
  };
  if (family.contains("gates"))
    for (const auto& [key, standard] : family.at("gates").items()) apply(key, "norms");
  if (family.contains("follows")) follow_head_dim(family.at("follows"), contract);
  if (family.contains("rotates")) {  // {"use_mem_rope": false}: without the flag nothing turns
    const std::string key = family.at("rotates").at("flag");
    const bool on = fields.flag(key).value_or(family.at("rotates").at("is").get<bool>());
    if (fields.has(key)) fields.use(key, "rope.order");
    if (!on) {
      contract.terms.rope = qkcts_rope{};
      contract.terms.rotation = qkcts_rotation{};
    }
  }
  read_rope(contract.terms, fields, {family, layer.kind, layer.index, contract.model_shape.head_dim, request.length});
  if (family.contains("reads"))
    for (const auto& [key, effect] : family.at("reads").items()) apply(key, effect);
  if (family.contains("ignores"))
    for (const Json& key : family.at("ignores"))
      fields.pass_over(key.get<std::string>(), "says nothing about this attention");
  fields.settle_leftover(model_families(), nested_objects(family), found.model_type);
  fields.append_to(derived.used, derived.ignored);
  for (const std::string& source : contract.sources)
    if (source.starts_with("left out: ")) derived.left_out.push_back(source.substr(10));
  contract.name = slug(found.model_type + (derived.layers.empty() ? "" : "_" + layer.kind));
  contract.title =
      fmt::format("Derived from the configuration of {}, layer {} ({})", found.model_type, layer.index, layer.kind);
  if (const std::string fault = contract_fault(contract.terms); !fault.empty())
    throw InputError(fmt::format("{}: {}: {}", origin, found.place.empty() ? "/" : found.place, fault));
  contract.terms = normalised(contract.terms);
  return derived;
}

}  // namespace qkcts
