// SPDX-License-Identifier: Apache-2.0
#include "adapters/stage_check.hpp"

#include <bit>
#include <cmath>

#include <gtest/gtest.h>

#include "adapters/plain_attention.hpp"

namespace qkcts {

namespace {

double tolerance(std::uint32_t format, qkcts_stage stage) {
  if (format == QKCTS_BINARY64) return 1e-12;
  const bool accumulator = stage >= QKCTS_STAGE_SCORES && stage <= QKCTS_STAGE_LSE && stage != QKCTS_STAGE_PROBS;
  if (format == QKCTS_BINARY32 || accumulator) return 1e-4;
  return format == QKCTS_BINARY16 ? 0x1p-10 : 0x1p-7;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return false;
    if (!std::isnan(a[i]) && std::bit_cast<std::uint64_t>(a[i]) != std::bit_cast<std::uint64_t>(b[i])) return false;
  }
  return true;
}

}  // namespace

void expect_stages(const SampleRun& run, const StageValues& want, const SampleCase& sample, std::uint32_t stages) {
  for (int i = 0; i < QKCTS_STAGE_COUNT; ++i) {
    if ((stages >> i & 1u) == 0) continue;
    const auto stage = static_cast<qkcts_stage>(i);
    const bool hidden_is_free = stage == QKCTS_STAGE_SCORES || stage == QKCTS_STAGE_CAPPED ||
                                stage == QKCTS_STAGE_K_NORM || stage == QKCTS_STAGE_K_ROPE ||
                                stage == QKCTS_STAGE_V_NORM;
    EXPECT_LE(worst_difference(run.stages[i], want[i], hidden_is_free ? NanRule::is_free : NanRule::must_match),
              tolerance(sample.format, stage))
        << "stage " << i << " of " << sample.text();
  }
}

void expect_observation_changes_nothing(const qkcts_adapter_table& table, SampleCase& sample) {
  const std::uint32_t result = 1u << QKCTS_STAGE_OUTPUT | 1u << QKCTS_STAGE_LSE;
  const SampleRun bare = run_sample(table, sample, result, SampleLayout::contiguous);
  for (const SampleRun& other : {run_sample(table, sample, result, SampleLayout::contiguous),
                                 run_sample(table, sample, existing_stages(sample.terms), SampleLayout::scattered)}) {
    EXPECT_TRUE(same_bits(bare.stages[QKCTS_STAGE_OUTPUT], other.stages[QKCTS_STAGE_OUTPUT])) << sample.text();
    EXPECT_TRUE(same_bits(bare.stages[QKCTS_STAGE_LSE], other.stages[QKCTS_STAGE_LSE])) << sample.text();
  }
}

}  // namespace qkcts
