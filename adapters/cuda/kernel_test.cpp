// SPDX-License-Identifier: Apache-2.0
// The kernels on the host executor against the formulas and against each other. No GPU takes part.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "adapters/cuda/adapter_state.hpp"
#include "adapters/cuda/start_kernel.hpp"
#include "adapters/plain_attention.hpp"
#include "adapters/sample_case.hpp"
#include "adapters/stage_check.hpp"

namespace qkcts {
namespace {

constexpr std::uint32_t result_stages = 1u << QKCTS_STAGE_OUTPUT | 1u << QKCTS_STAGE_LSE;

void without_points(qkcts_contract& terms) {
  terms.rounding = {};
}

// Values that hidden keys do not have: then the matrix unit is used.
void for_the_unit(qkcts_contract& terms) {
  terms.rounding = {};
  terms.softmax.hidden_values = QKCTS_HIDDEN_FINITE;
  terms.v_norm = {};
  terms.v_range = {};
}

SampleRun run_with(const std::string& options, SampleCase& sample, std::uint32_t stages = result_stages,
                   SampleLayout layout = SampleLayout::contiguous) {
  const AdapterState state(*qkcts_adapter_cuda_host(), options);
  return run_sample(*qkcts_adapter_cuda_host(), sample, stages, layout, state.get());
}

void expect_same(const SampleRun& a, const SampleRun& b, const std::string& what) {
  ASSERT_EQ(a.status, QKCTS_OK) << a.message;
  ASSERT_EQ(b.status, QKCTS_OK) << b.message;
  for (std::size_t i = 0; i < QKCTS_STAGE_COUNT; ++i) {
    ASSERT_EQ(a.stages[i].size(), b.stages[i].size());
    for (std::size_t j = 0; j < a.stages[i].size(); ++j)
      ASSERT_TRUE(a.stages[i][j] == b.stages[i][j] ||
                  (a.stages[i][j] != a.stages[i][j] && b.stages[i][j] != b.stages[i][j]))
          << what << ": stage " << i << ", element " << j;
  }
}

TEST(CudaKernel, AgreesWithTheFormulasForAnyContractAndFormat) {
  std::mt19937_64 source(20240503);
  for (int i = 0; i < 64; ++i) {
    const std::uint32_t format = 1 + static_cast<std::uint32_t>(i / 4 % 4);
    // As for the scalar kernel: contracts with rounding points are compared in binary64.
    SampleCase sample = random_sample(source, format, i % 4 == 3 ? ContractVersion::v1_0 : ContractVersion::v1_2,
                                      format == QKCTS_BINARY64 ? nullptr : without_points);
    const std::uint32_t stages = existing_stages(sample.terms);
    const SampleLayout layout = i % 3 == 0 ? SampleLayout::scattered : SampleLayout::contiguous;
    const SampleRun run = run_with("path=plain", sample, stages, layout);
    ASSERT_EQ(run.status, QKCTS_OK) << run.message;
    EXPECT_NE(run.implementation.find("host executor, no GPU"), std::string::npos) << run.implementation;
    expect_stages(run, plain_attention(sample), sample, stages);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(CudaKernel, MatrixUnitAgreesWithTheFormulas) {
  std::mt19937_64 source(20240504);
  constexpr const char* units[] = {"unit=a100", "unit=h100", "unit=v100"};
  for (int i = 0; i < 30; ++i) {
    const std::uint32_t format = i % 2 == 0 ? QKCTS_BFLOAT16 : QKCTS_BINARY16;
    SampleCase sample = random_sample(source, format, ContractVersion::v1_2, for_the_unit);
    const std::uint32_t stages = existing_stages(sample.terms);
    const SampleRun run = run_with(units[i / 2 % 3], sample, stages);
    ASSERT_EQ(run.status, QKCTS_OK) << run.message;
    EXPECT_NE(run.implementation.find("mma.m16n8k16"), std::string::npos) << run.implementation;
    expect_stages(run, plain_attention(sample), sample, stages);
    if (testing::Test::HasFailure()) return;
  }
}

// Lengths around the tiles of both kernels; no tap, so that hidden blocks are passed over.
TEST(CudaKernel, AgreesWithTheFormulasAtEveryTileBoundary) {
  std::mt19937_64 source(12);
  for (const std::int64_t length : {1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 97}) {
    for (const std::int64_t dim : {1, 16, 33, 128}) {
      SampleCase sample;
      sample.terms = plain_contract();
      sample.terms.mask.causal = 1;
      sample.terms.mask.has_window = length % 2 == 0 ? 1 : 0;
      sample.terms.mask.window_left = length / 3;
      sample.terms.mask.window_right = -1;
      sample.format = dim == 33 ? QKCTS_BINARY32 : QKCTS_BFLOAT16;
      sample.shape = {1, 2, 1, length, length, dim, dim == 16 ? 5 : dim};
      draw_inputs(sample, source, SampleLayout::contiguous);
      expect_stages(run_with("", sample), plain_attention(sample), sample, result_stages);
    }
  }
}

// The order of threads, and their kind, must not show in any bit.
TEST(CudaKernel, ScheduleChangesNothing) {
  std::mt19937_64 source(13);
  for (int i = 0; i < 12; ++i) {
    const std::uint32_t format = 1 + static_cast<std::uint32_t>(i % 4);
    SampleCase sample =
        random_sample(source, format, ContractVersion::v1_2, i % 2 == 0 ? for_the_unit : without_points);
    const std::uint32_t stages = existing_stages(sample.terms);
    const SampleRun forwards = run_with("threads=fibres", sample, stages);
    expect_same(forwards, run_with("threads=backwards", sample, stages), sample.text());
    if (testing::Test::HasFailure()) return;
  }
  // A thread of the operating system costs more than a fibre.
  SampleCase small;
  small.terms = plain_contract();
  small.shape = {1, 2, 1, 3, 40, 8, 8};
  for (const std::uint32_t format : {QKCTS_BINARY32, QKCTS_BFLOAT16}) {
    small.format = format;
    draw_inputs(small, source, SampleLayout::contiguous);
    expect_same(run_with("", small), run_with("threads=os", small), small.text());
  }
}

TEST(CudaKernel, ObservationChangesNothing) {
  std::mt19937_64 source(14);
  for (int i = 0; i < 12; ++i) {
    SampleCase sample = random_sample(source, 1 + static_cast<std::uint32_t>(i % 4), ContractVersion::v1_2,
                                      i % 3 == 0 ? nullptr : for_the_unit);
    const SampleRun bare = run_with("", sample);
    SampleRun tapped = run_with("", sample, existing_stages(sample.terms), SampleLayout::scattered);
    for (int stage = 0; stage < QKCTS_STAGE_COUNT; ++stage)
      if ((result_stages >> stage & 1u) == 0) tapped.stages[static_cast<std::size_t>(stage)].clear();
    expect_same(bare, tapped, sample.text());
    if (testing::Test::HasFailure()) return;
  }
}

// Keys shared out among blocks and merged again: every part has a share of the sum, some see nothing.
TEST(CudaKernel, SplitRowsAreMerged) {
  std::mt19937_64 source(15);
  for (int i = 0; i < 8; ++i) {
    SampleCase sample;
    const ContractEdit edit = i % 2 == 0 ? for_the_unit : without_points;
    sample.format = 1 + static_cast<std::uint32_t>(i % 4);
    sample.shape = {2, 4, 2, 3, 200, 16, 8};
    sample.terms = random_contract(source, sample.shape, ContractVersion::v1_1);
    edit(sample.terms);
    draw_inputs(sample, source, SampleLayout::contiguous);
    const std::uint32_t stages = existing_stages(sample.terms);
    const SampleRun split = run_with("split=32", sample, stages);
    ASSERT_EQ(split.status, QKCTS_OK) << split.message;
    EXPECT_NE(split.implementation.find("7 splits"), std::string::npos) << split.implementation;
    expect_stages(split, plain_attention(sample), sample, stages);
    if (testing::Test::HasFailure()) return;
  }
}

// Scores in the thousands of either sign, a part whose keys are all hidden, and one with all of the weight: what a
// merge by shares of unscaled sums would lose.
TEST(CudaKernel, PartsOfUnlikeSizeAreMerged) {
  std::mt19937_64 source(151);
  SampleCase sample;
  sample.format = QKCTS_BINARY64;
  sample.terms = plain_contract();
  sample.terms.score.scale_form = QKCTS_SCALE_CONSTANT;
  sample.terms.score.scale_value = 300;
  sample.terms.mask.kv_lengths = 1;
  sample.shape = {2, 2, 1, 3, 160, 16, 8};
  draw_inputs(sample, source, SampleLayout::contiguous);
  sample.inputs[sample_kv_len].set(0, 70);
  sample.inputs[sample_kv_len].set(1, 160);
  const std::vector<double> expected = plain_attention(sample)[QKCTS_STAGE_LSE];
  EXPECT_GT(*std::max_element(expected.begin(), expected.end()), 1000);
  const SampleRun split = run_with("split=32", sample);
  EXPECT_NE(split.implementation.find("5 splits"), std::string::npos) << split.implementation;
  expect_stages(split, plain_attention(sample), sample, result_stages);
}

// Vectors that three parts cannot hold go through plain arithmetic, and their neighbours keep their bits.
TEST(CudaKernel, IrregularRowsDoNotShowInOthers) {
  std::mt19937_64 source(16);
  SampleCase sample;
  sample.format = QKCTS_BFLOAT16;
  sample.terms = plain_contract();
  sample.terms.k_range.multiplier = 1.5;  // so that keys are no longer numbers of the storage format
  sample.shape = {1, 1, 1, 8, 8, 16, 16};
  draw_inputs(sample, source, SampleLayout::contiguous);
  const SampleRun regular = run_with("", sample);
  ASSERT_NE(regular.implementation.find("3 parts"), std::string::npos) << regular.implementation;
  sample.inputs[sample_q].set(5 * 16, 0x1p-60);  // query 5
  const SampleRun mixed = run_with("", sample);
  expect_stages(mixed, plain_attention(sample), sample, result_stages);
  for (std::size_t i = 0; i < 8 * 16; ++i) {
    if (i / 16 == 5) continue;
    EXPECT_EQ(mixed.stages[QKCTS_STAGE_OUTPUT][i], regular.stages[QKCTS_STAGE_OUTPUT][i]) << i;
  }
}

// Keys 2 to 7 are seen, each with weight 1, and have the same value, so that it is the output too. What stands at the
// hidden keys 0 and 1 does not show, unless the unit aligns its sums by 0 * 2^15 as well and cuts the last bit of the
// value off (which docs/cuda.md, "What a run on a GPU has to show", wants to be looked at).
TEST(CudaKernel, HiddenValuesShowOnlyIfZeroProductsAlign) {
  std::mt19937_64 source(161);
  SampleCase sample;
  sample.format = QKCTS_BINARY16;
  sample.terms = plain_contract();
  sample.terms.mask.has_window = 1;
  sample.terms.mask.window_left = 5;
  sample.terms.mask.alignment = QKCTS_OFFSET;
  sample.terms.mask.offset = 7;
  sample.shape = {1, 1, 1, 1, 16, 16, 16};
  draw_inputs(sample, source, SampleLayout::contiguous);
  constexpr double value = 0x1p-14 * (1 + 0x1p-10);
  for (std::size_t d = 0; d < 16; ++d) {
    sample.inputs[sample_q].set(d, 0);
    for (std::size_t k = 0; k < 16; ++k) sample.inputs[sample_v].set(k * 16 + d, k >= 2 && k < 8 ? value : 0);
  }
  const auto output = [&](const std::string& options, double hidden) {
    for (std::size_t i = 0; i < 2 * 16; ++i) sample.inputs[sample_v].set(i, hidden);
    const SampleRun run = run_with(options, sample);
    EXPECT_EQ(run.status, QKCTS_OK) << run.message;
    EXPECT_NE(run.implementation.find("mma.m16n8k16"), std::string::npos) << run.implementation;
    return run.stages[QKCTS_STAGE_OUTPUT].at(0);
  };
  EXPECT_EQ(output("", 0), value);
  EXPECT_EQ(output("", 0x1p15), value);
  EXPECT_EQ(output("zeros=align", 0), value);
  EXPECT_EQ(output("zeros=align", 0x1p15), 0x1p-14);
}

// Several states of one process, in turn and at the same time: each has its own device memory.
TEST(CudaAdapter, SeveralStreamsOfCallsDoNotMeet) {
  std::mt19937_64 source(17);
  const qkcts_adapter_table& table = *qkcts_adapter_cuda_host();
  SampleCase first = random_sample(source, QKCTS_BINARY32, ContractVersion::v1_2, without_points);
  SampleCase second = random_sample(source, QKCTS_BFLOAT16, ContractVersion::v1_2, for_the_unit);
  const SampleRun alone[2] = {run_with("", first), run_with("", second)};
  const AdapterState a(table, ""), b(table, "");
  for (int i = 0; i < 3; ++i) {
    expect_same(alone[0], run_sample(table, first, result_stages, SampleLayout::contiguous, a.get()), "in turn");
    expect_same(alone[1], run_sample(table, second, result_stages, SampleLayout::contiguous, b.get()), "in turn");
  }
  const auto often = [&](SampleCase& sample, const AdapterState& state, const SampleRun& want) {
    for (int i = 0; i < 5; ++i)
      expect_same(want, run_sample(table, sample, result_stages, SampleLayout::contiguous, state.get()), "together");
  };
  std::thread other([&] { often(second, b, alone[1]); });
  often(first, a, alone[0]);
  other.join();
}

TEST(CudaAdapter, OutOfMemoryIsAClearError) {
  std::mt19937_64 source(18);
  SampleCase sample;
  sample.terms = plain_contract();
  sample.shape = {1, 1, 1, 64, 4096, 64, 64};
  draw_inputs(sample, source, SampleLayout::contiguous);
  const AdapterState state(*qkcts_adapter_cuda_host(), "memory=1");
  const SampleRun run =
      run_sample(*qkcts_adapter_cuda_host(), sample, result_stages, SampleLayout::contiguous, state.get());
  EXPECT_EQ(run.status, QKCTS_OUT_OF_MEMORY);
  EXPECT_NE(run.message.find("out of device memory"), std::string::npos) << run.message;
  // What was taken is given back: a small call fits.
  sample.shape = {1, 1, 1, 2, 4, 8, 8};
  draw_inputs(sample, source, SampleLayout::contiguous);
  EXPECT_EQ(run_sample(*qkcts_adapter_cuda_host(), sample, result_stages, SampleLayout::contiguous, state.get()).status,
            QKCTS_OK);
}

TEST(CudaAdapter, AGridThatNoDeviceHasIsAClearError) {
  cuda::Device device(cuda::Settings{});
  const auto start = [&](cuda::Grid grid) {
    cuda::start_kernel(
        device, "attend_plain", [] {}, grid, 0);
  };
  EXPECT_NO_THROW(start({2, 2, 2}));
  for (const cuda::Grid& grid : {cuda::Grid{std::int64_t{1} << 31, 1, 1}, {1, 65536, 1}, {1, 1, 65536}}) {
    try {
      start(grid);
      ADD_FAILURE() << "a grid of " << grid.x << " x " << grid.y << " x " << grid.z << " blocks was started";
    } catch (const cuda::DeviceError& failure) {
      EXPECT_EQ(std::string(failure.what()), "attend_plain: more blocks than a grid may have");
    }
  }
}

TEST(CudaAdapter, UnknownOptionsAreRefused) {
  for (const char* options : {"path", "path=fast", "split=7", "split=-32", "memory=x", "unit=b300", "threads=1",
                              "drop=nothing", "zeros=2", "subnormals=no", "device=0", "color=red"}) {
    void* state = nullptr;
    char text[256] = "";
    qkcts_text message{sizeof(qkcts_text), sizeof text, 0, 0, text};
    EXPECT_EQ(qkcts_adapter_cuda_host()->prepare(options, &state, &message), QKCTS_INVALID) << options;
    EXPECT_EQ(state, nullptr);
    EXPECT_NE(std::string(text).find("wanted") == std::string::npos,
              std::string(text).find("there is no such option") == std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace qkcts
