// SPDX-License-Identifier: Apache-2.0
#include "vectors/generate_corpus.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/file.hpp"
#include "vectors/corpus_reader.hpp"
#include "vectors/sample_golden.hpp"
#include "vectors/verify.hpp"

namespace qkcts {
namespace {

GenerateReport generate(const Plan& plan, const std::string& path, unsigned jobs) {
  GenerateOptions options;
  options.jobs = jobs;
  options.generator_version = "test";
  return generate_corpus(plan, path, options);
}

TEST(Generate, TheBytesDoNotDependOnTheNumberOfJobs) {
  const TemporaryFolder folder;
  for (const char* suite : {"smoke", "clauses", "points"}) {
    Plan plan = load_plan(suite);
    if (plan.cases.size() > 50) {  // some of the larger ones; vectors.manifest makes all of them
      std::size_t i = 0;
      const auto is_left_out = [&](const PlannedCase&) { return i++ % 30 != 0; };
      plan.cases.erase(std::remove_if(plan.cases.begin(), plan.cases.end(), is_left_out), plan.cases.end());
    }
    const GenerateReport one = generate(plan, folder.file("1.h5"), 1);
    EXPECT_TRUE(one.refused.empty()) << suite;
    EXPECT_TRUE(one.dropped.empty()) << suite;
    EXPECT_EQ(one.written, plan.cases.size());
    const std::string bytes = file_bytes(folder.file("1.h5"));
    EXPECT_GT(bytes.size(), 100000U);
    EXPECT_EQ(generate(plan, folder.file("5.h5"), 5).digest, one.digest) << suite;
    EXPECT_TRUE(file_bytes(folder.file("5.h5")) == bytes) << suite;
  }
}

TEST(Generate, TheDigestDependsOnSeedAndPlanButNotOnTheGeneratorsVersion) {
  const TemporaryFolder folder;
  Plan plan;
  plan.suite = "test";
  plan.cases = {sample_plan("plain_sdpa", "gaussian", Format::binary32, "1,2,1,3,4,8,6")};
  const std::string digest = generate(plan, folder.file("a.h5"), 1).digest;
  GenerateOptions options;
  options.generator_version = "another version";
  EXPECT_EQ(generate_corpus(plan, folder.file("a.h5"), options).digest, digest);
  Plan other = plan;
  other.cases[0].seed += 1;
  EXPECT_NE(generate(other, folder.file("a.h5"), 1).digest, digest);
  other = plan;
  other.cases[0].rows = 2;
  EXPECT_NE(generate(other, folder.file("a.h5"), 1).digest, digest);
}

// Kernels that flush cannot keep subnormal values: the profile cannot judge them, and that is said.
TEST(Generate, AProfileThatCannotJudgeACaseIsDroppedAndListed) {
  const TemporaryFolder folder;
  Plan plan;
  plan.suite = "test";
  plan.cases = {sample_plan("plain_sdpa", "subnormal", Format::binary32, "1,4,2,7,12,40,24"),
                sample_plan("plain_sdpa", "gaussian", Format::binary32, "1,4,2,7,12,40,24")};
  const GenerateReport report = generate(plan, folder.file("a.h5"), 2);
  ASSERT_EQ(report.dropped.size(), 1U);
  EXPECT_EQ(report.dropped[0].slug, plan.cases[0].slug);
  EXPECT_EQ(report.dropped[0].profile, "f32_ftz");
  EXPECT_GT(report.dropped[0].share, 0.01);
  const CorpusReader reader(folder.file("a.h5"));
  EXPECT_EQ(reader.read(plan.cases[0].slug).profiles, (std::vector<std::string>{"f32"}));
  EXPECT_EQ(reader.read(plan.cases[1].slug).profiles, (std::vector<std::string>{"f32", "f32_ftz"}));
}

TEST(Generate, ACaseWithoutAnyProfileIsRefusedAndTheOthersAreWritten) {
  const TemporaryFolder folder;
  Plan plan;
  plan.suite = "test";
  plan.cases = {sample_plan("plain_sdpa", "subnormal", Format::binary32, "1,4,2,7,12,40,24"),
                sample_plan("plain_sdpa", "gaussian", Format::binary32, "1,4,2,7,12,40,24")};
  plan.cases[0].profiles = {"f32_ftz"};
  const GenerateReport report = generate(plan, folder.file("a.h5"), 1);
  ASSERT_EQ(report.refused.size(), 1U);
  EXPECT_EQ(report.refused[0].reason, "no profile can judge it");
  EXPECT_EQ(CorpusReader(folder.file("a.h5")).slugs(), (std::vector<std::string>{plan.cases[1].slug}));
}

// Without `saturate` a number beyond a point's format has no rounding, so that one case is refused.
TEST(Generate, ACaseThatOverflowsAtAPointIsRefusedAndTheOthersAreWritten) {
  const TemporaryFolder folder;
  Plan plan;
  plan.suite = "test";
  plan.cases = {sample_plan("plain_sdpa", "gaussian", Format::binary32, "1,4,2,7,12,40,24"),
                sample_plan("clause_eps_inside_root", "gaussian", Format::binary32, "1,4,2,7,12,40,24")};
  plan.cases[0].contract.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
  plan.cases[0].contract.terms.score.scale_value = 1000;
  plan.cases[0].contract.terms.rounding.scaled_q = QKCTS_E4M3FN;
  const GenerateReport report = generate(plan, folder.file("a.h5"), 1);
  ASSERT_EQ(report.refused.size(), 1U);
  EXPECT_NE(report.refused[0].reason.find("overflows at rounding point scaled_q"), std::string::npos)
      << report.refused[0].reason;
  EXPECT_EQ(CorpusReader(folder.file("a.h5")).slugs(), (std::vector<std::string>{plan.cases[1].slug}));
}

TEST(Generate, BadPlansAndFullMediaLeaveNoFile) {
  const TemporaryFolder folder;
  Plan plan;
  plan.suite = "test";
  plan.cases = {sample_plan("plain_sdpa", "gaussian", Format::binary32, "1,2,1,3,4,8,6"),
                sample_plan("plain_sdpa", "padded", Format::binary32, "1,2,1,3,4,8,6")};
  EXPECT_THROW(generate(plan, folder.file("a.h5"), 2), InputError);
  EXPECT_EQ(folder.file_count(), 0U);
  plan.cases.pop_back();
  EXPECT_THROW(generate(plan, folder.file("no/folder.h5"), 2), WriteError);
}

TEST(Generate, ProgressCountsEveryCaseInOrder) {
  const TemporaryFolder folder;
  Plan plan;
  plan.suite = "test";
  for (const char* shape : {"1,2,1,3,4,8,6", "1,2,1,9,9,8,6", "1,1,1,2,2,2,2"})
    plan.cases.push_back(sample_plan("plain_sdpa", "gaussian", Format::binary32, shape));
  std::vector<std::string> seen;
  GenerateOptions options;
  options.jobs = 3;
  options.progress = [&](const GenerateProgress& p) {
    seen.push_back(p.slug);
    EXPECT_EQ(p.done, seen.size());
    EXPECT_EQ(p.all, 3U);
    EXPECT_LE(p.work_done, p.work_all * (1 + 1e-12));
  };
  generate_corpus(plan, folder.file("a.h5"), options);
  ASSERT_EQ(seen.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(seen[i], plan.cases[i].slug);
}

TEST(Generate, EstimatesAreOfTheRightSize) {
  const TemporaryFolder folder;
  const Plan plan = load_plan("smoke");
  generate(plan, folder.file("a.h5"), 2);
  double bytes = 0;
  for (const PlannedCase& planned : plan.cases) bytes += estimated_bytes(planned);
  const auto size = static_cast<double>(file_bytes(folder.file("a.h5")).size());
  EXPECT_GT(bytes, size / 2);
  EXPECT_LT(bytes, size * 2);
}

std::vector<GoldenCase> two_cases() {
  return {sample_golden("plain_sdpa", "gaussian", Format::binary32, "1,2,1,3,4,8,6"),
          sample_golden("clause_kv_lengths", "padded", Format::bfloat16, "2,2,1,3,4,8,6")};
}

TEST(Verify, RecomputesEverythingAndFindsNothingInAGoodFile) {
  const TemporaryFolder folder;
  VerifyOptions options;
  options.sample = 100;
  options.jobs = 2;
  const VerifyReport report = verify_corpus(write_corpus(folder, "a.h5", two_cases()), options);
  EXPECT_EQ(report.cases, 2U);
  EXPECT_EQ(report.recomputed, 2U);
  EXPECT_TRUE(report.mismatches.empty());
}

TEST(Verify, ASampleIsAtLeastOneCaseAndAlwaysTheSame) {
  const TemporaryFolder folder;
  VerifyOptions options;
  options.sample = 0;
  const VerifyReport report = verify_corpus(write_corpus(folder, "a.h5", two_cases()), options);
  EXPECT_EQ(report.cases, 2U);
  EXPECT_EQ(report.recomputed, 1U);
}

// Evidence that was changed before it was sealed: digests match, recomputation does not.
TEST(Verify, EveryKindOfFalseEvidenceIsFound) {
  const auto found = [](const auto& change) {
    const TemporaryFolder folder;
    std::vector<GoldenCase> cases = two_cases();
    change(cases[1]);
    VerifyOptions options;
    options.sample = 100;
    const VerifyReport report = verify_corpus(write_corpus(folder, "a.h5", cases), options);
    return report.mismatches.size() == 1 ? report.mismatches[0].what : std::string("nothing");
  };
  const auto part = [](GoldenCase& c) -> GoldenStage& { return c.stages[QKCTS_STAGE_PROBS]; };
  EXPECT_EQ(found([](GoldenCase&) {}), "nothing");
  EXPECT_NE(
      found([&](GoldenCase& c) { part(c).values.expected[30] ^= 1; }).find("stage probs, stored row 7, element 2"),
      std::string::npos);
  EXPECT_NE(found([&](GoldenCase& c) { part(c).values.hi[30] *= 1.5; }).find("value_hi"), std::string::npos);
  EXPECT_NE(found([&](GoldenCase& c) { part(c).values.lo[30] += 1; }).find("value_lo"), std::string::npos);
  EXPECT_NE(found([&](GoldenCase& c) { part(c).values.rule[30] = ElementRule::budget_exact; }).find("rule"),
            std::string::npos);
  EXPECT_NE(found([&](GoldenCase& c) { part(c).budgets[0].delta[30] *= 2; }).find("budget of bf16_f32acc"),
            std::string::npos);
  EXPECT_NE(found([&](GoldenCase& c) { part(c).budgets[0].trust[30] = Trust::domain; }).find("trust of bf16_f32acc"),
            std::string::npos);
  EXPECT_EQ(found([](GoldenCase& c) { c.entropy.max += 1; }), "row statistics differ");
  EXPECT_NE(found([](GoldenCase& c) { c.input.inputs.tensors[0]->bytes[0] ^= std::byte{1}; }), "nothing");
}

}  // namespace
}  // namespace qkcts
