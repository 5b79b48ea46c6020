// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

#include "adapters/adapter_tables.hpp"
#include "adapters/plain_attention.hpp"
#include "adapters/sample_case.hpp"
#include "adapters/stage_check.hpp"

namespace qkcts {
namespace {

TEST(ScalarAttention, AgreesWithTheFormulasForAnyContractAndFormat) {
  std::mt19937_64 source(20240501);
  for (int i = 0; i < 800; ++i) {
    const std::uint32_t format = 1 + static_cast<std::uint32_t>(i / 4 % 4);
    SampleCase sample = random_sample(source, format, i % 4 == 3 ? ContractVersion::v1_0 : ContractVersion::v1_1);
    const SampleLayout layout = i % 3 == 0 ? SampleLayout::scattered : SampleLayout::contiguous;
    const std::uint32_t stages = existing_stages(sample.terms);
    const SampleRun run = run_sample(*qkcts_adapter_scalar(), sample, stages, layout);
    ASSERT_EQ(run.status, QKCTS_OK) << run.message;
    expect_stages(run, plain_attention(sample), sample, stages);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ScalarAttention, ObservationChangesNothing) {
  std::mt19937_64 source(7);
  for (int i = 0; i < 60; ++i) {
    SampleCase sample = random_sample(source, 1 + static_cast<std::uint32_t>(i % 4), ContractVersion::v1_1);
    expect_observation_changes_nothing(*qkcts_adapter_scalar(), sample);
  }
}

TEST(ScalarAttention, MissingInputIsInvalid) {
  std::mt19937_64 source(3);
  SampleCase sample = random_sample(source, QKCTS_BINARY32, ContractVersion::v1_1);
  sample.inputs[sample_v] = SampleTensor();
  const SampleRun run = run_sample(*qkcts_adapter_scalar(), sample, 1u << QKCTS_STAGE_OUTPUT, SampleLayout::contiguous);
  EXPECT_EQ(run.status, QKCTS_INVALID);
  EXPECT_EQ(run.message, "v is missing");
}

}  // namespace
}  // namespace qkcts
