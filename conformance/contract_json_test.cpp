// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "conformance/contract.hpp"
#include "conformance/contract_field.hpp"
#include "conformance/json.hpp"
#include "conformance/json_schema.hpp"

namespace qkcts {
namespace {

constexpr const char* good = R"({
  "schema": "qkcts-contract/1", "name": "mine", "title": "t", "sources": ["s"],
  "model": {"q_heads": 4, "kv_heads": 2, "head_dim": 64},
  "q_norm": {"kind": "rms", "root": "inside_root", "eps": 1e-6, "gain": "w", "gain_axes": "head_dim"},
  "k_norm": {"center": true, "statistic": "mean_square", "root": "max_root", "eps": 2e-6, "variance": "one_pass_clipped"},
  "rope": {"order": "norm_then_rope", "pairing": "interleaved", "span": "last", "rotated": 32, "theta": 500000},
  "score": {"scale_form": "constant", "scale_value": 0.3, "temperature": 0.5, "softcap": 50, "bias_order": "before_softcap"},
  "mask": {"causal": true, "alignment": "offset", "offset": -3, "kv_lengths": true, "window": {"left": 7, "right": null}, "empty_row": "nan"}
})";

// `good` with the value at a JSON pointer replaced, or removed if `value` is empty.
std::string changed(const char* pointer, const std::string& value) {
  Json document = parse_json(good, "good");
  const Json::json_pointer place(pointer);
  if (value.empty())
    document.at(place.parent_pointer()).erase(place.back());
  else
    document[place] = parse_json(value, "value");
  return document.dump();
}

