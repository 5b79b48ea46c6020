// SPDX-License-Identifier: Apache-2.0
#include "harness/fault_report.hpp"

#include <csignal>
#include <cstdlib>
#include <cstring>

#include <array>
#include <atomic>
#include <stdexcept>

#include <ucontext.h>

namespace qkcts {
namespace {

// Fixed storage: the handler may neither allocate nor lock.
constexpr std::size_t slots = 128;
std::array<WatchedMemory, slots> watched;
std::array<std::atomic<bool>, slots> in_use;
std::array<std::byte, 65536> handler_stack;
FaultRecord* shared_record = nullptr;

FaultAccess access_of(const void* context) {
#if defined(__x86_64__)
  const auto error_code = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
  return (error_code & 2) != 0 ? FaultAccess::write : FaultAccess::read;
#else
  (void)context;
  return FaultAccess::unknown;
#endif
}

extern "C" void on_fault(int signal, siginfo_t* info, void* context) {
  FaultRecord record = locate_fault(info->si_addr);
  record.access = access_of(context);
  record.call = shared_record->call;
  *shared_record = record;
  // Back to the default and return: the instruction faults again and the process dies by this very signal. A signal
  // that was sent and not caused (kill -SEGV) would return for good, so it is raised once more.
  std::signal(signal, SIG_DFL);
  if (info->si_code <= 0) std::raise(signal);
}

}  // namespace

MemoryWatch::MemoryWatch(const WatchedMemory& memory) : slot_(slots) {
  for (std::size_t i = 0; i < slots && slot_ == slots; ++i) {
    if (in_use[i].load()) continue;
    watched[i] = memory;
    in_use[i].store(true);
    slot_ = i;
  }
  if (slot_ == slots) throw std::length_error("more guarded buffers than the fault handler can watch");
}

MemoryWatch::~MemoryWatch() {
  in_use[slot_].store(false);
}

FaultRecord locate_fault(const void* address) {
  const auto* const at = static_cast<const std::byte*>(address);
  FaultRecord record;
  record.kind = FaultKind::elsewhere;
  record.offset = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(address));
  for (std::size_t i = 0; i < slots; ++i) {
    if (!in_use[i].load()) continue;
    const WatchedMemory& memory = watched[i];
    if (at < memory.low || at >= memory.high) continue;
    record.kind = at < memory.begin  ? FaultKind::before_start
                  : at >= memory.end ? FaultKind::behind_end
                                     : FaultKind::read_only;
    record.offset = at - memory.data;
    record.size = static_cast<std::int64_t>(memory.size);
    std::strncpy(record.buffer, memory.name, sizeof record.buffer - 1);
    return record;
  }
  return record;
}

void report_call(std::uint32_t call) {
  if (shared_record != nullptr) shared_record->call = call;
}

void install_fault_handler(FaultRecord* record) {
  shared_record = record;
  stack_t stack{};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace qkcts
