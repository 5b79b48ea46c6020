// SPDX-License-Identifier: Apache-2.0
// From one stack to another without a system call (swapcontext saves the signal mask, which costs more than all the
// arithmetic between two barriers).
#pragma once

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace qkcts::cuda {

class FibreContext {
 public:
  // Begins with entry(argument) on the stack when it is first switched to; entry must not return.
  void prepare(std::byte* stack, std::size_t bytes, void (*entry)(void*), void* argument);
  // Leaves the caller in `from`, goes on with `to`.
  static void change(FibreContext& from, FibreContext& to);

 private:
#if defined(__x86_64__)
  void* stack_pointer_ = nullptr;
#else
  static void begin(unsigned low, unsigned high);
  ucontext_t context_{};
#endif
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
};

}  // namespace qkcts::cuda
