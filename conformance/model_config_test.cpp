// SPDX-License-Identifier: Apache-2.0
// Written-out configurations of every family (testdata/model_config_*.json): each gives the shipped contract, except
// for what the configuration changes. And what is refused.
#include "conformance/model_config.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "conformance/contract_field.hpp"
#include "conformance/file.hpp"
#include "conformance/json.hpp"
#include "conformance/model_config_family.hpp"

namespace qkcts {
namespace {

struct Row {
  Json config;
  ModelConfigRequest request;
  std::string contract;                        // shipped
  std::map<std::string, std::string> differs;  // field -> its value in the derived contract
  Json heads;                                  // [query, key/value, lanes]; null: not looked at
  std::string about;
};

// Numbers by value, whatever their notation.
std::string plain(const Json& value) {
  if (value.is_number()) return fmt::format("{}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

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
      changed[field.path] = plain(parse_json(field.json, field.path));
  }
  return changed;
}

std::vector<Row> rows() {
  std::vector<Row> all;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(QKCTS_SOURCE_DIR "/conformance/testdata"))
    if (entry.path().stem().string().starts_with("model_config_")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files)
    for (const Json& entry : parse_json(read_text_file(file), file)) {
      Row row;
      row.config = entry.at("config");
      row.contract = entry.at("contract");
      if (entry.contains("layer")) row.request.layer = entry.at("layer").get<std::int64_t>();
      if (entry.contains("length")) row.request.length = entry.at("length").get<std::int64_t>();
      row.request.section = entry.value("section", "");
      row.heads = entry.value("heads", Json());
      if (entry.contains("differs"))
        for (const auto& [field, value] : entry.at("differs").items()) row.differs[field] = plain(value);
      row.about =
          std::filesystem::path(file).stem().string() + ": " + row.contract + " " + row.config.dump().substr(0, 90);
      all.push_back(row);
    }
  return all;
}

std::string refusal(const Json& config, const ModelConfigRequest& request = {}) {
  try {
    contract_from_config(config.dump(), "c.json", request);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ModelConfig, GivesTheShippedContractExceptForWhatTheFileChanges) {
  const std::vector<Row> all = rows();
  EXPECT_GT(all.size(), 100U);
  for (const Row& row : all) {
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
  for (const Row& row : rows()) {
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

// A key of attention that nobody described must not be passed over: one is put into every configuration.
TEST(ModelConfig, AnUnknownKeyOfAttentionIsRefusedInEveryFamily) {
  for (const Row& row : rows()) {
    const FoundFamily found = find_family(row.config, row.request.section, "c.json");
    Json config = row.config;
    config[Json::json_pointer(found.place + "/attention_novelty")] = 3;
    const std::string why = refusal(config, row.request);
    EXPECT_EQ(why.rfind("c.json: " + found.place + "/attention_novelty: is 3; speaks of attention", 0), 0U)
        << row.about << ": " << why;
    EXPECT_EQ(why.find('\n'), std::string::npos);
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

// A key that is harmless with one value is refused with another.
TEST(ModelConfig, HarmlessValuesAreHarmlessAlone) {
  for (const Json& pair : model_families().at("harmless")) {
    Json config = {{"model_type", "cohere"}};
    config[pair[0].get<std::string>()] = pair[1];
    EXPECT_EQ(refusal(config), "accepted") << pair.dump();
    config[pair[0].get<std::string>()] = !pair[1].get<bool>();
    EXPECT_NE(refusal(config).find("speaks of attention"), std::string::npos) << pair.dump() << refusal(config);
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

TEST(ModelConfig, RefusesNamingTheField) {
  struct Refusal {
    const char* config;
    const char* expected;
  };
  const Refusal refusals[] = {
      {R"([1])", "c.json: /: a configuration is a JSON object"},
      {R"({})", "c.json: /model_type: is missing"},
      {R"({"model_type": "llama99"})", "c.json: /model_type: is \"llama99\"; the table of families does not know it"},
      {R"({"model_type": "deepseek_v3"})", "it needs a clause that there is not: a norm of the latent"},
      {R"({"model_type": "timesfm"})", "it needs a clause that there is not: a learned scale per lane of q"},
      {R"({"model_type": "gemma4_text", "per_layer_config": {"5": {"head_dim": 512}}})",
       "c.json: /per_layer_config: is {\"5\":{\"head_dim\":512}}; is understood only as []"},
      {R"({"model_type": "gemma4_text", "use_bidirectional_attention": "some"})",
       "c.json: /use_bidirectional_attention: is \"some\"; must be all or vision"},
      {R"({"model_type": "gemma4_text", "use_bidirectional_attention": true})",
       "c.json: /use_bidirectional_attention: is true; must be a text"},
      {R"({"model_type": "mimo_v2_flash", "add_full_attention_sink_bias": true})",
       "c.json: /add_full_attention_sink_bias: is true; is understood only as [false]"},
      {R"({"model_type": "mimo_v2_flash", "attention_value_scale": 0})",
       "c.json: /attention_value_scale: is 0; must be > 0"},
      {R"({"model_type": "mimo_v2_flash", "hybrid_layer_pattern": [0, 2]})",
       "c.json: /hybrid_layer_pattern: is [0,2]; holds an entry"},
      {R"({"_class_name": "LTX2VideoTransformer3DModel", "rope_type": "whole"})",
       "c.json: /rope_type: is \"whole\"; must be interleaved or split"},
      {R"({"_class_name": "LTXVideoTransformer3DModel", "qk_norm": "layer_norm"})",
       "c.json: /qk_norm: is \"layer_norm\"; is understood only as"},
      {R"({"model_type": "qwen3_moe", "rms_norm_eps": "1e-6"})",
       "c.json: /rms_norm_eps: is \"1e-6\"; must be a number"},
      {R"({"model_type": "qwen3_moe", "rms_norm_eps": -1})", "c.json: /rms_norm_eps: is -1; must be >= 0"},
      {R"({"model_type": "qwen3_moe", "rope_theta": 1})", "c.json: /rope_theta: is 1; must be > 1"},
      {R"({"model_type": "qwen3_moe", "num_key_value_heads": 5})", "32 query heads are no multiple of 5"},
      {R"({"model_type": "qwen3_moe", "head_dim": 0})", "c.json: /head_dim: is 0; must lie in 1..1048576"},
      {R"({"model_type": "qwen3_moe", "head_dim": 65})", "lanes would turn, and they turn in pairs"},
      {R"({"model_type": "qwen3_moe", "rope_scaling": {"rope_type": "longrope", "long_factor": [1]}})",
       "c.json: /rope_scaling/rope_type: is \"longrope\"; is no known scaling"},
      {R"({"model_type": "qwen3_moe", "rope_scaling": {"type": "linear"}})",
       "c.json: /rope_scaling/factor: is missing"},
      {R"({"model_type": "qwen3_moe", "rope_scaling": {"type": "linear", "factor": 2, "beta_fast": 3}})",
       "c.json: /rope_scaling/beta_fast: is 3; is not understood beside rope_type linear"},
      {R"({"model_type": "qwen3_moe", "rope_scaling": {"rope_type": "dynamic", "factor": 2}})",
       "c.json: /max_position_embeddings: must be given beside this scaling"},
      {R"({"model_type": "qwen3_moe", "rope_parameters": {"full_attention": {"rope_type": "default"}}})",
       "c.json: /rope_parameters/full_attention"},
      {R"({"model_type": "qwen3_moe", "attn_logit_softcapping": 30})",
       "c.json: /attn_logit_softcapping: is 30; speaks"},
      {R"({"model_type": "qwen3_moe", "layer_types": ["full_attention"]})", "c.json: /layer_types"},
      {R"({"model_type": "qwen3", "layer_types": "full"})", "c.json: /layer_types: is \"full\"; must be a list"},
      {R"({"model_type": "qwen3", "num_hidden_layers": 3, "layer_types": ["full_attention"]})",
       "must have an entry for each of the 3 layers"},
      {R"({"model_type": "lfm2", "layer_types": ["conv", "conv"]})", "is of kind conv, which has no contract"},
      {R"({"model_type": "hunyuan_v1_dense", "use_qk_norm": false})", "c.json: /use_qk_norm: is false; is understood"},
      {R"({"model_type": "gpt_oss", "rope_theta": 10000})", "c.json: /rope_theta: is 10000; without rope_scaling"},
      {R"({"model_type": "esm"})", "c.json: /position_embedding_type: is missing"},
      {R"({"model_type": "esm", "position_embedding_type": "absolute"})",
       "c.json: /position_embedding_type: is \"absol"},
      {R"({"model_type": "inkling_text", "log_scaling_n_floor": 0, "num_hidden_layers": 1, "layer_types": ["hybrid"]})",
       "c.json: /log_scaling_n_floor: is 0; must be at least 1"},
      {R"({"model_type": "inkling_text", "log_scaling_n_floor": 8, "log_scaling_alpha": -1, "num_hidden_layers": 1,
           "layer_types": ["hybrid"]})",
       "c.json: /log_scaling_alpha: is -1; must be >= 0"},
      {R"({"model_type": "mpt", "attn_config": {"attn_type": "multiquery_attention"}})",
       "c.json: /attn_config/attn_type"},
      {R"({"model_type": "mpt", "attn_config": {"rope": true}})",
       "c.json: /attn_config/rope: is true; speaks of attention"},
      {R"({"model_type": "zaya", "dtype": "float8"})", "c.json: /dtype: is \"float8\"; must be bfloat16"},
      {R"({"model_type": "laguna", "layer_types": ["sliding_attention"], "sliding_window": null})",
       "c.json: /sliding_window: a sliding layer needs a window"},
      {R"({"model_type": "step3p5", "layer_types": ["sliding_attention"]})", "which has no contract; there are: full"},
      {R"({"model_type": "qwen3_moe", "partial_rotary_factor": 1.5, "rope_parameters": {"rope_type": "proportional"}})",
       "c.json: /partial_rotary_factor: is 1.5; must lie in (0, 1]"},
      {R"({"model_type": "qwen3_moe", "rope_parameters": {"rope_type": "proportional", "factor": 2}})",
       "c.json: /rope_parameters/factor: is 2; beside rope_type proportional must be 1"},
  };
  for (const Refusal& row : refusals) {
    const std::string why = refusal(parse_json(row.config, "row"));
    EXPECT_NE(why.find(row.expected), std::string::npos) << row.config << ": " << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  }
  ModelConfigRequest beyond;
  beyond.layer = 40;
  EXPECT_EQ(refusal({{"model_type", "gemma2"}, {"num_hidden_layers", 26}}, beyond),
            "--layer 40: the model has layers 0 to 25");
  ModelConfigRequest absent;
  absent.section = "vision_config";
  EXPECT_NE(refusal({{"model_type", "glm_ocr"}}, absent).find("/vision_config: is missing"), std::string::npos);
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

// A section that is neither an object of the file nor a part of the family is not passed over; one that is either
// leads there.
TEST(ModelConfig, RefusesASectionThatNothingUses) {
  const auto asked = [](const char* config, const std::string& section) {
    ModelConfigRequest request;
    request.section = section;
    return refusal(parse_json(config, "row"), request);
  };
  const char* const dia = R"({"model_type": "dia", "decoder_config": {}, "encoder_config": {}})";
  const std::string nonsense = "c.json: /nonsense: is missing; --section names an object of the file";
  EXPECT_EQ(asked(R"({"model_type": "qwen3_moe"})", "nonsense"), nonsense);
  EXPECT_EQ(asked(R"({"model_type": "t5"})", "nonsense"), nonsense + " or one of cross, decoder, encoder");
  EXPECT_EQ(asked(dia, "nonsense"), nonsense + " or one of decoder_config, cross, self, encoder_config");
  EXPECT_EQ(asked(R"({"model_type": "qwen3_5", "text_config": {}})", "nonsense"), nonsense + " or one of text_config");
  // A part of another part of the file, and a part of a family that has none.
  EXPECT_NE(asked(dia, "decoder"), "accepted");
  EXPECT_NE(asked(R"({"model_type": "qwen3_moe"})", "cross"), "accepted");
  // A family that lacks a clause says that, whatever the section.
  EXPECT_NE(asked(R"({"model_type": "deepseek_v3"})", "nonsense").find("a clause that there is not"),
            std::string::npos);
  for (const char* const section : {"", "self", "cross", "decoder_config", "encoder_config"})
    EXPECT_EQ(asked(dia, section), "accepted") << section;
  // An object of the file with a family of its own, beside one that the file names.
  const char* const two = R"({"model_type": "qwen3_moe", "depth_config": {"model_type": "gemma3_text"}})";
  EXPECT_EQ(asked(two, "depth_config"), "accepted");
  ModelConfigRequest depth;
  depth.section = "depth_config";
  EXPECT_EQ(contract_from_config(two, "c.json", depth).model_type, "gemma3_text");
  EXPECT_EQ(contract_from_config(two, "c.json").model_type, "qwen3_moe");
}

// Damaged configurations: each is read or refused in one line; nothing else may happen (run with sanitizers, too).
TEST(ModelConfig, DamagedConfigurationsAreReadOrRefused) {
  std::uint64_t state = 7;
  const auto below = [&state](std::size_t bound) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(state >> 33) % bound;
  };
  const Json strange[] = {nullptr, true, -1, 0, 1e300, 3.5, "x/~", Json::array({1, "a"}), Json::object({{"a/~b", 1}})};
  int refused = 0, all = 0;
  for (const Row& row : rows())
    for (int round = 0; round < 8; ++round) {
      Json config = row.config;
      Json* object = &config;
      for (auto item = config.begin(); item != config.end(); ++item)
        if (item->is_object() && below(2) == 0) object = &*item;
      auto item = object->begin();
      std::advance(item,
                   static_cast<std::ptrdiff_t>(below(object->size() + 1) % std::max<std::size_t>(object->size(), 1)));
      if (object->empty() || below(4) == 0)
        (*object)["rope_scaling/~"] = strange[below(9)];
      else
        *item = strange[below(9)];
      const std::string why = refusal(config, row.request);
      EXPECT_EQ(why.find('\n'), std::string::npos) << why;
      EXPECT_EQ(why.find("json.exception"), std::string::npos) << why << " " << config.dump();
      refused += why == "accepted" ? 0 : 1;
      ++all;
    }
  EXPECT_GT(refused, all / 4);
  EXPECT_LT(refused, all);
}

}  // namespace
}  // namespace qkcts
