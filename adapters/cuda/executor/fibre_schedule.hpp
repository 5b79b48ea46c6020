// SPDX-License-Identifier: Apache-2.0
// The threads of a block as fibres of one OS thread. Each runs until it waits; warps in turn, and the lanes of a warp
// in turn, so that what a missing barrier leaves unordered happens in one definite order, or backwards.
#pragma once

#include <functional>
#include <vector>

#include "adapters/cuda/executor/fibre_switch.hpp"
#include "adapters/cuda/executor/schedule.hpp"

namespace qkcts::cuda {

class FibreSchedule : public Schedule {
 public:
  FibreSchedule(const std::function<void()>& kernel, bool backwards);
  void run(BlockState& block) override;
  void wait_for_block(ThreadState& thread) override;
  void wait_for_warp(ThreadState& thread) override;

 private:
  enum class State { ready, at_warp, at_block, finished };
  struct Fibre {
    FibreContext context;
    ThreadState thread;
    State state = State::finished;
    std::byte* stack = nullptr;
    void* fake_stack = nullptr;  // of AddressSanitizer
  };

  static void enter(void* thread);
  void resume(Fibre& fibre);
  void yield(ThreadState& thread, State state);
  void run_warp(std::size_t warp);
  std::size_t ordered(std::size_t i, std::size_t count) const { return backwards_ ? count - 1 - i : i; }

  const std::function<void()>& kernel_;
  const bool backwards_;
  std::vector<Fibre> fibres_;
  FibreContext scheduler_;
  const void* scheduler_stack_ = nullptr;
  std::size_t scheduler_stack_size_ = 0;
};

}  // namespace qkcts::cuda
