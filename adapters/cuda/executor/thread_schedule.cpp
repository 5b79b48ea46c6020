// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/executor/thread_schedule.hpp"

namespace qkcts::cuda {

ThreadSchedule::ThreadSchedule(const std::function<void()>& kernel)
    : kernel_(kernel), begin_(executor_threads + 1), end_(executor_threads + 1), block_barrier_(executor_threads) {
  for (std::size_t w = 0; w < executor_threads / executor_lanes; ++w)
    warp_barriers_.push_back(std::make_unique<std::barrier<>>(executor_lanes));
  for (unsigned i = 0; i < executor_threads; ++i) threads_.emplace_back([this, i] { work(i); });
}

ThreadSchedule::~ThreadSchedule() {
  block_ = nullptr;
  begin_.arrive_and_wait();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadSchedule::work(unsigned index) {
  for (;;) {
    begin_.arrive_and_wait();
    if (block_ == nullptr) return;
    ThreadState state;
    state.index = index;
    state.block = block_;
    state.schedule = this;
    exchange_current(&state);
    kernel_();
    exchange_current(nullptr);
    end_.arrive_and_wait();
  }
}

void ThreadSchedule::run(BlockState& block) {
  block_ = &block;
  begin_.arrive_and_wait();
  end_.arrive_and_wait();
}

void ThreadSchedule::wait_for_block(ThreadState& /*thread*/) {
  block_barrier_.arrive_and_wait();
}

void ThreadSchedule::wait_for_warp(ThreadState& thread) {
  warp_barriers_[thread.index / executor_lanes]->arrive_and_wait();
}

}  // namespace qkcts::cuda
