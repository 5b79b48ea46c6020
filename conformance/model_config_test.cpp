// SPDX-License-Identifier: Apache-2.0
// Written-out configurations of every family (testdata/model_config_*.json): each gives the shipped contract, except
// for what the configuration changes.
#include "conformance/model_config.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "conformance/contract_field.hpp"
#include "conformance/json.hpp"
#include "conformance/model_config_family.hpp"
#include "conformance/written_config.hpp"

namespace qkcts {
namespace {

// Fields that the first contract does not have with this value, and what the second has; "none" or "null" may make
// further fields of the first meaningless, and those are not listed.
std::map<std::string, std::string> changed_fields(const Contract& before, const Contract& after) {
  std::map<std::string, std::string> old, changed;
  for (const FieldValue& field : contract_field_values(before.terms)) old[field.path] = field.json;
  for (const FieldValue& field : contract_field_values(after.terms)) {
    const auto found = old.find(field.path);
    // A point that has become possible and is not set changes nothing.
    if (found == old.end() && field.path.starts_with("rounding.") && field.json == "\"none\"") continue;
    if (found == old.end() || found->second != field.json)
      changed[field.path] = plain_value(parse_json(field.json, field.path));
  }
  return changed;
}

TEST(ModelConfig, GivesTheShippedContractExceptForWhatTheFileChanges) {
  const std::vector<WrittenConfig> all = written_configs();
  EXPECT_GT(all.size(), 100U);
  for (const WrittenConfig& row : all) {
    ModelConfigContract derived;
    try {
      derived = contract_from_config(row.config.dump(), "c.json", row.request);
    } catch (const InputError& error) {
      ADD_FAILURE() << row.about << ": " << error.what();
      continue;
    }
    EXPECT_EQ(changed_fields(shipped_contract(row.contract), derived.contract), row.differs) << row.about;
    EXPECT_EQ(row.differs.empty(), contract_digest(shipped_contract(row.contract)) == contract_digest(derived.contract))
        << row.about;
    if (!row.heads.is_null()) {
      const qkcts_shape& shape = derived.contract.model_shape;
      EXPECT_EQ(row.heads, Json::array({shape.q_heads, shape.kv_heads, shape.head_dim})) << row.about;
    }
    // It stands as a file of its own.
    const Contract again = contract_from_json(canonical_json(derived.contract), "derived");
    EXPECT_EQ(contract_digest(again), contract_digest(derived.contract)) << row.about;
  }
}

TEST(ModelConfig, EveryFamilyOfTheTableHasAConfiguration) {
  std::set<std::string> seen;
  std::set<std::string> contracts;
  for (const WrittenConfig& row : written_configs()) {
    seen.insert(contract_from_config(row.config.dump(), "c.json", row.request).model_type);
    contracts.insert(row.contract);
  }
  for (const std::string& type : configurable_model_types()) EXPECT_EQ(seen.count(type), 1U) << type;
  for (const Json& family : model_families().at("families"))
    for (const auto& [kind, name] : family.at("contracts").items()) {
      EXPECT_EQ(contracts.count(name), 1U) << name;
      EXPECT_NO_THROW(shipped_contract(name.get<std::string>()));
    }
}

// A misspelt key or effect of the table would have no effect.
TEST(ModelConfig, TheTableHoldsKnownWordsOnly) {
  const std::set<std::string> keys = {"types",    "contracts", "layers",      "parts",   "names",   "shape",
                                      "head_dim", "kv",        "width_ratio", "rope",    "gates",   "reads",
                                      "must",     "require",   "ignores",     "follows", "rotates", "other_norm",
                                      "lacks",    "kv_factor", "kv_instead"};
  const std::set<std::string> rope_keys = {"partial", "partial_by_kind", "by_kind",        "scaled_kinds",
                                           "local",   "theta",           "lanes",          "alpha",
                                           "also",    "null_theta",      "same_as_default"};
  const std::set<std::string> layer_keys = {"types",     "pattern",       "threshold",     "indices", "values",
                                            "otherwise", "whole_if_null", "whole_if_true", "last"};
  const std::set<std::string> effects = {"eps",
                                         "window",
                                         "window_both",
                                         "window_before",
                                         "v_multiplier",
                                         "pairing",
                                         "text_bidirectional",
                                         "values_are_keys",
                                         "bidirectional",
                                         "norm_kind",
                                         "norm_axis",
                                         "epsilon_of_format",
                                         "log_scaling",
                                         "layer_divides",
                                         "unscaled_if_false",
                                         "query_flag",
                                         "scale_scalar",
                                         "scale_constant",
                                         "softcap",
                                         "clip_before",
                                         "clip_after",
                                         "q_multiplier",
                                         "k_multiplier",
                                         "chunk",
                                         "query_alpha",
                                         "query_period"};
  std::set<std::string> types;
  for (const Json& family : model_families().at("families")) {
    for (const Json& type : family.at("types")) EXPECT_TRUE(types.insert(type).second) << type << " stands twice";
    for (const auto& [key, value] : family.items()) EXPECT_EQ(keys.count(key), 1U) << key;
    if (family.contains("rope")) {
      for (const auto& [key, value] : family.at("rope").items()) EXPECT_EQ(rope_keys.count(key), 1U) << key;
    }
    if (family.contains("layers")) {
      for (const auto& [key, value] : family.at("layers").items()) EXPECT_EQ(layer_keys.count(key), 1U) << key;
    }
    if (family.contains("reads")) {
      for (const auto& [key, effect] : family.at("reads").items()) EXPECT_EQ(effects.count(effect), 1U) << effect;
    }
  }
}

// Every field that a row changes is named as used, and with it the clause.
TEST(ModelConfig, SaysWhatItUsed) {
  const Json config = {{"model_type", "gemma3"},
                       {"text_config",
                        {{"model_type", "gemma3_text"},
                         {"rms_norm_eps", 1e-5},
                         {"query_pre_attn_scalar", 168},
                         {"num_hidden_layers", 12},
                         {"sliding_window", 1024},
                         {"vocab_size", 5}}}};
  const ModelConfigContract derived = contract_from_config(config.dump(), "c.json");
  std::map<std::string, std::string> used;
  for (const ModelConfigField& field : derived.used) used[field.path] = field.use;
  EXPECT_EQ(used["text_config.rms_norm_eps"], "q_norm.eps, k_norm.eps");
  EXPECT_EQ(used["text_config.query_pre_attn_scalar"], "score.scale_form");
  EXPECT_EQ(used["text_config.sliding_window"], "mask.window");
  EXPECT_EQ(used.count("text_config.vocab_size"), 0U);
  EXPECT_TRUE(std::any_of(derived.ignored.begin(), derived.ignored.end(),
                          [](const ModelConfigField& field) { return field.path == "text_config.vocab_size"; }));
  EXPECT_EQ(derived.kind, "sliding");
  EXPECT_EQ(derived.layers, "sliding: 0, 1, 2, 3, ... 10 (10 layers); full: 5, 11");
}

// The norm of v and those before a projection follow the eps of the file, and the clamps reach v.
TEST(ModelConfig, NamesTheNormsThatItSets) {
  struct Setting {
    const char* config;
    const char* key;
    const char* use;
  };
  const Setting settings[] = {
      {R"({"model_type": "gemma4_text", "rms_norm_eps": 1e-5})", "rms_norm_eps", "q_norm.eps, k_norm.eps, v_norm.eps"},
      {R"({"model_type": "blt_local_encoder", "rms_norm_eps": 1e-6})", "rms_norm_eps",
       "q_input_norm.eps, k_input_norm.eps"},
      {R"({"model_type": "olmoe", "clip_qkv": 8})", "clip_qkv",
       "q_norm.clip_after, k_norm.clip_after, v_norm.clip_after"},
      {R"({"model_type": "dbrx", "attn_config": {"clip_qkv": 8}})", "attn_config.clip_qkv",
       "q_norm.clip_before, k_norm.clip_before, v_norm.clip_before"},
      {R"({"model_type": "mimo_v2_flash", "attention_value_scale": 0.5})", "attention_value_scale",
       "v_norm.multiplier"},
      {R"({"model_type": "gemma4_text", "layer_types": ["full_attention"], "attention_k_eq_v": true})",
       "attention_k_eq_v", "the input v is the input k"},
      {R"({"model_type": "inkling_text", "layer_types": ["hybrid"], "log_scaling_n_floor": 8, "log_scaling_alpha": 0.2})",
       "log_scaling_alpha", "score.query_alpha"},
  };
  for (const Setting& row : settings) {
    const ModelConfigContract derived = contract_from_config(row.config, "c.json");
    const auto named = std::find_if(derived.used.begin(), derived.used.end(),
                                    [&row](const ModelConfigField& field) { return field.path == row.key; });
    ASSERT_NE(named, derived.used.end()) << row.config;
    EXPECT_EQ(named->use, row.use) << row.config;
  }
  // What the model does beside the contract is said, and only then.
  const auto left_out = [](const char* config) { return contract_from_config(config, "c.json").left_out; };
  EXPECT_EQ(left_out(R"({"model_type": "olmoe", "clip_qkv": 8})").size(), 0U);
  EXPECT_EQ(left_out(R"({"model_type": "gemma4_text"})").size(), 0U);
  EXPECT_EQ(left_out(R"({"model_type": "gemma4_text", "use_bidirectional_attention": "vision"})").size(), 1U);
  const char* const scaled = R"({"model_type": "inkling_text", "layer_types": ["hybrid"], "log_scaling_n_floor": 8})";
  const std::vector<std::string> beside = left_out(scaled);
  EXPECT_TRUE(std::any_of(beside.begin(), beside.end(), [](const std::string& text) {
    return text.find("factor of the bias") != std::string::npos;
  }));
}

// A list that a flag switches off is not said to be used, but it has to be a list all the same.
TEST(ModelConfig, AListThatIsSwitchedOffIsPassedOver) {
  const auto named = [](const std::vector<ModelConfigField>& fields) {
    return std::any_of(fields.begin(), fields.end(), [](const auto& field) { return field.path == "layer_types"; });
  };
  for (const bool on : {false, true}) {
    const Json config = {{"model_type", "qwen3"},
                         {"layer_types", {"sliding_attention"}},
                         {"num_hidden_layers", 1},
                         {"sliding_window", 64},
                         {"use_sliding_window", on}};
    const ModelConfigContract derived = contract_from_config(config.dump(), "c.json");
    EXPECT_EQ(derived.kind, on ? "sliding" : "full");
    EXPECT_EQ(named(derived.used), on);
    EXPECT_EQ(named(derived.ignored), !on);
  }
}

}  // namespace
}  // namespace qkcts
