// SPDX-License-Identifier: Apache-2.0
// One std::thread per CUDA thread.
#pragma once

#include <barrier>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "adapters/cuda/executor/schedule.hpp"

namespace qkcts::cuda {

class ThreadSchedule : public Schedule {
 public:
  explicit ThreadSchedule(const std::function<void()>& kernel);
  ~ThreadSchedule() override;
  ThreadSchedule(const ThreadSchedule&) = delete;
  ThreadSchedule& operator=(const ThreadSchedule&) = delete;

  void run(BlockState& block) override;
  void wait_for_block(ThreadState& thread) override;
  void wait_for_warp(ThreadState& thread) override;

 private:
  void work(unsigned index);

  const std::function<void()>& kernel_;
  BlockState* block_ = nullptr;  // null: the threads end
  std::barrier<> begin_, end_, block_barrier_;
  std::vector<std::unique_ptr<std::barrier<>>> warp_barriers_;
  std::vector<std::thread> threads_;
};

}  // namespace qkcts::cuda
