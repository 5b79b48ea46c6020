// SPDX-License-Identifier: Apache-2.0
#include "conformance/machine_profile.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/contract.hpp"
#include "conformance/further_profiles.hpp"
#include "conformance/json.hpp"
#include "conformance/json_schema.hpp"

namespace qkcts {
namespace {

TEST(Profile, ShippedOnesCoverEveryFormat) {
  EXPECT_EQ(shipped_profiles(), (std::vector<std::string>{"f64", "f32", "f32_ftz", "bf16_f32acc", "f16_f32acc"}));
  EXPECT_EQ(profiles_for(Format::binary64).front().name, "f64");
  EXPECT_EQ(profiles_for(Format::binary32).size(), 2U);
  EXPECT_EQ(profiles_for(Format::binary32).front().name, "f32");
  EXPECT_EQ(profiles_for(Format::bfloat16).front().name, "bf16_f32acc");
  EXPECT_EQ(profiles_for(Format::binary16).front().name, "f16_f32acc");
}

// What every legal rewrite needs: any order, a running maximum that may rise at every key, no function better than
// correctly rounded. And every value says where it comes from.
TEST(Profile, ShippedOnesAreSoundForEveryRewriteAndSourced) {
  for (const std::string& name : shipped_profiles()) {
    const Profile p = shipped_profile(name);
    EXPECT_EQ(p.name, name);
    EXPECT_EQ(p.chain, 0);
    EXPECT_EQ(p.online_block, 1);
    EXPECT_GE(p.product_growth, 1);
    for (const double k : {p.k_rsqrt, p.k_sqrt, p.k_exp, p.k_tanh, p.k_log, p.k_div, p.k_pow, p.k_cos})
      EXPECT_GE(k, 0.5);
    EXPECT_GE(p.k_rsqrt, 1) << "sqrt then divide: two roundings";
    EXPECT_EQ(p.sources.size(), 19U);
    for (const std::string& source : p.sources) EXPECT_GT(source.size(), source.find(": ") + 12) << source;
    EXPECT_EQ(p.flush_to_zero, name == "f32_ftz");
    EXPECT_EQ(p.denormals_are_zero, name == "f32_ftz");
    EXPECT_EQ(p.probability_storage.has_value(), name.ends_with("_f32acc"));
  }
  EXPECT_GT(shipped_profile("bf16_f32acc").shift_slack, 8 * std::log(2));
  EXPECT_EQ(shipped_profile("bf16_f32acc").probability_storage, Format::bfloat16);
  EXPECT_EQ(shipped_profile("f16_f32acc").probability_storage, Format::binary16);
  EXPECT_EQ(shipped_profile("f32").shift_slack, 0);
}

// Named variants judge only where they are asked for; the tighter ones differ in the growth of products alone.
TEST(Profile, NamedVariantsAreNoDefaults) {
  EXPECT_EQ(further_profiles(),
            (std::vector<std::string>{"bf16_f32acc_ftz", "bf16_f32acc_ampere", "bf16_f32acc_hopper"}));
  EXPECT_EQ(profiles_for(Format::bfloat16).size(), 1U);
  EXPECT_EQ(selectable_profiles(Format::bfloat16).size(), 4U);
  EXPECT_EQ(selectable_profiles(Format::binary32).size(), profiles_for(Format::binary32).size());
  const Profile base = shipped_profile("bf16_f32acc");
  for (const std::string& name : further_profiles()) {
    const Profile p = shipped_profile(name);
    EXPECT_EQ(p.name, name);
    EXPECT_EQ(p.storage, base.storage);
    EXPECT_EQ(p.k_exp, base.k_exp);
    EXPECT_EQ(p.sources.size(), base.sources.size());
    EXPECT_EQ(p.flush_to_zero, name.ends_with("_ftz"));
    EXPECT_EQ(p.denormals_are_zero, name.ends_with("_ftz"));
    EXPECT_EQ(p.product_growth < base.product_growth, !name.ends_with("_ftz"));
    EXPECT_GT(p.product_growth, 1);
  }
}

std::string changed(const char* pointer, const char* value) {
  Json document = parse_json(R"({"schema": "qkcts-profile/1", "name": "x", "title": "x", "parameters": {}})", "x");
  const std::pair<const char*, Json> values[] = {{"storage", "binary32"},
                                                 {"accumulator", "binary32"},
                                                 {"flush_to_zero", false},
                                                 {"denormals_are_zero", false},
                                                 {"truncating", true},
                                                 {"product_growth", 1.5},
                                                 {"chain", 19},
                                                 {"online_block", 64},
                                                 {"shift_slack", 1.25},
                                                 {"probability_storage", "binary16"},
                                                 {"k_rsqrt", 1},
                                                 {"k_sqrt", 0.5},
                                                 {"k_exp", 3},
                                                 {"k_tanh", 5},
                                                 {"k_log", 6},
                                                 {"k_div", 7},
                                                 {"k_pow", 8.25},
                                                 {"k_cos", 9},
                                                 {"b_cos", 0.125}};
  for (const auto& [key, given] : values)
    document["parameters"][key] = {{"value", given}, {"source", "assumption: a test"}};
  if (pointer != nullptr) document[Json::json_pointer(pointer)] = parse_json(value, "value");
  return document.dump();
}

TEST(Profile, ReadsEveryParameter) {
  const Profile p = profile_from_json(changed(nullptr, nullptr), "x");
  EXPECT_TRUE(p.truncating);
  EXPECT_EQ(p.product_growth, 1.5);
  EXPECT_EQ(p.chain, 19);
  EXPECT_EQ(p.online_block, 64);
  EXPECT_EQ(p.shift_slack, 1.25);
  EXPECT_EQ(p.probability_storage, Format::binary16);
  EXPECT_EQ(p.k_rsqrt, 1);
  EXPECT_EQ(p.k_sqrt, 0.5);
  EXPECT_EQ(p.k_exp, 3);
  EXPECT_EQ(p.k_tanh, 5);
  EXPECT_EQ(p.k_log, 6);
  EXPECT_EQ(p.k_div, 7);
  EXPECT_EQ(p.k_pow, 8.25);
  EXPECT_EQ(p.k_cos, 9);
  EXPECT_EQ(p.b_cos, 0.125);
  EXPECT_EQ(p.sources.back(), "b_cos: assumption: a test");
}

TEST(Profile, RefusesWithThePlace) {
  const auto refusal = [](const std::string& text) {
    try {
      profile_from_json(text, "p.json");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const char* rows[][3] = {
      {"/parameters/k_exp/value", "0.25", "p.json: /parameters/k_exp/value: is 0.25; must be >= 0.5"},
      {"/parameters/k_exp", "2", "p.json: /parameters/k_exp: is of type number; allowed: object"},
      {"/parameters/k_exp", "{\"value\": 2}", "p.json: /parameters/k_exp: key \"source\" is missing"},
      {"/parameters/k_sine", "2", "p.json: /parameters: key \"k_sine\" is unknown"},
      {"/parameters/storage/value", "\"tf32\"", "allowed: binary64, binary32, binary16, bfloat16"},
      {"/parameters/accumulator/value", "\"binary16\"", "p.json: /parameters: the accumulator is narrower"},
      {"/parameters/probability_storage/value", "\"binary64\"", "wider than the accumulator"},
      {"/parameters/online_block/value", "0", "must be >= 1"},
  };
  for (const auto& row : rows)
    EXPECT_NE(refusal(changed(row[0], row[1])).find(row[2]), std::string::npos) << refusal(changed(row[0], row[1]));
  EXPECT_THROW(shipped_profile("f31"), InputError);
}

}  // namespace
}  // namespace qkcts
