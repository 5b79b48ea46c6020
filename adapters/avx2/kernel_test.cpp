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

// What the description leaves out goes back to its default.
void keep_what_is_declared(qkcts_contract& terms) {
  terms.rotation.layout = QKCTS_LAYOUT_KEPT;
  terms.rotation.angles = QKCTS_ANGLES_TABLE;
  terms.logits.alibi = QKCTS_ALIBI_NONE;
  terms.softmax = {};
  terms.rounding = {};
}

SampleCase declared_sample(std::mt19937_64& source, std::uint32_t format, int i) {
  return random_sample(source, format, i % 4 == 0 ? ContractVersion::v1_0 : ContractVersion::v1_2,
                       keep_what_is_declared);
}

class Avx2Kernel : public testing::Test {
 protected:
  void SetUp() override {
    qkcts_text reason{sizeof(qkcts_text), 0, 0, 0, nullptr};
    if (qkcts_adapter_avx2()->probe(&reason) != QKCTS_OK) GTEST_SKIP() << "no AVX2 here";
  }
};

constexpr std::uint32_t formats[] = {QKCTS_BINARY32, QKCTS_BINARY32, QKCTS_BINARY16, QKCTS_BFLOAT16};

TEST_F(Avx2Kernel, AgreesWithTheFormulasForAnyContractAndFormat) {
  std::mt19937_64 source(20240502);
  for (int i = 0; i < 700; ++i) {
    SampleCase sample = declared_sample(source, formats[i / 4 % 4], i);
    const SampleLayout layout = i % 3 == 0 ? SampleLayout::scattered : SampleLayout::contiguous;
    const std::uint32_t stages = existing_stages(sample.terms);
    const SampleRun run = run_sample(*qkcts_adapter_avx2(), sample, stages, layout);
    ASSERT_EQ(run.status, QKCTS_OK) << run.message;
    EXPECT_NE(run.implementation.find("avx2"), std::string::npos);
    expect_stages(run, plain_attention(sample), sample, stages);
    if (testing::Test::HasFailure()) return;
  }
}

// Lengths around the panel, the row tile, the row block and the key block, and no tap: the path that skips hidden
// tiles.
TEST_F(Avx2Kernel, AgreesWithScalarAtEveryTileBoundary) {
  std::mt19937_64 source(11);
  const std::uint32_t result = 1u << QKCTS_STAGE_OUTPUT | 1u << QKCTS_STAGE_LSE;
  for (const std::int64_t length : {1, 6, 7, 15, 16, 17, 47, 48, 49, 63, 64, 65, 127, 128, 129, 191, 255, 256, 257}) {
    for (const std::int64_t dim : {1, 7, 80, 128}) {
      SampleCase sample;
      sample.terms = plain_contract();
      sample.terms.mask.causal = 1;
      sample.terms.mask.has_window = length % 2 == 0 ? 1 : 0;
      sample.terms.mask.window_left = length / 3;
      sample.terms.mask.window_right = -1;
      sample.shape = {1, 2, 1, length, length, dim, dim == 7 ? 5 : dim};
      draw_inputs(sample, source, SampleLayout::contiguous);
      const SampleRun control = run_sample(*qkcts_adapter_scalar(), sample, result, SampleLayout::contiguous);
      expect_stages(run_sample(*qkcts_adapter_avx2(), sample, result, SampleLayout::contiguous), control.stages, sample,
                    result);
    }
  }
}

TEST_F(Avx2Kernel, ObservationChangesNothing) {
  std::mt19937_64 source(5);
  for (int i = 0; i < 150; ++i) {
    SampleCase sample = declared_sample(source, formats[i / 4 % 4], i);
    expect_observation_changes_nothing(*qkcts_adapter_avx2(), sample);
  }
}

TEST_F(Avx2Kernel, Binary64IsUnsupported) {
  std::mt19937_64 source(1);
  SampleCase sample = random_sample(source, QKCTS_BINARY64, ContractVersion::v1_0);
  EXPECT_EQ(run_sample(*qkcts_adapter_avx2(), sample, 1u << QKCTS_STAGE_OUTPUT, SampleLayout::contiguous).status,
            QKCTS_UNSUPPORTED);
}

}  // namespace
}  // namespace qkcts