std::string refusal(std::string_view text) {
  try {
    contract_from_json(text, "f.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ContractJson, FillsTheCStruct) {
  const Contract c = contract_from_json(good, "good");
  EXPECT_EQ(c.name, "mine");
  EXPECT_EQ(c.model_shape.kv_heads, 2);
  EXPECT_EQ(c.model_shape.v_head_dim, 64);
  const qkcts_contract& t = c.terms;
  EXPECT_EQ(t.struct_size, sizeof t);
  EXPECT_EQ(t.version, QKCTS_CONTRACT_VERSION);
  EXPECT_EQ(t.q_norm.applied, 1U);
  EXPECT_EQ(t.q_norm.center, 0U);
  EXPECT_EQ(t.q_norm.statistic, QKCTS_MEAN_SQUARE);
  EXPECT_EQ(t.q_norm.gain_axes, QKCTS_AXES_HEAD_DIM);
  EXPECT_EQ(t.q_norm.eps, 1e-6);
  EXPECT_EQ(t.k_norm.center, 1U);
  EXPECT_EQ(t.k_norm.root, QKCTS_MAX_ROOT);
  EXPECT_EQ(t.k_norm.variance, QKCTS_VARIANCE_ONE_PASS_CLIPPED);
  EXPECT_EQ(t.k_norm.gain, QKCTS_GAIN_NONE);
  EXPECT_EQ(t.rope.order, QKCTS_NORM_THEN_ROPE);
  EXPECT_EQ(t.rope.pairing, QKCTS_INTERLEAVED);
  EXPECT_EQ(t.rope.span, QKCTS_SPAN_LAST);
  EXPECT_EQ(t.rope.rotated, 32U);
  EXPECT_EQ(t.rope.theta, 500000);
  EXPECT_EQ(t.score.scale_form, QKCTS_SCALE_CONSTANT);
  EXPECT_EQ(t.score.scale_value, 0.3);
  EXPECT_EQ(t.score.temperature, 0.5);
  EXPECT_EQ(t.score.softcap, 50);
  EXPECT_EQ(t.score.bias_order, QKCTS_BIAS_BEFORE_SOFTCAP);
  EXPECT_EQ(t.mask.alignment, QKCTS_OFFSET);
  EXPECT_EQ(t.mask.offset, -3);
  EXPECT_EQ(t.mask.has_window, 1U);
  EXPECT_EQ(t.mask.window_left, 7);
  EXPECT_LT(t.mask.window_right, 0);
  EXPECT_EQ(t.mask.empty_row, QKCTS_EMPTY_NAN);
}

TEST(ContractJson, RefusesWithThePlaceAndWhatIsAllowed) {
  struct Row {
    const char* pointer;
    const char* value;
    const char* expected;
  };
  const Row rows[] = {
      {"/q_norm/root", "\"beside_root\"",
       "f.json: /q_norm/root: is \"beside_root\"; allowed: inside_root, outside_root, max_root, max_inside"},
      {"/q_norm/kind", "\"batch\"",
       "f.json: /q_norm/kind: is \"batch\"; allowed: none, rms, layer_norm, l2, centered_l2"},
      {"/q_norm/epsilon", "1", "f.json: /q_norm: key \"epsilon\" is unknown; known keys: axis"},
      {"/notes", "1", "f.json: /: key \"notes\" is unknown"},
      {"/q_norm/eps", "-1", "f.json: /q_norm/eps: is -1; must be >= 0"},
      {"/q_norm/eps", "\"1e-6\"", "f.json: /q_norm/eps: is of type string; allowed: number"},
      {"/q_norm/eps", "null", "f.json: /q_norm/eps: is of type null"},
      {"/q_norm/eps", "", "f.json: /q_norm: key \"eps\" is missing"},
      {"/q_norm/root", "", "f.json: /q_norm: key \"root\" is missing"},
      {"/q_norm/gain_axes", "", "key \"gain_axes\" is missing"},
      {"/q_norm/gain_axes", "\"none\"", "f.json: /q_norm: q_norm.gain_axes must be given exactly when there is a gain"},
      {"/q_norm/center", "true", "f.json: /q_norm: center and statistic contradict kind \"rms\""},
      {"/q_norm/kind", "\"none\"", "has no meaning beside kind \"none\": remove it"},
      {"/q_norm/kind", "", "give \"kind\", or both"},
      {"/q_norm/variance", "\"one_pass_clipped\"", "needs a centred mean_square"},
      {"/k_norm", "", "f.json: /: key \"k_norm\" is missing"},
      {"/k_norm", "[]", "f.json: /k_norm: is of type array; allowed: object"},
      {"/rope/rotated", "33", "rope.rotated is 33, must be even"},
      {"/rope/rotated", "-2", "f.json: /rope/rotated: is -2; must be >= 2"},
      {"/rope/rotated", "4294967298", "f.json: /rope/rotated: is 4294967298; must be <= 65536"},
      {"/rope/rotated", "32.5", "f.json: /rope/rotated: is of type number; allowed: integer, null"},
      {"/rope/theta", "1", "f.json: /rope/theta: is 1; must be > 1"},
      {"/rope/order", "\"none\"", "f.json: /rope/pairing: has no meaning"},
      {"/rope/pairing", "", "f.json: /rope: key \"pairing\" is missing"},
      {"/score/scale_value", "", "f.json: /score: key \"scale_value\" is missing"},
      {"/score/scale_form", "\"learned_scalar\"", "f.json: /score/scale_value: has no meaning"},
      {"/score/temperature", "0", "f.json: /score/temperature: is 0; must be > 0"},
      {"/score/softcap", "0", "f.json: /score/softcap: is 0; must be > 0"},
      {"/mask/alignment", "", "f.json: /mask: key \"alignment\" is missing"},
      {"/mask/alignment", "\"top_left\"", "f.json: /mask/offset: has no meaning"},
      {"/mask/empty_row", "", "f.json: /mask: key \"empty_row\" is missing"},
      {"/mask/offset", "1e18", "f.json: /mask/offset: is of type number; allowed: integer"},
      {"/mask/offset", "9007199254740993", "must be <= 1099511627776"},
      {"/mask/window", "{\"left\": null, \"right\": null}", "unlimited on both sides"},
      {"/mask/window", "{\"left\": 1}", "f.json: /mask/window: key \"right\" is missing"},
      {"/mask/window/left", "-1", "f.json: /mask/window/left: is -1; must be >= 0"},
      {"/mask/causal", "1", "f.json: /mask/causal: is of type number; allowed: boolean"},
      {"/schema", "\"qkcts-contract/2\"", "f.json: /schema: is \"qkcts-contract/2\"; allowed: \"qkcts-contract/1\""},
      {"/name", "\"My Contract\"", "f.json: /name: must be one or more of a-z, 0-9 and _"},
      {"/name", "\"\"", "f.json: /name: "},
      {"/model/q_heads", "3", "f.json: /model: q_heads must be a multiple of kv_heads"},
      {"/sources/0", "1", "f.json: /sources/0: is of type number; allowed: string"},
  };
  for (const Row& row : rows) {
    const std::string why = refusal(changed(row.pointer, row.value));
    EXPECT_NE(why.find(row.expected), std::string::npos) << row.pointer << " " << row.value << ": " << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  }
}

TEST(ContractJson, RefusesWhatIsNoJson) {
  EXPECT_NE(refusal("").find("f.json:1:1: "), std::string::npos) << refusal("");
  EXPECT_NE(refusal("{\n  \"name\": }").find("f.json:2:11: "), std::string::npos) << refusal("{\n  \"name\": }");
  EXPECT_NE(refusal("{\"name\": NaN}").find("f.json:1:10"), std::string::npos) << refusal("{\"name\": NaN}");
  EXPECT_NE(refusal("{\"a\": 1e999}").find("overflow"), std::string::npos) << refusal("{\"a\": 1e999}");
  EXPECT_NE(refusal("{\"a\": 1, \"b\": 2, \"a\": 3}").find("\"a\" occurs twice"), std::string::npos);
  EXPECT_NE(refusal("{\"name\": \"\xff\"}").find("UTF-8"), std::string::npos) << refusal("{\"name\": \"\xff\"}");
  EXPECT_NE(refusal(std::string(1000000, '[')).find("nested deeper"), std::string::npos);
  EXPECT_NE(refusal("{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}").find("nested deeper"),
            std::string::npos);
  EXPECT_NE(refusal(changed("/title", "\"" + std::string(100000, 'x') + "\"")).find("longer than 4096"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(good) + "x").find("f.json:"), std::string::npos);
  EXPECT_NE(refusal(std::string("\0", 1)).find("f.json:1:1"), std::string::npos);
}

// Damaged documents: each is read or refused in one line; nothing else may happen (run with sanitizers, too).
TEST(ContractJson, DamagedDocumentsAreReadOrRefused) {
  std::uint64_t state = 1;
  const auto below = [&state](std::size_t bound) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(state >> 33) % bound;
  };
  const std::string whole = parse_json(good, "good").dump();
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string text = whole;
    for (std::size_t faults = 1 + below(3); faults > 0; --faults) {
      const std::size_t at = below(text.size());
      const std::size_t kind = below(4);
      if (kind == 0) text[at] = static_cast<char>(below(256));
      if (kind == 1) text.erase(at, 1 + below(5));
      if (kind == 2) text.insert(at, 1, "{}[],:\"0-e1tfn"[below(14)]);
      if (kind == 3) text.insert(at, text.substr(below(text.size()), below(40)));
    }
    const std::string why = refusal(text);
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
    refused += why == "accepted" ? 0 : 1;
  }
  EXPECT_GT(refused, 1500);
  EXPECT_LT(refused, 2000) << "some damage is harmless, e.g. in a title";
}

