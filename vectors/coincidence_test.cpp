// SPDX-License-Identifier: Apache-2.0
#include "vectors/coincidence.hpp"

#include <gtest/gtest.h>

#include <set>

#include "vectors/generate.hpp"
#include "vectors/input_family.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts {
namespace {

std::set<std::string> names_of(const std::vector<Coincidence>& found) {
  std::set<std::string> names;
  for (const Coincidence& coincidence : found) names.insert(std::string(coincidence.name));
  return names;
}

std::set<std::string> of_plan(const std::string& contract, const std::string& shape) {
  return names_of(coincidences(sample_plan(contract, "gaussian", Format::binary32, shape)));
}

using Names = std::set<std::string>;

TEST(Coincidence, OneIsPlantedAndNamedAtATime) {
  const std::string contract = "clause_eps_inside_root";  // epsilons of q and k differ
  EXPECT_EQ(of_plan(contract, "2,4,2,5,9,24,20"), Names{});
  EXPECT_EQ(of_plan(contract, "2,4,2,9,9,24,20"), Names{"lengths"});
  EXPECT_EQ(of_plan(contract, "2,4,4,5,9,24,20"), Names{"heads"});
  EXPECT_EQ(of_plan(contract, "2,4,1,5,9,24,20"), Names{"heads"});
  EXPECT_EQ(of_plan(contract, "2,4,2,5,9,24,24"), Names{"widths"});
  EXPECT_EQ(of_plan(contract, "2,4,2,5,1,24,20"), Names{"one_key"});
  EXPECT_EQ(of_plan("qwen3_rmsnorm", "2,4,2,5,9,24,20"), Names{"eps"}) << "the model's own choice";
  EXPECT_EQ(of_plan("plain_sdpa", "2,4,2,5,9,24,20"), Names{}) << "without a norm there is no epsilon";
}

TEST(Coincidence, AScaleThatIsTheUsualOneByAccident) {
  PlannedCase planned = sample_plan("clause_scale_constant", "gaussian", Format::binary32, "2,4,2,5,9,64,20");
  EXPECT_EQ(names_of(coincidences(planned)), Names{});
  planned.contract.terms.score.scale_value = 0.125;
  EXPECT_EQ(names_of(coincidences(planned)), Names{"scale"});
}

// Planted in the numbers of an ordinary case, which has none.
TEST(Coincidence, GainsAndPositionsThatTellNothing) {
  const Case ordinary = make_case(sample_plan("qwen3_rmsnorm", "gaussian", Format::binary32, "2,4,2,5,9,24,20"));
  EXPECT_EQ(names_of(coincidences(ordinary)), Names{});

  Case equal = ordinary;
  equal.inputs.set(Input::k_gain, ordinary.inputs.at(Input::q_gain));
  EXPECT_EQ(names_of(coincidences(equal)), Names{"gains"});

  Case flat = ordinary;
  Tensor gain = ordinary.inputs.at(Input::q_gain);
  for (std::size_t i = 1; i < gain.count(); ++i) gain.set_pattern(i, gain.pattern(0));
  flat.inputs.set(Input::q_gain, gain);
  EXPECT_EQ(names_of(coincidences(flat)), Names{"gains"});

  Case still = ordinary;
  Tensor ids = ordinary.inputs.at(Input::k_position_ids);
  for (std::size_t i = 1; i < ids.count(); ++i) ids.set_pattern(i, ids.pattern(0));
  still.inputs.set(Input::k_position_ids, ids);
  EXPECT_EQ(names_of(coincidences(still)), Names{"positions"});
}

TEST(Coincidence, HeadsThatShareTheirGains) {
  const Case ordinary =
      make_case(sample_plan("clause_gain_head_head_dim", "gaussian", Format::binary32, "2,4,2,5,9,24,20"));
  EXPECT_EQ(names_of(coincidences(ordinary)), Names{});
  Case copied = ordinary;
  Tensor gain = ordinary.inputs.at(Input::q_gain);
  const std::size_t lanes = gain.count() / 4;
  for (std::size_t i = lanes; i < gain.count(); ++i) gain.set_pattern(i, gain.pattern(i % lanes));
  copied.inputs.set(Input::q_gain, gain);
  EXPECT_EQ(names_of(coincidences(copied)), Names{"gains"});
}

// The ordinary draw of every contract that is shipped has no such gains and positions.
TEST(Coincidence, OrdinaryInputsOfEveryContractHaveNone) {
  std::vector<std::string> contracts = shipped_contracts();
  for (const std::string& name : model_contracts()) contracts.push_back(name);
  for (const std::string& name : contracts) {
    const Contract contract = shipped_contract(name);
    const bool per_head = contract.terms.rotation.tables == QKCTS_TABLES_PER_HEAD;
    const std::string shape = per_head ? "2,3,3,5,9,72,20" : "2,4,2,5,9,72,20";
    const PlannedCase planned = sample_plan(name, "gaussian", Format::bfloat16, shape);
    for (const Coincidence& found : coincidences(draw_case("gaussian", contract, planned.shape, planned.format, 1).c))
      ADD_FAILURE() << name << ": " << found.reason;
  }
}

std::string plan_text(const std::string& shapes, const std::string& rest = "") {
  return R"({"schema":"qkcts-plan/1","suite":"s","seed":3,"groups":[{"contracts":["plain_sdpa"],)"
         R"("families":["gaussian"],"formats":["binary32"],"shapes":[)" +
         shapes + "]" + rest + "}]}";
}

TEST(Coincidence, AnotherCaseOfTheContractMakesUpForIt) {
  const auto uncovered = [](const std::string& text) { return uncovered_coincidences(plan_from_json(text, "p")); };
  const std::vector<UncoveredCoincidence> alone = uncovered(plan_text(R"("2,4,2,9,9,24,20")"));
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_EQ(alone[0].coincidence.name, "lengths");
  EXPECT_EQ(alone[0].slug, "plain_sdpa/gaussian/binary32_2x4x2x9x9x24x20");
  EXPECT_TRUE(uncovered(plan_text(R"("2,4,2,9,9,24,20","2,4,2,5,9,24,20")")).empty());
  EXPECT_EQ(uncovered(plan_text(R"("2,4,2,9,9,24,20","2,4,2,7,7,24,20")")).size(), 2U);
  EXPECT_TRUE(uncovered(plan_text(R"("2,4,2,9,9,24,20")", R"(,"allow":{"lengths":"a test of this rule"})")).empty());
  EXPECT_EQ(uncovered(plan_text(R"("2,4,2,9,9,24,20")", R"(,"allow":{"heads":"a test of this rule"})")).size(), 1U);
}

TEST(Coincidence, AllowancesNeedAKnownNameAndAReason) {
  EXPECT_THROW(plan_from_json(plan_text(R"("2,4,2,9,9,24,20")", R"(,"allow":{"length":"a test of this rule"})"), "p"),
               InputError);
  EXPECT_THROW(plan_from_json(plan_text(R"("2,4,2,9,9,24,20")", R"(,"allow":{"lengths":""})"), "p"), InputError);
}

}  // namespace
}  // namespace qkcts
