// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/executor/fibre_schedule.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

#if defined(__SANITIZE_ADDRESS__)
#define QKCTS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define QKCTS_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef QKCTS_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

namespace qkcts::cuda {

namespace {

// AddressSanitizer has to know on which stack the program goes on.
void leave_stack([[maybe_unused]] void** saved, [[maybe_unused]] const void* to, [[maybe_unused]] std::size_t size) {
#ifdef QKCTS_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(saved, to, size);
#endif
}

void arrive_on_stack([[maybe_unused]] void* saved, [[maybe_unused]] const void** from,
                     [[maybe_unused]] std::size_t* size) {
#ifdef QKCTS_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(saved, from, size);
#endif
}

constexpr std::size_t stack_bytes = 64 * 1024;

// Stacks outlive a grid: there are many grids, and most of a stack is never touched.
std::byte* stack_of(std::size_t fibre) {
  thread_local const std::unique_ptr<std::byte[]> stacks(new std::byte[executor_threads * stack_bytes]);
  return stacks.get() + fibre * stack_bytes;
}

}  // namespace

FibreSchedule::FibreSchedule(const std::function<void()>& kernel, bool backwards)
    : kernel_(kernel), backwards_(backwards), fibres_(executor_threads) {
  for (std::size_t i = 0; i < fibres_.size(); ++i) fibres_[i].stack = stack_of(i);
}

void FibreSchedule::enter(void* state) {
  auto& thread = *static_cast<ThreadState*>(state);
  auto& self = *static_cast<FibreSchedule*>(static_cast<Schedule*>(thread.schedule));
  arrive_on_stack(nullptr, &self.scheduler_stack_, &self.scheduler_stack_size_);
  self.kernel_();
  self.fibres_[thread.index].state = State::finished;
  leave_stack(nullptr, self.scheduler_stack_, self.scheduler_stack_size_);
  FibreContext::change(self.fibres_[thread.index].context, self.scheduler_);
}

void FibreSchedule::resume(Fibre& fibre) {
  ThreadState* outer = exchange_current(&fibre.thread);
  void* saved = nullptr;
  leave_stack(&saved, fibre.stack, stack_bytes);
  FibreContext::change(scheduler_, fibre.context);
  arrive_on_stack(saved, nullptr, nullptr);
  exchange_current(outer);
}

void FibreSchedule::yield(ThreadState& thread, State state) {
  Fibre& fibre = fibres_[thread.index];
  fibre.state = state;
  leave_stack(&fibre.fake_stack, scheduler_stack_, scheduler_stack_size_);
  FibreContext::change(fibre.context, scheduler_);
  arrive_on_stack(fibre.fake_stack, &scheduler_stack_, &scheduler_stack_size_);
}

void FibreSchedule::wait_for_block(ThreadState& thread) {
  yield(thread, State::at_block);
}

void FibreSchedule::wait_for_warp(ThreadState& thread) {
  yield(thread, State::at_warp);
}

// Until every lane waits for the block or has finished.
void FibreSchedule::run_warp(std::size_t warp) {
  Fibre* lanes = fibres_.data() + warp * executor_lanes;
  const auto all = [&](State state) {
    return std::all_of(lanes, lanes + executor_lanes, [=](const Fibre& fibre) { return fibre.state == state; });
  };
  for (;;) {
    for (std::size_t i = 0; i < executor_lanes; ++i) resume(lanes[ordered(i, executor_lanes)]);
    if (all(State::at_block) || all(State::finished)) return;
    if (!all(State::at_warp)) throw std::logic_error("the lanes of a warp do not meet at the same barrier");
  }
}

void FibreSchedule::run(BlockState& block) {
  for (std::size_t i = 0; i < fibres_.size(); ++i) {
    Fibre& fibre = fibres_[i];
    fibre.thread = ThreadState{};
    fibre.thread.index = static_cast<unsigned>(i);
    fibre.thread.block = &block;
    fibre.thread.schedule = static_cast<Schedule*>(this);
    fibre.state = State::ready;
    fibre.context.prepare(fibre.stack, stack_bytes, &FibreSchedule::enter, &fibre.thread);
  }
  constexpr std::size_t warps = executor_threads / executor_lanes;
  for (;;) {
    for (std::size_t w = 0; w < warps; ++w) run_warp(ordered(w, warps));
    const State first = fibres_.front().state;
    for (const Fibre& fibre : fibres_)
      if (fibre.state != first) throw std::logic_error("the warps of a block do not meet at the same barrier");
    if (first == State::finished) return;
  }
}

}  // namespace qkcts::cuda
