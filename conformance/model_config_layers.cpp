// SPDX-License-Identifier: Apache-2.0
#include "conformance/model_config_layers.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace qkcts {
namespace {

constexpr std::int64_t most_layers = 4096;

class LayerRule {
 public:
  LayerRule(const Json& family, ConfigFields& fields)
      : rule_(family.contains("layers") ? family.at("layers") : Json::object()), fields_(fields) {
    for (const char* const key : {"num_hidden_layers", "num_layers", "n_layers", "n_layer", "num_transformer_layers"})
      if (const auto value = fields_.integer(key)) {
        if (*value < 1 || *value > most_layers) fields_.refuse(key, "must lie in 1..4096");
        count_ = *value;
        fields_.pass_over(key, "number of layers");
      }
    read_lists();
  }

  std::int64_t count() const { return count_; }

  // The kind of layer i; a text of the file that stands for no attention is returned as it is.
  std::string kind(std::int64_t i) const {
    if (rule_.contains("last") && i == count_ - 1) return rule_.at("last");  // whatever the file says of it
    if (!whole_.empty()) return whole_;
    if (!kinds_.empty()) {
      if (i >= static_cast<std::int64_t>(kinds_.size())) return "beyond the list";
      return kinds_[static_cast<std::size_t>(i)];
    }
    if (rule_.contains("threshold")) return i >= threshold_ ? "sliding" : "full";
    if (rule_.contains("pattern")) {
      const Json& pattern = rule_.at("pattern");
      if (i == 0 && pattern.contains("first")) return pattern.at("first");
      if (!letters_.empty()) return letters_[static_cast<std::size_t>(i) % letters_.size()] == 'L' ? "sliding" : "full";
      const std::int64_t at = pattern.value("from_end", false) ? count_ - 1 - i : i + pattern.value("offset", 0);
      return pattern.at(at % every_ == 0 ? "hit" : "miss").get<std::string>();
    }
    return rule_.value("otherwise", "full");
  }

 private:
  void read_lists() {
    if (rule_.contains("whole_if_null")) {  // {"sliding_window": "rope"}
      for (const auto& [key, kind] : rule_.at("whole_if_null").items())
        if (fields_.has(key) && fields_.find(key) == nullptr) {
          whole_ = kind;
          fields_.use(key, "the same kind of layer everywhere");
        }
    }
    if (rule_.contains("whole_if_true"))  // {"use_sliding_window": "sliding"}
      for (const auto& [key, kind] : rule_.at("whole_if_true").items()) {
        if (fields_.flag(key).value_or(false)) {
          whole_ = kind;
          fields_.use(key, "the same kind of layer everywhere");
        } else {
          fields_.pass_over(key, "switched off");
        }
      }
    if (rule_.contains("types"))
      if (const Json* const list = fields_.find("layer_types")) {
        read_types("layer_types", *list);
        if (gate_is_closed())
          fields_.pass_over("layer_types", "switched off: no layer slides");
        else
          fields_.use("layer_types", "kind of the layer");
      }
    if (rule_.contains("values"))  // {"no_rope_layers": {"0": "nope", "1": "chunked"}}
      for (const auto& [key, texts] : rule_.at("values").items())
        if (const Json* const list = fields_.find(key)) {
          if (!list->is_array()) fields_.refuse(key, "must be a list with an entry per layer");
          if (!kinds_.empty()) {
            fields_.pass_over(key, "layer_types says it");
            continue;
          }
          for (const Json& entry : *list) {
            const std::string text = entry.dump();
            if (!texts.contains(text)) fields_.refuse(key, "holds an entry that is not understood");
            kinds_.push_back(texts.at(text));
          }
          fields_.use(key, "kind of the layer");
        }
    if (rule_.contains("indices")) read_indices(rule_.at("indices"));
    read_threshold();
    if (rule_.contains("pattern")) read_pattern(rule_.at("pattern"));
    count_ = std::max(count_, static_cast<std::int64_t>(kinds_.size()));
  }

  void read_types(const char* key, const Json& list) {
    if (!list.is_array() || list.size() > most_layers) fields_.refuse(key, "must be a list with an entry per layer");
    for (const Json& entry : list) {
      if (!entry.is_string()) fields_.refuse(key, "must be a list of texts");
      const std::string text = entry.get<std::string>();
      kinds_.push_back(rule_.at("types").value(text, text));
    }
    if (static_cast<std::int64_t>(list.size()) < count_)  // longer ones name layers for speculative decoding, too
      fields_.refuse(key, fmt::format("must have an entry for each of the {} layers", count_));
  }

