// SPDX-License-Identifier: Apache-2.0
#include "vectors/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "vectors/format_version.hpp"
#include "vectors/input_family.hpp"
#include "vectors/slug.hpp"

namespace qkcts {
namespace {

std::string plan_text(const std::string& groups) {
  return R"({"schema":"qkcts-plan/1","suite":"s","seed":3,"groups":[)" + groups + "]}";
}

std::string refusal(const std::string& groups) {
  try {
    static_cast<void>(plan_from_json(plan_text(groups), "p.json"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

constexpr const char* good_group =
    R"({"contracts":["qwen3_rmsnorm","plain_sdpa"],"families":["gaussian","cancelling"],)"
    R"("formats":["binary32","bfloat16"],"shapes":["1,2,1,3,4,8,6"],"seeds":2,"rows":5})";

TEST(Plan, AGroupIsTheProductOfItsLists) {
  const Plan plan = plan_from_json(plan_text(good_group), "p.json");
  ASSERT_EQ(plan.cases.size(), 16U);
  EXPECT_EQ(plan.cases[0].slug, "qwen3_rmsnorm/gaussian/binary32_1x2x1x3x4x8x6");
  EXPECT_EQ(plan.cases[1].slug, "qwen3_rmsnorm/gaussian/binary32_1x2x1x3x4x8x6_s1");
  EXPECT_EQ(plan.cases[15].slug, "plain_sdpa/cancelling/bfloat16_1x2x1x3x4x8x6_s1");
  EXPECT_EQ(plan.cases[0].rows, 5U);
  std::set<std::uint64_t> seeds;
  for (const PlannedCase& planned : plan.cases) {
    EXPECT_TRUE(is_slug(planned.slug));
    EXPECT_TRUE(seeds.insert(planned.seed).second);
    EXPECT_EQ(planned.seed, case_seed(3, planned.slug));
  }
}

TEST(Plan, SeedsFollowThePlanOrTheOverride) {
  const Plan plan = plan_from_json(plan_text(good_group), "p.json");
  PlanOverrides overrides;
  overrides.has_seed = true;
  overrides.seed = 4;
  const Plan other = plan_from_json(plan_text(good_group), "p.json", overrides);
  EXPECT_EQ(other.seed, 4U);
  EXPECT_EQ(other.cases[0].slug, plan.cases[0].slug);
  EXPECT_NE(other.cases[0].seed, plan.cases[0].seed);
}

// The 8-bit formats stand at rounding points; no tensor of a case is stored in one.
TEST(Plan, EightBitFormatsAreNoStorage) {
  for (const std::string format : {"e4m3fn", "e5m2"}) {
    std::string group = good_group;
    group.replace(group.find("bfloat16"), 8, format);
    EXPECT_NE(refusal(group).find("formats/1"), std::string::npos) << refusal(group);
    EXPECT_NE(refusal(group).find(format), std::string::npos) << refusal(group);
  }
}

TEST(Plan, EpsilonsMakeContractsOfTheirOwn) {
  const Plan plan =
      plan_from_json(plan_text(R"({"contracts":["qwen3_rmsnorm"],"families":["gaussian"],"formats":["binary32"],)"
                               R"("shapes":["1,2,1,3,4,8,6"],"eps":[0,1e-12,0.5,0.001]})"),
                     "p.json");
  ASSERT_EQ(plan.cases.size(), 4U);
  EXPECT_EQ(plan.cases[0].contract.name, "qwen3_rmsnorm_eps_0");
  EXPECT_EQ(plan.cases[1].contract.name, "qwen3_rmsnorm_eps_1em12");
  EXPECT_EQ(plan.cases[2].contract.name, "qwen3_rmsnorm_eps_0p5");
  EXPECT_EQ(plan.cases[3].contract.name, "qwen3_rmsnorm_eps_0p001");
  EXPECT_EQ(plan.cases[1].contract.terms.q_norm.eps, 1e-12);
  EXPECT_EQ(plan.cases[1].contract.terms.k_norm.eps, 1e-12);
}

TEST(Plan, RangesAndPlacesOfEpsilonAreSweptTogether) {
  const std::string group =
      R"({"contracts":["qwen3_rmsnorm"],"families":["small_rows"],"formats":["bf16"],"shapes":["1,2,1,3,4,8,6"],)"
      R"("eps":[0,"1e-12..1e-3"],"eps_placement":["all"]})";
  const Plan plan = plan_from_json(plan_text(group), "p.json");
  ASSERT_EQ(plan.cases.size(), 44U);
  EXPECT_EQ(plan.cases[0].slug, "qwen3_rmsnorm_inside_root_eps_0/small_rows/bfloat16_1x2x1x3x4x8x6");
  EXPECT_EQ(plan.cases[43].contract.name, "qwen3_rmsnorm_max_inside_eps_0p001");
  EXPECT_EQ(plan.cases[43].contract.terms.k_norm.root, static_cast<std::uint32_t>(QKCTS_MAX_INSIDE));
  EXPECT_EQ(plan.cases[43].contract.terms.k_norm.eps, 1e-3);
  const auto with = [&](const char* from, const char* to) {
    std::string changed = group;
    return refusal(changed.replace(changed.find(from), std::string(from).size(), to));
  };
  EXPECT_NE(with("1e-12..1e-3", "1e-3..1e-12").find("the range is empty"), std::string::npos);
  EXPECT_NE(with("\"all\"", "\"beside\"").find("eps_placement/0"), std::string::npos);
  EXPECT_NE(with("[0,", "[-1,").find("eps/0"), std::string::npos);
  EXPECT_NE(with("qwen3_rmsnorm", "plain_sdpa").find("has no norm"), std::string::npos);
}

TEST(Plan, FormatsHaveShortNames) {
  EXPECT_EQ(plan_format("f64"), Format::binary64);
  EXPECT_EQ(plan_format("f32"), Format::binary32);
  EXPECT_EQ(plan_format("f16"), Format::binary16);
  EXPECT_EQ(plan_format("bf16"), Format::bfloat16);
  EXPECT_EQ(plan_format("bfloat16"), Format::bfloat16);
  EXPECT_FALSE(plan_format("f8").has_value());
  EXPECT_FALSE(plan_format("e4m3fn").has_value()) << "no storage format";
}

// A group of whatever fits leaves out in silence what another group is refused for.
TEST(Plan, AFittingGroupTakesEveryFamilyThatMakesSense) {
  const std::string group = R"({"contracts":["plain_sdpa"],"families":["gaussian","small*","equal_gaps"],)"
                            R"("formats":["f32"],"shapes":["1,2,1,3,4,24,6"])";
  EXPECT_NE(refusal(group + "}").find("needs a norm"), std::string::npos);
  const Plan plan = plan_from_json(plan_text(group + R"(,"fitting":true})"), "p.json");
  ASSERT_EQ(plan.cases.size(), 2U);
  EXPECT_EQ(plan.cases[1].family, "equal_gaps");
  EXPECT_TRUE(plan.cases[1].fitting);
  EXPECT_TRUE(plan.unfit.empty());
}

TEST(Plan, FaultsNameTheirPlace) {
  EXPECT_EQ(refusal(good_group), "accepted");
  const auto group = [](const char* contract, const char* family, const char* shape, const char* rest = "") {
    return std::string(R"({"contracts":[")") + contract + R"("],"families":[")" + family +
           R"("],"formats":["binary32"],"shapes":[")" + shape + "\"]" + rest + "}";
  };
  EXPECT_NE(refusal(group("qwen4", "gaussian", "1,2,1,3,4,8,6")).find("qwen4"), std::string::npos);
  EXPECT_NE(refusal(group("plain_sdpa", "gausian", "1,2,1,3,4,8,6")).find("gausian"), std::string::npos);
  for (const char* shape : {"1,2,1,3,4,8,xy", "1,2,1,3,4,8,6,7", "1,2,1,3,4,8,6 ", "1,2,1,,4,8,6,", "1,2,1,3,4,8.5,6"})
    EXPECT_NE(refusal(group("plain_sdpa", "gaussian", shape)).find("is not B,Hq,Hkv,Lq,Lk,D,Dv"), std::string::npos)
        << shape;
  EXPECT_NE(refusal(group("plain_sdpa", "gaussian", "1,3,2,3,4,8,6")).find("multiple"), std::string::npos);
  EXPECT_NE(refusal(group("plain_sdpa", "padded", "1,2,1,3,4,8,6")).find("needs key lengths"), std::string::npos);
  EXPECT_NE(refusal(group("plain_sdpa", "gaussian", "1,2,1,3,4,8,6", R"(,"profiles":["f64"])")).find("profile f64"),
            std::string::npos);
  EXPECT_NE(refusal(group("plain_sdpa", "gaussian", "1,2,1,3,4,8,6", R"(,"unknown":1)")), "accepted");
  EXPECT_NE(refusal(std::string(good_group) + "," + good_group).find("occurs twice"), std::string::npos);
  EXPECT_NE(refusal(std::string(good_group) + "," + group("plain_sdpa", "none", "1,2,1,3,4,8,6")).find("/groups/1"),
            std::string::npos);
  EXPECT_THROW(load_plan("no_such_suite"), InputError);
  EXPECT_THROW(load_plan("no/such/file.json"), InputError);
}

TEST(Plan, CoreHoldsWhatItPromises) {
  const Plan core = load_plan("core");
  EXPECT_LE(core.cases.size(), 200U);
  std::map<std::string, std::set<Format>> formats;
  std::set<std::int64_t> q_lengths, k_lengths, lanes;
  std::set<std::string> families;
  bool batch = false, differing_values = false, grouped = false, odd = false, one_lane = false, uneven = false;
  for (const PlannedCase& planned : core.cases) {
    if (planned.family == "gaussian") formats[planned.contract.name].insert(planned.format);
    families.insert(planned.family);
    q_lengths.insert(planned.shape.q_len);
    k_lengths.insert(planned.shape.k_len);
    batch |= planned.shape.batch > 1;
    differing_values |= planned.shape.head_dim != planned.shape.v_head_dim;
    grouped |= planned.shape.kv_heads > 1 && planned.shape.kv_heads < planned.shape.q_heads;
    odd |= planned.shape.head_dim % 2 != 0 && planned.shape.head_dim > 1;
    one_lane |= planned.shape.head_dim == 1;
    uneven |= planned.shape.head_dim % 8 != 0;
  }
  for (const std::string& contract : shipped_contracts()) {
    if (format_version_of(shipped_contract(contract).terms) != 1) continue;
    EXPECT_EQ(formats[contract].count(Format::binary32), 1U) << contract;
  }
  for (const char* contract :
       {"qwen3_rmsnorm", "henry2020_l2", "vit22b_rms_uncentered", "gemma2_softcap", "plain_sdpa"})
    EXPECT_EQ(formats[contract].size(), 4U) << contract;
  for (const std::int64_t length : {127, 128, 129, 255, 256, 257}) {
    EXPECT_EQ(k_lengths.count(length), 1U) << length;
    EXPECT_EQ(q_lengths.count(length), 1U) << length;
  }
  EXPECT_TRUE(batch && differing_values && grouped && odd && one_lane && uneven);
  for (const char* suite : {"clauses", "points", "edge", "robust", "special", "full"})
    for (const PlannedCase& planned : load_plan(suite).cases) families.insert(planned.family);
  EXPECT_EQ(families.size(), input_families().size());
}

// Contracts of core and smoke are those of ABI 1.0: an adapter of that age is judged by them.
TEST(Plan, OnlyTheSuitesOfLaterClausesNeedLaterVersions) {
  for (const char* name : {"smoke", "core", "norm40", "clauses", "points"}) {
    const std::uint32_t version = name == std::string("clauses") ? 2 : name == std::string("points") ? 3 : 1;
    for (const PlannedCase& planned : load_plan(name).cases)
      EXPECT_EQ(format_version_of(planned.contract.terms), version) << name << " " << planned.slug;
  }
}

// Every contract of a version in every format, in shapes whose extents differ. Hidden values that are propagated differ
// from finite ones only where one is not finite: the suite special has that contract.
void expect_every_contract(const char* suite, std::uint32_t version) {
  const Plan clauses = load_plan(suite);
  std::map<std::string, std::set<Format>> formats;
  for (const PlannedCase& planned : clauses.cases) {
    const qkcts_shape& s = planned.shape;
    const qkcts_regions& regions = planned.contract.terms.regions;
    if (planned.family == "gaussian") formats[planned.contract.name].insert(planned.format);
    const bool equal_heads = planned.contract.terms.rotation.tables == QKCTS_TABLES_PER_HEAD;
    EXPECT_TRUE(s.q_len != s.k_len && s.head_dim != s.v_head_dim && s.kv_heads > 1) << planned.slug;
    EXPECT_EQ(s.kv_heads < s.q_heads, !equal_heads) << planned.slug;
    if (regions.chunk > 0) {
      EXPECT_GT(s.k_len, regions.chunk) << planned.slug;
      EXPECT_GT((s.k_len - 1) / regions.chunk, (s.k_len - s.q_len) / regions.chunk) << "one chunk: " << planned.slug;
    }
  }
  for (const std::string& contract : shipped_contracts()) {
    const qkcts_contract terms = shipped_contract(contract).terms;
    if (format_version_of(terms) != version || terms.softmax.hidden_values == QKCTS_HIDDEN_PROPAGATED) continue;
    EXPECT_EQ(formats[contract].size(), 4U) << contract;
  }
}

TEST(Plan, ClausesHoldsWhatItPromises) {
  expect_every_contract("clauses", 2);
}

TEST(Plan, PointsHoldsWhatItPromises) {
  expect_every_contract("points", 3);
}

TEST(Plan, SpecialHoldsHiddenValuesThatArePropagated) {
  const std::vector<PlannedCase> cases = load_plan("special").cases;
  EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [](const PlannedCase& planned) {
    return planned.contract.terms.softmax.hidden_values == QKCTS_HIDDEN_PROPAGATED && planned.family == "nan_hidden";
  }));
}

// full: every contract that has the name of a model or a paper, in every format.
TEST(Plan, FullHoldsWhatItPromises) {
  std::map<std::string, std::set<Format>> formats;
  std::set<std::string> families;
  const Plan full = load_plan("full");
  for (const PlannedCase& planned : full.cases) {
    formats[planned.contract.name].insert(planned.format);
    families.insert(planned.family);
  }
  std::vector<std::string> named = model_contracts();
  for (const std::string& name : shipped_contracts())
    if (name.rfind("clause_", 0) != 0) named.push_back(name);
  for (const std::string& name : named) EXPECT_EQ(formats[name].size(), 4U) << name;
  EXPECT_EQ(families.count("long_decode"), 1U);
  EXPECT_GE(families.size(), 30U);
}

TEST(Plan, EdgeAndRobustHoldWhatTheyPromise) {
  std::set<double> epsilons;
  std::set<std::uint32_t> roots;
  for (const PlannedCase& planned : load_plan("edge").cases) {
    if (planned.family != "small_rows") continue;
    epsilons.insert(planned.contract.terms.q_norm.eps);
    roots.insert(planned.contract.terms.q_norm.root);
  }
  EXPECT_EQ(roots.size(), 4U);
  EXPECT_EQ(epsilons.count(0), 1U);
  EXPECT_GE(epsilons.size(), 6U);
  std::set<std::int64_t> lanes, keys;
  for (const PlannedCase& planned : load_plan("robust").cases) {
    lanes.insert(planned.shape.head_dim);
    keys.insert(planned.shape.k_len);
  }
  for (const std::int64_t length : {1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257})
    EXPECT_EQ(keys.count(length), 1U) << length;
  for (const std::int64_t count : {1, 3, 7, 17, 33, 65}) EXPECT_EQ(lanes.count(count), 1U) << count;
}

TEST(Plan, EveryShippedPlanLoads) {
  for (const std::string& name : shipped_plans()) EXPECT_FALSE(load_plan(name).cases.empty()) << name;
}

}  // namespace
}  // namespace qkcts
