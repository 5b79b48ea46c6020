// SPDX-License-Identifier: Apache-2.0
#include "adapters/mutants/catalogue.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <string>

#include "adapters/adapter_tables.hpp"
#include "adapters/plain_attention.hpp"
#include "adapters/sample_case.hpp"

namespace qkcts::mutants {
namespace {

// A prepared mutants adapter.
class Prepared {
 public:
  explicit Prepared(const std::string& options) {
    status_ = qkcts_adapter_mutants()->prepare(options.c_str(), &state_, nullptr);
  }
  ~Prepared() { qkcts_adapter_mutants()->release(state_); }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  qkcts_status status() const { return status_; }
  SampleRun run(SampleCase& sample, std::uint32_t stages) const {
    return run_sample(*qkcts_adapter_mutants(), sample, stages, SampleLayout::contiguous, state_);
  }

 private:
  void* state_ = nullptr;
  qkcts_status status_;
};

constexpr std::uint32_t bit(qkcts_stage stage) {
  return 1u << stage;
}

bool differ(const SampleRun& a, const SampleRun& b, qkcts_stage stage) {
  const auto& x = a.stages[stage];
  const auto& y = b.stages[stage];
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] != y[i] && !(std::isnan(x[i]) && std::isnan(y[i]))) return true;
  return false;
}

TEST(Catalogue, IdsAreUniqueAndClausesNamed) {
  std::set<std::string_view> ids;
  for (const Mutant* mutant : catalogue()) {
    EXPECT_TRUE(ids.insert(mutant->id).second) << mutant->id;
    EXPECT_EQ(mutant->id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"), std::string_view::npos);
    EXPECT_EQ(mutant->clause.substr(0, 3), "QK-") << mutant->id;
    EXPECT_FALSE(mutant->wrong.empty()) << mutant->id;
    EXPECT_EQ(find_mutant(mutant->id), mutant);
  }
  EXPECT_EQ(find_mutant("none"), nullptr);
  EXPECT_GE(ids.size(), 90u);
}

TEST(Catalogue, ControlIsScalarBitForBit) {
  std::mt19937_64 source(17);
  const Prepared control("mutant=none");
  ASSERT_EQ(control.status(), QKCTS_OK);
  for (int i = 0; i < 40; ++i) {
    SampleCase sample = random_sample(source, 1 + static_cast<std::uint32_t>(i % 4));
    const std::uint32_t stages = existing_stages(sample.terms);
    const SampleRun mine = control.run(sample, stages);
    const SampleRun scalar = run_sample(*qkcts_adapter_scalar(), sample, stages, SampleLayout::contiguous);
    ASSERT_EQ(mine.status, QKCTS_OK);
    for (int stage = 0; stage < QKCTS_STAGE_COUNT; ++stage)
      EXPECT_FALSE(differ(mine, scalar, static_cast<qkcts_stage>(stage))) << sample.text();
  }
}

// A case whose data exposes as many faults at once as one contract can hold.
SampleCase exposing_case(const Mutant& mutant, std::mt19937_64& source) {
  SampleCase sample = random_sample(source, mutant.id == "bf16_truncate" ? QKCTS_BFLOAT16 : QKCTS_BINARY32);
  // More keys than queries, fewer, and one query alone.
  const std::int64_t lengths[][2] = {{35, 37}, {37, 35}, {1, 37}};
  const auto& [q_len, k_len] = lengths[source() % 3];
  sample.shape = {2, 4, 2, q_len, k_len, 80, 24};
  if (mutant.id == "gqa_tile_boundary") sample.shape = {1, 48, 2, 3, 5, 8, 8};     // G = 24
  if (mutant.id == "rescale_missing_64") sample.shape = {1, 2, 1, 9, 130, 16, 8};  // more than one block of 64
  for (qkcts_norm* norm : {&sample.terms.q_norm, &sample.terms.k_norm}) norm->applied = 1;
  draw_inputs(sample, source, SampleLayout::contiguous);
  if (source() % 2 == 0) {
    // Large scores, far apart: what needs the maximum shows.
    sample.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
    sample.terms.score.scale_value = 40;
  }
  return sample;
}

// Each wrong kernel differs from the control in the stage that the catalogue names, and up to it nowhere.
TEST(Catalogue, EveryMutantIsWrongWhereItSaysSo) {
  const Prepared control("mutant=none");
  for (const Mutant* mutant : catalogue()) {
    if (mutant->misdeed != nullptr || mutant->expectation != Expectation::fail) continue;
    const Prepared wrong("mutant=" + std::string(mutant->id));
    ASSERT_EQ(wrong.status(), QKCTS_OK) << mutant->id;
    std::mt19937_64 source(23);
    bool seen = false;
    for (int i = 0; i < 200 && !seen; ++i) {
      SampleCase sample = exposing_case(*mutant, source);
      const std::uint32_t stages = existing_stages(sample.terms) | bit(mutant->stage);
      const SampleRun right = control.run(sample, stages);
      const SampleRun run = wrong.run(sample, stages);
      ASSERT_EQ(run.status, QKCTS_OK) << mutant->id << ": " << run.message;
      seen = differ(right, run, mutant->stage);
      EXPECT_EQ(run.implementation, "scalar, mutant=" + std::string(mutant->id));
    }
    EXPECT_TRUE(seen) << mutant->id;
  }
}

TEST(Catalogue, UnknownIdIsRefused) {
  EXPECT_EQ(Prepared("mutant=no_such").status(), QKCTS_INVALID);
}

}  // namespace
}  // namespace qkcts::mutants