  void read_indices(const Json& indices) {  // {"key": "cross_attention_layers", "in": "cross", "out": "self"}
    const std::string key = indices.at("key");
    const Json* list = fields_.find(key);
    if (list != nullptr) fields_.use(key, "kind of the layer");
    if (list == nullptr && indices.contains("is")) list = &indices.at("is");
    if (list == nullptr || !kinds_.empty()) return;
    if (!list->is_array()) fields_.refuse(key, "must be a list of layers");
    for (const Json& entry : *list) {
      if (!entry.is_number_unsigned() || entry.get<std::int64_t>() >= most_layers)
        fields_.refuse(key, "must be a list of layers");
      count_ = std::max(count_, entry.get<std::int64_t>() + 1);
    }
    kinds_.assign(static_cast<std::size_t>(count_), indices.at("out").get<std::string>());
    for (const Json& entry : *list) kinds_[entry.get<std::size_t>()] = indices.at("in").get<std::string>();
  }

  // Without the flag that a threshold names no layer slides, whatever a list says.
  bool gate_is_closed() const {
    if (!rule_.contains("threshold") || !rule_.at("threshold").contains("gate")) return false;
    return !fields_.flag(rule_.at("threshold").at("gate").get<std::string>()).value_or(false);
  }

  void read_threshold() {  // {"key": "max_window_layers", "is": 28, "gate": "use_sliding_window"}
    if (!rule_.contains("threshold")) return;
    const Json& threshold = rule_.at("threshold");
    const std::string key = threshold.at("key");
    threshold_ = fields_.integer(key).value_or(threshold.at("is").get<std::int64_t>());
    if (threshold.contains("gate")) {
      const std::string gate = threshold.at("gate");
      if (gate_is_closed()) {
        threshold_ = most_layers;
        kinds_.clear();  // as the class does
      }
      fields_.use(gate, "kind of the layer");
    }
    fields_.pass_over(key, "first sliding layer");
  }

  void read_pattern(const Json& pattern) {  // {"every": 6, "key": "sliding_window_pattern", "offset": 1, "hit", "miss"}
    every_ = pattern.at("every").get<std::int64_t>();
    if (!pattern.contains("key")) return;
    const std::string key = pattern.at("key");
    const Json* const value = fields_.find(key);
    if (value == nullptr) return;
    if (value->is_string() && pattern.value("letters", false)) {
      letters_ = value->get<std::string>();
      if (letters_.empty() || letters_.find_first_not_of("LG") != std::string::npos)
        fields_.refuse(key, "must be a number, or a text of L and G");
    } else {
      every_ = fields_.integer(key).value_or(0);
      if (every_ < 1) fields_.refuse(key, "must be at least 1");
    }
    if (kinds_.empty())
      fields_.use(key, "kind of the layer");
    else
      fields_.pass_over(key, "layer_types says it");
  }

  Json rule_;
  ConfigFields& fields_;
  std::int64_t count_ = 0;
  std::string whole_;
  std::vector<std::string> kinds_;
  std::int64_t threshold_ = most_layers;
  std::int64_t every_ = 1;
  std::string letters_;
};

// "0, 2, 4, ... (16)"
std::string listed(const std::vector<std::int64_t>& layers) {
  std::string text;
  for (std::size_t i = 0; i < layers.size() && i < 4; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", layers[i]);
  if (layers.size() > 4) text += fmt::format(", ... {} ({} layers)", layers.back(), layers.size());
  return text;
}

}  // namespace

ChosenLayer choose_layer(const Json& family, ConfigFields& fields, const ModelConfigRequest& request) {
  const LayerRule rule(family, fields);
  const Json& contracts = family.at("contracts");
  ChosenLayer chosen;
  chosen.index = request.layer.value_or(0);
  if (request.layer && rule.count() > 0 && *request.layer >= rule.count())
    throw InputError(fmt::format("--layer {}: the model has layers 0 to {}", *request.layer, rule.count() - 1));
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> kinds;
  for (std::int64_t i = 0; i < rule.count(); ++i) {
    const std::string kind = rule.kind(i);
    auto entry = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == kind; });
    if (entry == kinds.end()) entry = kinds.insert(kinds.end(), {kind, {}});
    entry->second.push_back(i);
  }
  if (!request.layer)
    for (std::int64_t i = rule.count(); i-- > 0;)
      if (contracts.contains(rule.kind(i))) chosen.index = i;
  chosen.kind = rule.kind(chosen.index);
  if (kinds.size() > 1)
    for (const auto& [kind, layers] : kinds)
      chosen.layers += fmt::format("{}{}: {}", chosen.layers.empty() ? "" : "; ", kind, listed(layers));
  if (!contracts.contains(chosen.kind)) {
    std::string known;
    for (const auto& [kind, name] : contracts.items()) known += (known.empty() ? "" : ", ") + kind;
    fields.refuse("layer_types", fmt::format("layer {} is of kind {}, which has no contract; there are: {}",
                                             chosen.index, chosen.kind, known));
  }
  return chosen;
}

}  // namespace qkcts
