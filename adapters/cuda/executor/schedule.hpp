// SPDX-License-Identifier: Apache-2.0
// How the threads of one block take turns: what block_executor.cpp asks of fibres and of std::threads alike.
#pragma once

#include <functional>

#include "adapters/cuda/executor/block_executor.hpp"

namespace qkcts::cuda {

// Makes `state` that of the caller for as long as this object lives.
ThreadState* exchange_current(ThreadState* state);

class Schedule {
 public:
  virtual ~Schedule() = default;
  // Runs the kernel once in each thread of the block.
  virtual void run(BlockState& block) = 0;
  // Of a thread inside of run(): until all threads of its block or warp wait as well.
  virtual void wait_for_block(ThreadState& thread) = 0;
  virtual void wait_for_warp(ThreadState& thread) = 0;
};

}  // namespace qkcts::cuda
