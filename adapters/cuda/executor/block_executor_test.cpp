// SPDX-License-Identifier: Apache-2.0
// What the executor has to notice: each test is a kernel with a fault, beside the same kernel without it.
#include "adapters/cuda/executor/block_executor.hpp"

#include <array>
#include <cmath>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/cuda/element.hpp"
#include "adapters/cuda/platform.hpp"

namespace qkcts::cuda {
namespace {

constexpr std::size_t threads = executor_threads;

ExecutorOptions with(Threads kind, Barrier dropped = Barrier::none) {
  ExecutorOptions options;
  options.threads = kind;
  options.dropped = dropped;
  return options;
}

// Every thread writes its number and reads that of its opposite.
std::vector<float> mirrored(const ExecutorOptions& options) {
  std::vector<float> got(threads);
  run_grid({}, threads * sizeof(float), options, [&] {
    auto* shared = static_cast<float*>(shared_memory());
    const auto i = static_cast<std::size_t>(thread_index());
    shared[i] = static_cast<float>(i);
    sync_block(Barrier::tile_is_written);
    got[i] = shared[threads - 1 - i];
  });
  return got;
}

TEST(BlockExecutor, BarriersOrderWhatThreadsWrite) {
  for (const Threads kind : {Threads::fibres, Threads::fibres_backwards, Threads::os_threads}) {
    const std::vector<float> got = mirrored(with(kind));
    for (std::size_t i = 0; i < threads; ++i) EXPECT_EQ(got[i], static_cast<float>(threads - 1 - i));
  }
}

// Without the barrier the first half of the fibres reads the poison of shared memory.
TEST(BlockExecutor, WhatNobodyWroteIsPoison) {
  for (const Threads kind : {Threads::fibres, Threads::fibres_backwards}) {
    std::size_t poisoned = 0;
    for (const float x : mirrored(with(kind, Barrier::tile_is_written))) poisoned += std::isnan(x) ? 1 : 0;
    EXPECT_EQ(poisoned, threads / 2);
  }
}

TEST(BlockExecutor, EveryBlockBeginsWithPoison) {
  int written = 0;
  run_grid({3, 2, 2}, 16, {}, [&] {
    auto* shared = static_cast<float*>(shared_memory());
    if (thread_index() != 0) return;
    if (!std::isnan(shared[0])) ++written;
    shared[0] = 1;
  });
  EXPECT_EQ(written, 0);
}

TEST(BlockExecutor, AllBlocksOfTheGridRun) {
  std::vector<int> seen(3 * 2 * 4);
  run_grid({3, 2, 4}, 0, {}, [&] {
    if (thread_index() == 0) ++seen[static_cast<std::size_t>((block_z() * 2 + block_y()) * 3 + block_x())];
  });
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
}

// A copy is there when the thread has waited for it, and not before.
TEST(BlockExecutor, CopiesNeedToBeWaitedFor) {
  for (const bool waits : {true, false}) {
    const std::array<float, 4> source{1, 2, 3, 4};
    float got = 0;
    run_grid({}, 32, {}, [&] {
      auto* shared = static_cast<float*>(shared_memory());
      if (thread_index() != 0) return;
      copy_async(shared, source.data(), true);
      commit_copies();
      copy_async(shared + 4, source.data(), false);
      commit_copies();
      if (waits) {
        wait_copies<1>();
        EXPECT_TRUE(std::isnan(shared[4]));  // the second group may still be under way
        wait_copies<0>();
        EXPECT_EQ(shared[4], 0);
      }
      got = shared[2];
    });
    EXPECT_EQ(std::isnan(got), !waits);
  }
}

TEST(BlockExecutor, ThreadsThatDoNotMeetAreAnError) {
  EXPECT_THROW(run_grid({}, 0, {},
                        [] {
                          if (thread_index() < 64) sync_block(Barrier::tile_is_read);
                        }),
               std::logic_error);
  EXPECT_THROW(run_grid({}, 0, {},
                        [] {
                          if (thread_index() % 2 == 0) shuffle_xor(1.0f, 1);
                        }),
               std::logic_error);
  run_grid({}, 0, {}, [] { sync_block(Barrier::tile_is_read); });  // control
}

TEST(BlockExecutor, ShufflesExchangeLanes) {
  for (const Threads kind : {Threads::fibres, Threads::os_threads}) {
    run_grid({}, 0, with(kind), [] {
      for (int lanes = 1; lanes < 32; lanes *= 2) {
        EXPECT_EQ(shuffle_xor(static_cast<double>(thread_index()), lanes), thread_index() ^ lanes);
        EXPECT_EQ(shuffle_xor(static_cast<std::uint32_t>(thread_index()), lanes),
                  static_cast<std::uint32_t>(thread_index() ^ lanes));
      }
    });
  }
}

TEST(BlockExecutor, MatricesAreLoadedAsLdmatrixDoes) {
  run_grid({}, 16 * 16 * 2, {}, [] {
    auto* matrix = static_cast<std::uint16_t*>(shared_memory());  // [16, 16]
    for (int i = thread_index(); i < 256; i += block_threads) matrix[i] = static_cast<std::uint16_t>(i);
    sync_block(Barrier::tile_is_written);
    const int lane = thread_index() % warp_threads, g = lane / 4, t = lane % 4;
    const auto low = [](std::uint32_t pair) { return static_cast<int>(pair & 0xffffu); };
    const auto high = [](std::uint32_t pair) { return static_cast<int>(pair >> 16); };
    std::uint32_t four[4], two[2];
    load_matrices(four, matrix + lane % 16 * 16 + lane / 16 * 8);
    for (int m = 0; m < 4; ++m) {
      EXPECT_EQ(low(four[m]), (g + m % 2 * 8) * 16 + m / 2 * 8 + 2 * t);
      EXPECT_EQ(high(four[m]), low(four[m]) + 1);
    }
    load_transposed(two, matrix + lane % 16 * 16);
    for (int m = 0; m < 2; ++m) {
      EXPECT_EQ(low(two[m]), (m * 8 + 2 * t) * 16 + g);
      EXPECT_EQ(high(two[m]), low(two[m]) + 16);
    }
  });
}

TEST(Element, NarrowFormatsRoundAsTheirDefinitionsSay) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    const bool nan_of_half = (bits & 0x7c00u) == 0x7c00u && (bits & 0x3ffu) != 0;
    const bool nan_of_brain = (bits & 0x7f80u) == 0x7f80u && (bits & 0x7fu) != 0;
    if (nan_of_half) {
      EXPECT_TRUE(std::isnan(from_binary16(to_binary16(from_binary16(pattern)))));
    } else {
      EXPECT_EQ(to_binary16(from_binary16(pattern)), pattern);
    }
    if (!nan_of_brain) {
      EXPECT_EQ(to_bfloat16(from_bfloat16(pattern)), pattern);
    }
    if (nan_of_half || (bits & 0x7fffu) >= 0x7bffu) continue;
    // The middle between two neighbours goes to the even one, what lies beyond it to the next.
    const float here = from_binary16(pattern), next = from_binary16(static_cast<std::uint16_t>(bits + 1));
    const float middle = (here + next) / 2;
    EXPECT_EQ(to_binary16(middle), bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(to_binary16(std::nextafter(middle, next)), bits + 1);
  }
  EXPECT_EQ(to_binary16(65519.99f), 0x7bffu);
  EXPECT_EQ(to_binary16(65520.0f), 0x7c00u);
  EXPECT_TRUE(std::isnan(from_bfloat16(to_bfloat16(float_of(0x7f800001u)))));
}

}  // namespace
}  // namespace qkcts::cuda