TEST(ContractJson, ANormBeforeNoProjectionIsRefused) {
  Json document = parse_json(good, "good");
  document["q_input_norm"] = {{"kind", "rms"}};
  EXPECT_NE(refusal(document.dump()).find("f.json: /q_input_norm: has no meaning"), std::string::npos)
      << refusal(document.dump());
}

TEST(ContractJson, TheEmptyNormNeedsOneKeyOnly) {
  const std::string text = changed("/q_norm", "{\"kind\": \"none\"}");
  EXPECT_EQ(contract_from_json(text, "x").terms.q_norm.applied, 0U);
}

// The schema is for editors and other programs; the table is what is read. They must say the same.
TEST(ContractSchema, RepeatsTheTableExactly) {
  const Json schema = parse_json(schema_text("contract"), "schema");
  std::map<std::string, std::vector<std::string>> keys;  // section -> keys of the table
  for (const ContractField& field : contract_field_table()) {
    const std::string section(field.section);
    keys[section].emplace_back(field.key);
    const Json& properties = section.ends_with("_input_norm") ? schema["definitions"]["input_norm"]["properties"]
                             : section.ends_with("_norm")     ? schema["definitions"]["norm"]["properties"]
                                                              : schema["properties"][section]["properties"];
    ASSERT_TRUE(properties.contains(field.key)) << field.path();
    if (field.type != FieldType::enumeration) continue;
    const Json texts(std::vector<std::string>(field.texts.begin(), field.texts.end()));
    if (section == "rounding") {
      EXPECT_EQ(properties[std::string(field.key)]["$ref"], "#/definitions/point");
      EXPECT_EQ(schema["definitions"]["point"]["enum"], texts);
      continue;
    }
    EXPECT_EQ(properties[std::string(field.key)]["enum"], texts) << field.path();
  }
  EXPECT_EQ(schema["definitions"]["norm"]["properties"]["kind"]["enum"],
            Json(std::vector<std::string>(norm_kind_texts().begin(), norm_kind_texts().end())));
  EXPECT_EQ(schema["definitions"]["norm"]["properties"].size(), keys["q_norm"].size() + 1) << "kind";
  EXPECT_EQ(schema["definitions"]["input_norm"]["properties"].size(), keys["q_input_norm"].size() + 1) << "kind";
  EXPECT_EQ(keys["v_norm"].size(), keys["k_norm"].size());
  EXPECT_EQ(keys["k_input_norm"], keys["q_input_norm"]);
  for (const char* section : {"rope", "projection", "rounding", "softmax", "heads"})
    EXPECT_EQ(schema["properties"][section]["properties"].size(), keys[section].size()) << section;
  EXPECT_EQ(schema["properties"]["score"]["properties"].size(), keys["score"].size());
  EXPECT_EQ(schema["properties"]["mask"]["properties"].size(), keys["mask"].size() + 1) << "window";
}

}  // namespace
}  // namespace qkcts
