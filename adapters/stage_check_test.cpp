// SPDX-License-Identifier: Apache-2.0
// The comparison itself: an error in a stage is seen, and the error that an ill-conditioned stage must have is not
// taken for one.
#include <cstddef>
#include <cstdint>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "adapters/adapter_tables.hpp"
#include "adapters/plain_attention.hpp"
#include "adapters/sample_case.hpp"
#include "adapters/stage_check.hpp"

namespace qkcts {
namespace {

constexpr std::uint32_t output = 1u << QKCTS_STAGE_OUTPUT, q_norm = 1u << QKCTS_STAGE_Q_NORM;

TEST(StageCheck, AnErrorOfTwiceTheToleranceIsSeen) {
  std::mt19937_64 source(7);
  SampleCase sample;
  sample.terms = plain_contract();
  sample.shape = {1, 2, 1, 5, 9, 8, 8};
  draw_inputs(sample, source, SampleLayout::contiguous);
  const StageValues want = plain_attention(sample);
  SampleRun run = run_sample(*qkcts_adapter_scalar(), sample, output, SampleLayout::contiguous);
  expect_stages(run, want, sample, output);
  run.stages[QKCTS_STAGE_OUTPUT][3] += 2.5e-4;
  EXPECT_NONFATAL_FAILURE(expect_stages(run, want, sample, output), "stage 9");
}

// q = 3 - 3 + 2^-20, and the norm divides by |q| + 2^-10: 128 roundings of the 3 are 2 % of the result, a fifth is
// an error.
TEST(StageCheck, AProjectionThatCancelsBeforeANormIsAllowedItsCondition) {
  std::mt19937_64 source(8);
  SampleCase sample;
  sample.terms = plain_contract();
  sample.terms.projection.form = QKCTS_PROJECTION_LINEAR;
  sample.terms.q_norm.applied = 1;
  sample.terms.q_norm.root = QKCTS_OUTSIDE_ROOT;
  sample.terms.q_norm.eps = 0x1p-10;
  sample.shape = {1, 1, 1, 1, 2, 1, 1};
  draw_inputs(sample, source, SampleLayout::contiguous);
  for (const auto& [input, first, second] :
       {std::tuple(sample_q_x, 3.0, 1.0), std::tuple(sample_q_weight, 1.0, -3.0 + 0x1p-20)}) {
    sample.inputs[input] = SampleTensor(
        QKCTS_DL_FLOAT, 32, input == sample_q_x ? std::vector<std::int64_t>{1, 1, 2} : std::vector<std::int64_t>{2, 1},
        SampleLayout::contiguous);
    sample.inputs[input].set(0, first);
    sample.inputs[input].set(1, second);
  }
  const StageValues want = plain_attention(sample);
  SampleRun run = run_sample(*qkcts_adapter_scalar(), sample, q_norm, SampleLayout::contiguous);
  ASSERT_EQ(run.status, QKCTS_OK) << run.message;
  expect_stages(run, want, sample, q_norm);
  run.stages[QKCTS_STAGE_Q_NORM][0] = want[QKCTS_STAGE_Q_NORM][0] + 4e-4;
  expect_stages(run, want, sample, q_norm);
  run.stages[QKCTS_STAGE_Q_NORM][0] = want[QKCTS_STAGE_Q_NORM][0] + 0.2;
  EXPECT_NONFATAL_FAILURE(expect_stages(run, want, sample, q_norm), "stage 0");
}

}  // namespace
}  // namespace qkcts
