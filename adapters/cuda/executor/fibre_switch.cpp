// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/executor/fibre_switch.hpp"

#include <cstdint>

#if defined(__x86_64__)

// System V ABI: a function keeps rbx, rbp and r12 to r15. (MXCSR and the x87 control word are never changed here.)
// A new stack holds entry and argument where these registers are taken from.
asm(R"(
.text
.hidden qkcts_cuda_change_stack
.globl qkcts_cuda_change_stack
.type qkcts_cuda_change_stack, @function
qkcts_cuda_change_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size qkcts_cuda_change_stack, .-qkcts_cuda_change_stack
.hidden qkcts_cuda_begin_stack
.globl qkcts_cuda_begin_stack
.type qkcts_cuda_begin_stack, @function
qkcts_cuda_begin_stack:
  movq %r12, %rdi
  call *%r13
  ud2
.size qkcts_cuda_begin_stack, .-qkcts_cuda_begin_stack
)");

extern "C" void qkcts_cuda_change_stack(void** save, void* load);
extern "C" void qkcts_cuda_begin_stack();

namespace qkcts::cuda {

void FibreContext::prepare(std::byte* stack, std::size_t bytes, void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
  std::byte* top = stack + bytes;
  top -= reinterpret_cast<std::uintptr_t>(top) % 16;
  auto* slots = reinterpret_cast<std::uintptr_t*>(top);
  // As begin_stack is entered by `ret`, the stack pointer is a multiple of 16, which is what its call needs.
  *--slots = 0;
  *--slots = 0;
  *--slots = reinterpret_cast<std::uintptr_t>(&qkcts_cuda_begin_stack);
  *--slots = 0;                                           // rbp
  *--slots = 0;                                           // rbx
  *--slots = reinterpret_cast<std::uintptr_t>(argument);  // r12
  *--slots = reinterpret_cast<std::uintptr_t>(entry);     // r13
  *--slots = 0;                                           // r14
  *--slots = 0;                                           // r15
  stack_pointer_ = slots;
}

void FibreContext::change(FibreContext& from, FibreContext& to) {
  qkcts_cuda_change_stack(&from.stack_pointer_, to.stack_pointer_);
}

}  // namespace qkcts::cuda

#else

namespace qkcts::cuda {

// makecontext passes ints only: the address comes in two halves.
void FibreContext::begin(unsigned low, unsigned high) {
  const auto* self = reinterpret_cast<FibreContext*>(static_cast<std::uintptr_t>(high) << 32 | low);
  self->entry_(self->argument_);
}

void FibreContext::prepare(std::byte* stack, std::size_t bytes, void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack;
  context_.uc_stack.ss_size = bytes;
  context_.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&context_, reinterpret_cast<void (*)()>(&FibreContext::begin), 2, static_cast<unsigned>(address),
              static_cast<unsigned>(address >> 32));
}

void FibreContext::change(FibreContext& from, FibreContext& to) {
  swapcontext(&from.context_, &to.context_);
}

}  // namespace qkcts::cuda

#endif
