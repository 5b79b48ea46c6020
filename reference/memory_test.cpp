// SPDX-License-Identifier: Apache-2.0
// Memory of a case grows with its length, not with the square of it: the largest sum of what C++ holds at one time,
// counted at the global operators. A program of its own, because it replaces them.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "reference/evaluation.hpp"
#include "reference/sample_case.hpp"

namespace {

std::atomic<std::int64_t> held{0}, most{0};

void* counted(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  most = std::max<std::int64_t>(most, held += static_cast<std::int64_t>(malloc_usable_size(block)));
  return block;
}

void* counted(std::size_t size, std::align_val_t line) {
  const auto bytes = static_cast<std::size_t>(line);
  void* block = std::aligned_alloc(bytes, (size + bytes - 1) / bytes * bytes);
  if (block == nullptr) throw std::bad_alloc();
  most = std::max<std::int64_t>(most, held += static_cast<std::int64_t>(malloc_usable_size(block)));
  return block;
}

void release(void* block) noexcept {
  if (block != nullptr) held -= static_cast<std::int64_t>(malloc_usable_size(block));
  std::free(block);
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(size);
}
void* operator new[](std::size_t size) {
  return counted(size);
}
void* operator new(std::size_t size, std::align_val_t line) {
  return counted(size, line);
}
void operator delete(void* block, std::align_val_t) noexcept {
  release(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  release(block);
}
void operator delete(void* block) noexcept {
  release(block);
}
void operator delete[](void* block) noexcept {
  release(block);
}
void operator delete(void* block, std::size_t) noexcept {
  release(block);
}
void operator delete[](void* block, std::size_t) noexcept {
  release(block);
}

namespace qkcts {
namespace {

Case case_of_length(std::int64_t length) {
  return sample_case(shipped_contract("plain_sdpa"),
                     {Format::binary32, SampleValues::full, 1, {1, 1, 1, length, length, 8, 8}});
}

// Everything of output and lse, eight rows of the stages that have a number per query and key.
StageRows stored_rows(const Case& c) {
  StageRows rows = every_row(c);
  for (const qkcts_stage stage : {QKCTS_STAGE_SCORES, QKCTS_STAGE_MASKED, QKCTS_STAGE_PROBS})
    if (!rows[stage].empty()) rows[stage].resize(8);
  return rows;
}

template <class Work>
double peak_of(const Work& work) {
  const std::int64_t before = held;
  most = before;
  work();
  return static_cast<double>(most - before);
}

TEST(Memory, GrowsWithTheLength) {
  const Case small = case_of_length(256), large = case_of_length(1024);
  const std::vector<Profile> profiles = {shipped_profile("f32")};
  const auto in_blocks = [&](const Case& c) {
    return peak_of([&] { evaluate_with_budgets(c, stored_rows(c), profiles); });
  };
  const auto at_once = [&](const Case& c) { return peak_of([&] { evaluate(c, stored_rows(c)); }); };
  EXPECT_LT(in_blocks(large), 5 * in_blocks(small));
  EXPECT_GT(at_once(large), 10 * at_once(small));  // the whole case at once: what this test must be able to see
  EXPECT_LT(in_blocks(large), at_once(large) / 5);
}

}  // namespace
}  // namespace qkcts
