// SPDX-License-Identifier: Apache-2.0
#include "vectors/corpus_reader.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "vectors/case_digest.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts {
namespace {

template <class T>
bool same_bits(const std::vector<T>& left, const std::vector<T>& right) {
  return left.size() == right.size() &&
         (left.empty() || std::memcmp(left.data(), right.data(), left.size() * sizeof(T)) == 0);
}

bool same(const Range& left, const Range& right) {
  return left.min == right.min && left.median == right.median && left.max == right.max;
}

void expect_equal(const GoldenCase& left, const GoldenCase& right) {
  EXPECT_EQ(left.input.slug, right.input.slug);
  EXPECT_EQ(canonical_json(left.input.contract), canonical_json(right.input.contract));
  EXPECT_EQ(std::memcmp(&left.input.shape, &right.input.shape, sizeof left.input.shape), 0);
  EXPECT_EQ(left.input.inputs.format, right.input.inputs.format);
  for (std::size_t i = 0; i < input_count; ++i) {
    const auto& a = left.input.inputs.tensors[i];
    const auto& b = right.input.inputs.tensors[i];
    ASSERT_EQ(a.has_value(), b.has_value()) << input_name(static_cast<Input>(i));
    if (!a) continue;
    EXPECT_EQ(a->type, b->type);
    EXPECT_EQ(a->shape, b->shape);
    EXPECT_EQ(a->bytes, b->bytes);
  }
  EXPECT_EQ(left.family, right.family);
  EXPECT_EQ(left.description, right.description);
  EXPECT_EQ(left.seed, right.seed);
  EXPECT_EQ(left.first_position, right.first_position);
  EXPECT_EQ(left.profiles, right.profiles);
  EXPECT_TRUE(same(left.entropy, right.entropy) && same(left.p_max, right.p_max) &&
              same(left.score_max, right.score_max));
  for (const qkcts_stage stage : all_stages) {
    const GoldenStage& a = left.stages[stage];
    const GoldenStage& b = right.stages[stage];
    ASSERT_EQ(a.present, b.present) << stage_name(stage);
    EXPECT_TRUE(same_bits(a.values.rows, b.values.rows)) << stage_name(stage);
    EXPECT_TRUE(same_bits(a.values.expected, b.values.expected)) << stage_name(stage);
    EXPECT_TRUE(same_bits(a.values.hi, b.values.hi)) << stage_name(stage);
    EXPECT_TRUE(same_bits(a.values.lo, b.values.lo)) << stage_name(stage);
    EXPECT_TRUE(same_bits(a.values.rule, b.values.rule)) << stage_name(stage);
    ASSERT_EQ(a.budgets.size(), b.budgets.size());
    for (std::size_t i = 0; i < a.budgets.size(); ++i) {
      EXPECT_TRUE(same_bits(a.budgets[i].delta, b.budgets[i].delta)) << stage_name(stage);
      EXPECT_TRUE(same_bits(a.budgets[i].trust, b.budgets[i].trust)) << stage_name(stage);
    }
  }
}

std::vector<GoldenCase> varied_cases() {
  PlannedCase subset = sample_plan("qwen3_rmsnorm", "gaussian", Format::binary16, "1,4,2,9,17,16,12");
  subset.rows = 5;
  std::vector<DroppedProfile> dropped;
  std::vector<GoldenCase> cases = {
      make_golden(subset, dropped),
      sample_golden("clause_kv_lengths", "padded", Format::binary32, "2,2,1,3,4,8,6"),
      sample_golden("clause_empty_nan", "random_mask", Format::bfloat16, "2,2,1,5,20,8,6"),
      sample_golden("clause_bias_additive", "random_mask", Format::binary64, "1,2,1,4,9,8,3"),
      sample_golden("henry2020_l2", "gaussian", Format::binary32, "2,2,1,3,4,8,1"),
      sample_golden("plain_sdpa", "gaussian", Format::binary32, "1,2,1,40,50,32,9"),
      sample_golden("plain_sdpa", "gaussian", Format::binary64, "1,1,1,1,1,1,1")};
  // Marks that the reference seldom makes must survive too.
  GoldenStage& stage = cases[5].stages[QKCTS_STAGE_OUTPUT];
  stage.budgets[1].trust[3] = Trust::mistrusted;
  stage.budgets[0].trust[2] = Trust::domain;
  stage.budgets[0].delta[2] = INFINITY;
  stage.values.rule[4] = ElementRule::budget_exact;
  return cases;
}

TEST(CorpusReader, GivesBackWhatWasWritten) {
  const TemporaryFolder folder;
  const std::vector<GoldenCase> cases = varied_cases();
  const CorpusReader reader(write_corpus(folder, "a.h5", cases));
  EXPECT_EQ(reader.info().suite, "test");
  EXPECT_EQ(reader.info().generator_version, "test generator");
  EXPECT_EQ(reader.info().seed, 7U);
  EXPECT_EQ(reader.info().format_version, 4);
  EXPECT_EQ(reader.info().digest.size(), 64U);
  ASSERT_EQ(reader.slugs().size(), cases.size());
  EXPECT_TRUE(std::is_sorted(reader.slugs().begin(), reader.slugs().end()));
  for (const GoldenCase& golden : cases) {
    SCOPED_TRACE(golden.input.slug);
    const GoldenCase read = reader.read(golden.input.slug);
    expect_equal(golden, read);
    EXPECT_EQ(read.digest, case_digest(golden));
  }
}

TEST(CorpusReader, ReadsFromSeveralThreads) {
  const TemporaryFolder folder;
  const std::vector<GoldenCase> cases = varied_cases();
  const CorpusReader reader(write_corpus(folder, "a.h5", cases));
  std::vector<std::thread> threads;
  std::array<std::string, 4> digests;
  for (std::size_t i = 0; i < digests.size(); ++i)
    threads.emplace_back([&, i] {
      for (const std::string& slug : reader.slugs()) digests[i] += reader.read(slug).digest;
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& digest : digests) EXPECT_EQ(digest, digests[0]);
  EXPECT_EQ(digests[0].size(), 64 * cases.size());
}

TEST(CorpusReader, TheDigestCoversEveryPartOfACase) {
  const GoldenCase golden = varied_cases()[1];
  const std::string digest = case_digest(golden);
  const auto changes = [&](const auto& change) {
    GoldenCase changed = golden;
    change(changed);
    return case_digest(changed) != digest;
  };
  EXPECT_FALSE(changes([](GoldenCase& c) { c.digest = "anything"; }));
  EXPECT_TRUE(changes([](GoldenCase& c) { c.input.slug += "x"; }));
  EXPECT_TRUE(changes([](GoldenCase& c) { c.input.contract.terms.mask.offset = 1, c.input.contract.name += "x"; }));
  EXPECT_TRUE(changes([](GoldenCase& c) { c.input.contract.terms.q_norm.eps *= 2; }));
  EXPECT_TRUE(changes([](GoldenCase& c) { c.input.shape.v_head_dim += 1; }));
  EXPECT_TRUE(changes([](GoldenCase& c) { c.family += "x"; }));
  EXPECT_TRUE(changes([](GoldenCase& c) { c.description += "x"; }));
  EXPECT_TRUE(changes([](GoldenCase& c) { c.seed += 1; }));
  EXPECT_TRUE(changes([](GoldenCase& c) { c.first_position += 1; }));
  EXPECT_TRUE(changes([](GoldenCase& c) { c.profiles[0] += "x"; }));
  EXPECT_TRUE(changes([](GoldenCase& c) { c.entropy.median += 1; }));
  EXPECT_TRUE(changes([](GoldenCase& c) { c.p_max.min += 1; }));
  EXPECT_TRUE(changes([](GoldenCase& c) { c.score_max.max += 1; }));
  EXPECT_TRUE(changes([](GoldenCase& c) { c.input.inputs.tensors[0]->bytes[3] ^= std::byte{1}; }));
  EXPECT_TRUE(changes([](GoldenCase& c) { std::swap(c.input.inputs.tensors[1], c.input.inputs.tensors[2]); }));
  for (const qkcts_stage stage : all_stages) {
    if (!golden.stages[stage].present) continue;
    SCOPED_TRACE(stage_name(stage));
    EXPECT_TRUE(changes([&](GoldenCase& c) { c.stages[stage].values.rows[0] += 1; }));
    EXPECT_TRUE(changes([&](GoldenCase& c) { c.stages[stage].values.expected[1] ^= 1; }));
    EXPECT_TRUE(changes([&](GoldenCase& c) { c.stages[stage].values.hi[1] = 77; }));
    EXPECT_TRUE(changes([&](GoldenCase& c) { c.stages[stage].values.lo[1] = 777; }));
    EXPECT_TRUE(changes([&](GoldenCase& c) { c.stages[stage].values.rule[1] = static_cast<ElementRule>(9); }));
    EXPECT_TRUE(changes([&](GoldenCase& c) { c.stages[stage].budgets[1].delta[0] = 77; }));
    EXPECT_TRUE(changes([&](GoldenCase& c) { c.stages[stage].budgets[0].trust[0] = Trust::domain; }));
    EXPECT_TRUE(changes([&](GoldenCase& c) { c.stages[stage].present = false; }));
  }
}

TEST(CorpusReader, AnUnknownCaseIsAnInputError) {
  const TemporaryFolder folder;
  const CorpusReader reader(write_corpus(folder, "a.h5", {varied_cases()[1]}));
  try {
    static_cast<void>(reader.read("no/such/case"));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("holds no case no/such/case"), std::string::npos);
  }
}

}  // namespace
}  // namespace qkcts
