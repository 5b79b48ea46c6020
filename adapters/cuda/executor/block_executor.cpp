// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/executor/block_executor.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "adapters/cuda/executor/fibre_schedule.hpp"
#include "adapters/cuda/executor/thread_schedule.hpp"

namespace qkcts::cuda {

namespace {

// A signalling NaN of binary32, and as two words or two halves a NaN of the other formats.
constexpr std::uint32_t poison = 0x7fa57fa5u;

}  // namespace

constinit thread_local ThreadState* current_thread = nullptr;

ThreadState* exchange_current(ThreadState* state) {
  std::swap(current_thread, state);
  return state;
}

void PendingCopies::begin(void* to, const void* from, bool valid) {
  std::fill_n(static_cast<std::uint32_t*>(to), 4, poison);
  open_.push_back({to, from, valid});
}

void PendingCopies::commit() {
  groups_.push_back(std::move(open_));
  open_.clear();
}

void PendingCopies::wait(std::size_t pending) {
  constexpr std::size_t bytes = 16;
  while (groups_.size() > pending) {
    for (const Copy& copy : groups_.front()) {
      if (copy.valid) {
        std::memcpy(copy.to, copy.from, bytes);
      } else {
        std::memset(copy.to, 0, bytes);
      }
    }
    groups_.erase(groups_.begin());
  }
}

void wait_for_block(Barrier name) {
  ThreadState& thread = this_thread();
  if (name == thread.block->options.dropped) return;
  static_cast<Schedule*>(thread.schedule)->wait_for_block(thread);
}

WarpSlots exchange(const std::uint64_t* words, std::size_t count) {
  ThreadState& thread = this_thread();
  auto& set = thread.block->warps[thread.index / executor_lanes].slots[thread.turn % 2];
  std::copy_n(words, count, set[thread.index % executor_lanes].begin());
  ++thread.turn;
  static_cast<Schedule*>(thread.schedule)->wait_for_warp(thread);
  return WarpSlots(set);
}

void run_grid(const Grid& grid, std::size_t shared_bytes, const ExecutorOptions& options,
              const std::function<void()>& kernel) {
  // Whole words of 16 bytes, which is also how shared memory is aligned.
  std::vector<std::array<std::uint32_t, 4>> shared((shared_bytes + 15) / 16 + 1);
  std::unique_ptr<Schedule> schedule;
  if (options.threads == Threads::os_threads) {
    schedule = std::make_unique<ThreadSchedule>(kernel);
  } else {
    schedule = std::make_unique<FibreSchedule>(kernel, options.threads == Threads::fibres_backwards);
  }
  BlockState block;
  block.options = options;
  for (block.z = 0; block.z < grid.z; ++block.z)
    for (block.y = 0; block.y < grid.y; ++block.y)
      for (block.x = 0; block.x < grid.x; ++block.x) {
        std::fill(shared.begin(), shared.end(), std::array<std::uint32_t, 4>{poison, poison, poison, poison});
        block.shared = shared.data();
        schedule->run(block);
      }
}

}  // namespace qkcts::cuda
