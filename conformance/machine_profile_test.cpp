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
            (std::vector<std::string>{"bf16_f32acc_ftz", "bf16_f32acc_ampere", "bf16_f32acc_hopper", "bf16_f32acc_simd",
                                      "f32_lanes8", "tf32", "f16_f16acc", "f16_f16acc_matrix", "f32_approx",
                                      "bf16_f32acc_approx", "f16_f32acc_approx"}));
  EXPECT_EQ(profiles_for(Format::bfloat16).size(), 1U);
  EXPECT_EQ(selectable_profiles(Format::bfloat16).size(), 6U);
  EXPECT_EQ(selectable_profiles(Format::binary32).size(), profiles_for(Format::binary32).size() + 3);
  EXPECT_EQ(selectable_profiles(Format::binary16).size(), profiles_for(Format::binary16).size() + 3);
  const Profile base = shipped_profile("bf16_f32acc");
  for (const char* unit : {"bf16_f32acc_ftz", "bf16_f32acc_ampere", "bf16_f32acc_hopper"}) {
    const std::string name = unit;
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

// Every value of a variant has its source, too.
TEST(Profile, NamedVariantsAreSourced) {
  for (const std::string& name : further_profiles()) {
    const Profile p = shipped_profile(name);
    EXPECT_EQ(p.name, name);
    EXPECT_GE(p.sources.size(), 19U) << name;
    for (const std::string& source : p.sources) EXPECT_GT(source.size(), source.find(": ") + 12) << source;
  }
}

TEST(Profile, NamedVariantsAreWhatTheirNamesSay) {
  const Profile tf32 = shipped_profile("tf32");
  for (const double u : {tf32.u_q, tf32.u_k, tf32.u_p, tf32.u_v}) EXPECT_EQ(u, 0x1p-10);
  EXPECT_EQ(tf32.operand_underflow, 0x1p-126);
  EXPECT_TRUE(tf32.flush_to_zero && tf32.denormals_are_zero);
  const Profile half = shipped_profile("f16_f16acc");
  EXPECT_EQ(half.accumulator, Format::binary16);
  EXPECT_FALSE(half.probability_storage.has_value());
  EXPECT_EQ(shipped_profile("f32_lanes8").lanes, 8);
  EXPECT_EQ(shipped_profile("bf16_f32acc_simd").product_growth, 1);
  EXPECT_FALSE(shipped_profile("bf16_f32acc_simd").probability_storage.has_value());
  for (const char* base : {"f32", "bf16_f32acc", "f16_f32acc"}) {
    const Profile exact = shipped_profile(base);
    const Profile fast = shipped_profile(std::string(base) + "_approx");
    EXPECT_EQ(fast.storage, exact.storage);
    EXPECT_EQ(fast.a_tanh, 0x1p-11);
    EXPECT_GT(fast.b_log, std::pow(2.0, -21.41));
    EXPECT_TRUE(fast.flush_to_zero && fast.denormals_are_zero);
    EXPECT_NE(fast.title.find("never called equal"), std::string::npos);
    // Looser in every function, or as loose.
    EXPECT_GE(fast.k_rsqrt, exact.k_rsqrt);
    EXPECT_GE(fast.k_sqrt, exact.k_sqrt);
    EXPECT_GE(fast.k_exp, exact.k_exp);
    EXPECT_GE(fast.k_log, exact.k_log);
    EXPECT_GT(fast.k_div, exact.k_div);
  }
}

TEST(Profile, CanonicalTextSaysWhatTheFileSays) {
  const std::string text(shipped_profile_text("f32"));
  const std::string canonical = canonical_profile(text, "f32");
  EXPECT_EQ(canonical_profile(canonical, "f32"), canonical);
  EXPECT_EQ(canonical_profile(parse_json(text, "f32").dump(7), "f32"), canonical);
  Json other = parse_json(text, "f32");
  other["parameters"]["k_exp"]["source"] = "assumption: another";
  EXPECT_NE(canonical_profile(other.dump(), "f32"), canonical);
  EXPECT_THROW(canonical_profile("{}", "x"), InputError);
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

// What most machines do without is 0 where it is not given.
TEST(Profile, ReadsParametersThatMayBeAbsent) {
  Json document = parse_json(changed(nullptr, nullptr), "x");
  const Profile without = profile_from_json(document.dump(), "x");
  EXPECT_EQ(without.lanes, 0);
  for (const double part : {without.u_q, without.u_k, without.u_p, without.u_v, without.operand_underflow,
                            without.a_tanh, without.b_tanh, without.b_log})
    EXPECT_EQ(part, 0);
  double value = 0x1p-12;
  for (const char* key : {"u_q", "u_k", "u_p", "u_v", "operand_underflow", "a_tanh", "b_tanh", "b_log"}) {
    document["parameters"][key] = {{"value", value}, {"source", "assumption: a test"}};
    value *= 2;
  }
  document["parameters"]["lanes"] = {{"value", 4}, {"source", "assumption: a test"}};
  const Profile p = profile_from_json(document.dump(), "x");
  EXPECT_EQ(p.lanes, 4);
  EXPECT_EQ((std::vector<double>{p.u_q, p.u_k, p.u_p, p.u_v, p.operand_underflow, p.a_tanh, p.b_tanh, p.b_log}),
            (std::vector<double>{0x1p-12, 0x1p-11, 0x1p-10, 0x1p-9, 0x1p-8, 0x1p-7, 0x1p-6, 0x1p-5}));
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
      {"/parameters/u_q", R"({"value": 0.5, "source": "assumption: x"})", "must be <= 0.0625"},
      {"/parameters/lanes", R"({"value": 1, "source": "assumption: x"})", "one lane is any order"},
  };
  for (const auto& row : rows)
    EXPECT_NE(refusal(changed(row[0], row[1])).find(row[2]), std::string::npos) << refusal(changed(row[0], row[1]));
  EXPECT_THROW(shipped_profile("f31"), InputError);
}

}  // namespace
}  // namespace qkcts
