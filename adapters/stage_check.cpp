// SPDX-License-Identifier: Apache-2.0
#include "adapters/stage_check.hpp"

#include <bit>
#include <cmath>
#include <optional>
#include <random>

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

namespace {

// The same case in binary64, every real input moved by at most `relative` of itself.
SampleCase nudged(const SampleCase& sample, double relative) {
  SampleCase moved = sample;
  moved.format = QKCTS_BINARY64;
  std::mt19937_64 source(1);
  for (SampleTensor& tensor : moved.inputs) {
    if (!tensor.holds_reals()) continue;
    SampleTensor wide(QKCTS_DL_FLOAT, 64, tensor.shape(), SampleLayout::contiguous);
    for (std::size_t i = 0; i < wide.count(); ++i) {
      const double part = static_cast<double>(pick(source, -1000, 1000)) / 1000;
      wide.set(i, tensor.get(i) * (1 + relative * part));
    }
    tensor = std::move(wide);
  }
  return moved;
}

bool hidden_is_free(qkcts_stage stage) {
  return stage == QKCTS_STAGE_SCORES || stage == QKCTS_STAGE_CAPPED || stage == QKCTS_STAGE_K_NORM ||
         stage == QKCTS_STAGE_K_ROPE || stage == QKCTS_STAGE_V_NORM;
}

}  // namespace

void expect_stages(const SampleRun& run, const StageValues& want, const SampleCase& sample, std::uint32_t stages) {
  std::optional<StageValues> here, nearby;
  // How far the stage moves when the inputs move by 128 roundings of the arithmetic. A norm after a projection that
  // cancels, say, multiplies the error of the projection by its own condition; no kernel can do better.
  const auto condition = [&](std::size_t stage, NanRule rule) {
    if (!nearby) {
      here = plain_attention(sample);
      nearby = plain_attention(nudged(sample, sample.format == QKCTS_BINARY64 ? 0x1p-46 : 0x1p-17));
    }
    return worst_difference((*nearby)[stage], (*here)[stage], rule);
  };
  for (std::size_t i = 0; i < QKCTS_STAGE_COUNT; ++i) {
    if ((stages >> i & 1u) == 0) continue;
    const auto stage = static_cast<qkcts_stage>(i);
    const NanRule rule = hidden_is_free(stage) ? NanRule::is_free : NanRule::must_match;
    const double difference = worst_difference(run.stages[i], want[i], rule), usual = tolerance(sample.format, stage);
    if (difference <= usual) continue;
    EXPECT_LE(difference, usual + condition(i, rule)) << "stage " << i << " of " << sample.text();
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
