// SPDX-License-Identifier: Apache-2.0
#include <qkcts/adapter.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/adapter_tables.hpp"
#include "adapters/plain_attention.hpp"
#include "adapters/sample_case.hpp"

#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif

extern "C" std::size_t qkcts_c11_sizes(std::size_t which);

namespace qkcts {
namespace {

TEST(Abi, C11AndCppSeeTheSameStructs) {
  const std::array<std::size_t, 20> sizes = {
      sizeof(qkcts_contract), sizeof(qkcts_shape),         sizeof(qkcts_tensor),
      sizeof(qkcts_inputs),   sizeof(qkcts_outputs),       sizeof(qkcts_text),
      sizeof(qkcts_run_args), sizeof(qkcts_norm),          sizeof(qkcts_mask),
      sizeof(qkcts_heads),    sizeof(qkcts_adapter_table), sizeof(qkcts_norm_range),
      sizeof(qkcts_rotation), sizeof(qkcts_logits),        sizeof(qkcts_softmax),
      sizeof(qkcts_regions),  sizeof(qkcts_projection),    sizeof(qkcts_vector_rounding),
      sizeof(qkcts_rounding), sizeof(qkcts_input_rounding)};
  for (std::size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(qkcts_c11_sizes(i), sizes[i]) << i;
}

TEST(Abi, HasSeesOnlyFieldsThatTheWriterKnew) {
  qkcts_run_args args{};
  args.struct_size = sizeof args;
  // NOLINTBEGIN(bugprone-sizeof-expression): the size of the pointer itself is meant.
  EXPECT_TRUE(QKCTS_HAS(&args, message));
  args.struct_size = static_cast<std::uint32_t>(offsetof(qkcts_run_args, message));
  EXPECT_FALSE(QKCTS_HAS(&args, message));
  EXPECT_TRUE(QKCTS_HAS(&args, implementation));
  // NOLINTEND(bugprone-sizeof-expression)
}

std::vector<unsigned char> bytes_of(const qkcts_contract& contract, std::size_t first, std::size_t last) {
  const auto* const start = reinterpret_cast<const unsigned char*>(&contract);
  return {start + first, start + last};
}

// A host of version 1.0 knows no clause behind `mask`, one of 1.1 none behind `heads`: what lies there in memory is not
// its contract.
TEST(Abi, KnownContractEndsWhereItsWriterEnded) {
  constexpr std::size_t all = sizeof(qkcts_contract);
  qkcts_contract given;
  std::memset(&given, 0x5a, sizeof given);
  for (const std::size_t old : {offsetof(qkcts_contract, q_range), offsetof(qkcts_contract, v_norm)}) {
    given.struct_size = static_cast<std::uint32_t>(old);
    const qkcts_contract known = qkcts_known_contract(&given);
    EXPECT_EQ(bytes_of(known, 0, old), bytes_of(given, 0, old));
    EXPECT_EQ(bytes_of(known, old, all), std::vector<unsigned char>(all - old));
  }

  given.struct_size = static_cast<std::uint32_t>(all);
  EXPECT_EQ(bytes_of(qkcts_known_contract(&given), 0, all), bytes_of(given, 0, all));
  given.struct_size = static_cast<std::uint32_t>(all + 64);  // a later host: the rest is not looked at
  EXPECT_EQ(bytes_of(qkcts_known_contract(&given), 0, all), bytes_of(given, 0, all));
}

// The part of a struct that its writer knew; behind it lies what no reader may look at.
template <class Struct>
Struct cut(const Struct& given, std::size_t known) {
  Struct shorter;
  std::memset(&shorter, 0x5a, sizeof shorter);
  std::memcpy(&shorter, &given, known);
  shorter.struct_size = static_cast<std::uint32_t>(known);
  return shorter;
}

const qkcts_adapter_table* adapter_under_old_host;

// Hands the call on as a host of version 1.1 would have made it.
qkcts_status run_as_host_1_1(const qkcts_run_args* args) {
  constexpr std::uint32_t stages = QKCTS_STAGE_OUTPUT + 1;
  const qkcts_contract contract = cut(*args->contract, offsetof(qkcts_contract, v_norm));
  const qkcts_inputs inputs = cut(*args->inputs, offsetof(qkcts_inputs, v_gain));
  qkcts_outputs outputs = cut(*args->outputs, offsetof(qkcts_outputs, stage) + stages * sizeof(void*));
  outputs.count = stages;
  qkcts_run_args old = *args;
  old.contract = &contract;
  old.inputs = &inputs;
  old.outputs = &outputs;
  return adapter_under_old_host->run(&old);
}

TEST(Abi, NewAdaptersRunUnderAnOldHost) {
  std::mt19937_64 source(29);
  const std::uint32_t asked = 1u << QKCTS_STAGE_OUTPUT | 1u << QKCTS_STAGE_LSE;
  for (const NamedTable& adapter : bundled_tables()) {
    if (std::string(adapter.name) == "template") continue;
    qkcts_text reason{sizeof(qkcts_text), 0, 0, 0, nullptr};
    if (adapter.table->probe(&reason) != QKCTS_OK) continue;
    adapter_under_old_host = adapter.table;
    qkcts_adapter_table old_host = *adapter.table;
    old_host.run = run_as_host_1_1;
    for (int i = 0; i < 20; ++i) {
      SampleCase sample = random_sample(source, QKCTS_BINARY32, ContractVersion::v1_1, [](qkcts_contract& terms) {
        terms.rotation = {};  // what avx2 does not have
        terms.logits.alibi = QKCTS_ALIBI_NONE;
        terms.softmax = {};
      });
      const SampleRun now = run_sample(*adapter.table, sample, asked, SampleLayout::contiguous);
      const SampleRun then = run_sample(old_host, sample, asked, SampleLayout::contiguous);
      ASSERT_EQ(then.status, QKCTS_OK) << adapter.name << ": " << then.message;
      for (const qkcts_stage stage : {QKCTS_STAGE_OUTPUT, QKCTS_STAGE_LSE})
        EXPECT_EQ(worst_difference(then.stages[stage], now.stages[stage], NanRule::must_match), 0) << adapter.name;
    }
  }
}

TEST(Abi, SetTextCutsAndCounts) {
  char memory[6] = "#####";
  qkcts_text text{sizeof(qkcts_text), 4, 0, 0, memory};
  qkcts_set_text(&text, "abcdef");
  EXPECT_STREQ(memory, "abc");
  EXPECT_EQ(memory[4], '#');
  EXPECT_EQ(text.length, 6u);
  qkcts_set_text(&text, "");
  EXPECT_STREQ(memory, "");
  EXPECT_EQ(text.length, 0u);

  qkcts_text question{sizeof(qkcts_text), 0, 0, 0, nullptr};  // how long is it?
  qkcts_set_text(&question, "abcdef");
  EXPECT_EQ(question.length, 6u);
  qkcts_set_text(nullptr, "abcdef");
}

TEST(Abi, EveryTableIsCompleteAndDescribesItself) {
  for (const NamedTable& adapter : bundled_tables()) {
    SCOPED_TRACE(adapter.name);
    const qkcts_adapter_table& table = *adapter.table;
    EXPECT_EQ(table.struct_size, sizeof(qkcts_adapter_table));
    EXPECT_EQ(table.abi_major, QKCTS_ADAPTER_ABI_MAJOR);
    EXPECT_EQ(table.abi_minor, QKCTS_ADAPTER_ABI_MINOR);
    ASSERT_TRUE(table.describe && table.probe && table.prepare && table.run && table.release);

    qkcts_text text{sizeof(qkcts_text), 0, 0, 0, nullptr};
    ASSERT_EQ(table.describe(&text), QKCTS_OK);
    std::string json(text.length + 1, '#');
    text.text = json.data();
    text.capacity = static_cast<std::uint32_t>(json.size());
    ASSERT_EQ(table.describe(&text), QKCTS_OK);
    EXPECT_EQ(std::strlen(json.c_str()), text.length);
    EXPECT_NE(json.find("\"name\": \"" + std::string(adapter.name) + "\""), std::string::npos);
  }
}

TEST(Abi, UnknownOptionsAreRefused) {
  for (const NamedTable& adapter : bundled_tables()) {
    if (std::string(adapter.name) == "template") continue;
    char memory[128] = "";
    qkcts_text message{sizeof(qkcts_text), sizeof memory, 0, 0, memory};
    void* state = nullptr;
    EXPECT_EQ(adapter.table->prepare("no_such_key=1", &state, &message), QKCTS_INVALID) << adapter.name;
    EXPECT_GT(message.length, 0u) << adapter.name;
  }
}

#ifdef DLPACK_VERSION
TEST(Abi, TensorIsADlTensor) {
  static_assert(sizeof(qkcts_tensor) == sizeof(DLTensor));
  static_assert(offsetof(qkcts_tensor, data) == offsetof(DLTensor, data));
  static_assert(offsetof(qkcts_tensor, device) == offsetof(DLTensor, device));
  static_assert(offsetof(qkcts_tensor, ndim) == offsetof(DLTensor, ndim));
  static_assert(offsetof(qkcts_tensor, dtype) == offsetof(DLTensor, dtype));
  static_assert(offsetof(qkcts_tensor, shape) == offsetof(DLTensor, shape));
  static_assert(offsetof(qkcts_tensor, strides) == offsetof(DLTensor, strides));
  static_assert(offsetof(qkcts_tensor, byte_offset) == offsetof(DLTensor, byte_offset));
  // Not only the offsets: what one writes the other reads.
  std::int64_t extent = 3;
  std::int64_t stride = 1;
  DLTensor theirs{};
  theirs.device = {kDLCPU, 0};
  theirs.ndim = 1;
  theirs.dtype = {static_cast<std::uint8_t>(kDLBfloat), 16, 1};
  theirs.shape = &extent;
  theirs.strides = &stride;
  qkcts_tensor ours;
  std::memcpy(&ours, &theirs, sizeof ours);
  EXPECT_EQ(ours.device.device_type, QKCTS_DL_CPU);
  EXPECT_EQ(ours.dtype.code, QKCTS_DL_BFLOAT);
  EXPECT_EQ(ours.dtype.bits, 16);
  EXPECT_EQ(ours.shape[0], 3);
}
#endif

}  // namespace
}  // namespace qkcts
