// SPDX-License-Identifier: Apache-2.0
// What a configuration is refused for, and that the refusal names the place.
#include "conformance/model_config.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/model_config_family.hpp"
#include "conformance/written_config.hpp"

namespace qkcts {
namespace {

// A key of attention that nobody described must not be passed over: one is put into every configuration.
TEST(ModelConfigRefusal, AnUnknownKeyOfAttentionIsRefusedInEveryFamily) {
  for (const WrittenConfig& row : written_configs()) {
    const FoundFamily found = find_family(row.config, row.request.section, "c.json");
    Json config = row.config;
    config[Json::json_pointer(found.place + "/attention_novelty")] = 3;
    const std::string why = refusal(config, row.request);
    EXPECT_EQ(why.rfind("c.json: " + found.place + "/attention_novelty: is 3; speaks of attention", 0), 0U)
        << row.about << ": " << why;
    EXPECT_EQ(why.find('\n'), std::string::npos);
  }
}

// A key that is harmless with one value is refused with another.
TEST(ModelConfigRefusal, HarmlessValuesAreHarmlessAlone) {
  for (const Json& pair : model_families().at("harmless")) {
    Json config = {{"model_type", "cohere"}};
    config[pair[0].get<std::string>()] = pair[1];
    EXPECT_EQ(refusal(config), "accepted") << pair.dump();
    config[pair[0].get<std::string>()] = !pair[1].get<bool>();
    EXPECT_NE(refusal(config).find("speaks of attention"), std::string::npos) << pair.dump() << refusal(config);
  }
}

TEST(ModelConfigRefusal, RefusesNamingTheField) {
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

// A section that is neither an object of the file nor a part of the family is not passed over; one that is either
// leads there.
TEST(ModelConfigRefusal, RefusesASectionThatNothingUses) {
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
TEST(ModelConfigRefusal, DamagedConfigurationsAreReadOrRefused) {
  std::uint64_t state = 7;
  const auto below = [&state](std::size_t bound) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(state >> 33) % bound;
  };
  const Json strange[] = {nullptr, true, -1, 0, 1e300, 3.5, "x/~", Json::array({1, "a"}), Json::object({{"a/~b", 1}})};
  int refused = 0, all = 0;
  for (const WrittenConfig& row : written_configs())
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
