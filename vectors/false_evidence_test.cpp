// SPDX-License-Identifier: Apache-2.0
// Evidence that is wrong as a whole, as a worse oracle or an older reading of a contract would have made it: digests
// match, and recomputation finds it.
#include <gtest/gtest.h>

#include "vectors/sample_golden.hpp"
#include "vectors/verify.hpp"

namespace qkcts {
namespace {

constexpr const char* shape = "1,2,1,3,4,8,6";

std::string found(const GoldenCase& golden) {
  const TemporaryFolder folder;
  VerifyOptions options;
  options.sample = 100;
  const VerifyReport report = verify_corpus(write_corpus(folder, "a.h5", {golden}), options);
  return report.mismatches.empty() ? "nothing" : report.mismatches[0].what;
}

GoldenCase sample(const char* contract) {
  return sample_golden(contract, "gaussian", Format::bfloat16, shape);
}

// Computed without the points that its contract declares.
GoldenCase sample_of_points_left_out() {
  PlannedCase plan = sample_plan("clause_round_norm", "gaussian", Format::bfloat16, shape);
  const qkcts_rounding declared = plan.contract.terms.rounding;
  plan.contract.terms.rounding = {};
  std::vector<DroppedProfile> dropped;
  GoldenCase golden = make_golden(plan, dropped);
  golden.input.contract.terms.rounding = declared;
  return golden;
}

TEST(FalseEvidence, TheControlIsClean) {
  EXPECT_EQ(found(sample("clause_eps_inside_root")), "nothing");
}

// What the oracle knows ends where binary32 ends.
TEST(FalseEvidence, AnOracleInBinary32) {
  GoldenCase golden = sample("clause_eps_inside_root");
  ProvenStage& values = golden.stages[QKCTS_STAGE_OUTPUT].values;
  for (double& hi : values.hi) hi = static_cast<float>(hi);
  for (std::int16_t& lo : values.lo) lo = 0;
  EXPECT_NE(found(golden).find("value_"), std::string::npos) << found(golden);
}

// Literal vectors from before the contract said where epsilon stands.
TEST(FalseEvidence, AnOlderReadingOfTheContract) {
  GoldenCase golden = sample("clause_eps_inside_root");
  golden.input.contract.terms.q_norm.root = golden.input.contract.terms.k_norm.root = QKCTS_MAX_INSIDE;
  EXPECT_NE(found(golden), "nothing");
}

// A reference without the declared rounding points: what they do would be taken for noise of the kernel.
TEST(FalseEvidence, AReferenceWithoutTheRoundingPoints) {
  EXPECT_EQ(found(sample("clause_round_norm")), "nothing");
  GoldenCase golden = sample_of_points_left_out();
  EXPECT_NE(found(golden), "nothing");
}

}  // namespace
}  // namespace qkcts
