// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

#include "adapters/adapter_tables.hpp"
#include "adapters/plain_attention.hpp"
#include "adapters/plain_rounding.hpp"
#include "adapters/sample_case.hpp"
#include "adapters/stage_check.hpp"

namespace qkcts {
namespace {

TEST(ScalarAttention, AgreesWithTheFormulasForAnyContractAndFormat) {
  std::mt19937_64 source(20240501);
  for (int i = 0; i < 800; ++i) {
    const std::uint32_t format = 1 + static_cast<std::uint32_t>(i / 4 % 4);
    // What is rounded on the way to e4m3fn may differ by an eighth between two right results: such contracts are
    // compared in binary64, where nothing comes near enough to the middle between two numbers.
    const ContractEdit without_points = [](qkcts_contract& terms) { terms.rounding = {}; };
    SampleCase sample = random_sample(source, format, i % 4 == 3 ? ContractVersion::v1_0 : ContractVersion::v1_2,
                                      format == QKCTS_BINARY64 ? nullptr : without_points);
    const SampleLayout layout = i % 3 == 0 ? SampleLayout::scattered : SampleLayout::contiguous;
    const std::uint32_t stages = existing_stages(sample.terms);
    const SampleRun run = run_sample(*qkcts_adapter_scalar(), sample, stages, layout);
    ASSERT_EQ(run.status, QKCTS_OK) << run.message;
    expect_stages(run, plain_attention(sample), sample, stages);
    if (testing::Test::HasFailure()) return;
  }
}

struct StagePoint {
  qkcts_stage stage;
  std::uint32_t (*format)(const qkcts_rounding&);
};

constexpr StagePoint points[] = {
    {QKCTS_STAGE_Q_PROJ, [](const qkcts_rounding& r) { return r.q.projection; }},
    {QKCTS_STAGE_K_PROJ, [](const qkcts_rounding& r) { return r.k.projection; }},
    {QKCTS_STAGE_Q_NORM, [](const qkcts_rounding& r) { return r.q.norm; }},
    {QKCTS_STAGE_K_NORM, [](const qkcts_rounding& r) { return r.k.norm; }},
    {QKCTS_STAGE_V_NORM, [](const qkcts_rounding& r) { return r.v.norm; }},
    {QKCTS_STAGE_SCORES, [](const qkcts_rounding& r) { return r.scores; }},
    {QKCTS_STAGE_CAPPED, [](const qkcts_rounding& r) { return r.capped; }},
    {QKCTS_STAGE_PROBS, [](const qkcts_rounding& r) { return r.probs; }},
    {QKCTS_STAGE_OUTPUT, [](const qkcts_rounding& r) { return r.output; }},
};

// A stage with a point of its own is observed after it, in every storage format.
TEST(ScalarAttention, RoundedStagesHoldNumbersOfTheirFormat) {
  std::mt19937_64 source(41);
  std::size_t looked_at = 0;
  for (int i = 0; i < 200; ++i) {
    const std::uint32_t format = 1 + static_cast<std::uint32_t>(i % 4);
    SampleCase sample = random_sample(source, format, ContractVersion::v1_2);
    const std::uint32_t stages = existing_stages(sample.terms);
    const SampleRun run = run_sample(*qkcts_adapter_scalar(), sample, stages, SampleLayout::contiguous);
    ASSERT_EQ(run.status, QKCTS_OK) << run.message;
    for (const StagePoint& point : points) {
      const std::uint32_t target = point.format(sample.terms.rounding);
      if ((stages >> point.stage & 1u) == 0 || target == 0) continue;
      for (const double value : run.stages[point.stage]) {
        if (!std::isfinite(value)) continue;
        ++looked_at;
        ASSERT_EQ(plain_rounded(sample.terms, target, value), value) << point.stage << ' ' << sample.text();
      }
    }
  }
  EXPECT_GT(looked_at, 10000u);
}

TEST(ScalarAttention, ObservationChangesNothing) {
  std::mt19937_64 source(7);
  for (int i = 0; i < 60; ++i) {
    SampleCase sample = random_sample(source, 1 + static_cast<std::uint32_t>(i % 4), ContractVersion::v1_2);
    expect_observation_changes_nothing(*qkcts_adapter_scalar(), sample);
  }
}

TEST(ScalarAttention, MissingInputIsInvalid) {
  std::mt19937_64 source(3);
  SampleCase sample = random_sample(source, QKCTS_BINARY32, ContractVersion::v1_2, [](qkcts_contract& terms) {
    terms.projection.form = QKCTS_PROJECTION_LINEAR;
    terms.projection.bias = 1;
    terms.v_norm.applied = 1;
    terms.v_norm.gain = QKCTS_GAIN_W;
    terms.v_norm.gain_axes = QKCTS_AXES_HEAD_DIM;
  });
  const auto message_without = [&](SampleInput input) {
    SampleCase lacking = sample;
    lacking.inputs[input] = SampleTensor();
    const SampleRun run =
        run_sample(*qkcts_adapter_scalar(), lacking, 1u << QKCTS_STAGE_OUTPUT, SampleLayout::contiguous);
    return run.status == QKCTS_INVALID ? run.message : "it ran";
  };
  EXPECT_EQ(message_without(sample_v), "v is missing");
  EXPECT_EQ(message_without(sample_v_gain), "v_gain is missing");
  EXPECT_EQ(message_without(sample_q_x), "q_x is missing");
  EXPECT_EQ(message_without(sample_k_weight), "k_weight is missing");
  EXPECT_EQ(message_without(sample_q_weight_bias), "q_weight_bias is missing");
  EXPECT_EQ(message_without(sample_k), "it ran");  // is absent anyway
}

}  // namespace
}  // namespace qkcts
