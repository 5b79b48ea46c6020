// SPDX-License-Identifier: Apache-2.0
// Which guarded memory a faulting instruction touched. The signal handler of the worker fills a FaultRecord in memory
// that it shares with the host, so that the report survives the death of the worker.
#pragma once

#include <cstddef>
#include <cstdint>

namespace qkcts {

enum class FaultKind : std::uint32_t {
  none = 0,
  before_start,  // guard below a buffer
  behind_end,    // guard above a buffer
  read_only,     // a write to an input or a descriptor
  elsewhere,     // no memory of ours: a plain crash
};

enum class FaultAccess : std::uint32_t { unknown = 0, read, write };

struct FaultRecord {
  FaultKind kind = FaultKind::none;
  FaultAccess access = FaultAccess::unknown;
  std::int64_t offset = 0;  // bytes from the start of the buffer; the address itself if `elsewhere`
  std::int64_t size = 0;    // bytes of the buffer
  char buffer[48] = {};     // its name, NUL-terminated
  std::uint32_t call = 0;   // which call of the order was under way; written before each
};

// Memory that the handler knows: [low, begin) and [end, high) are guards, [begin, end) the mapped pages.
struct WatchedMemory {
  const std::byte* low = nullptr;
  const std::byte* begin = nullptr;
  const std::byte* data = nullptr;  // start of the buffer proper
  std::size_t size = 0;
  const std::byte* end = nullptr;
  const std::byte* high = nullptr;
  const char* name = nullptr;  // lives as long as the memory is watched
};

// A slot of the handler's table while the object lives. Async-signal-safe to look up.
class MemoryWatch {
 public:
  explicit MemoryWatch(const WatchedMemory& memory);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

 private:
  std::size_t slot_;
};

FaultRecord locate_fault(const void* address);

// Writes down which call of an order begins. Nothing without a handler.
void report_call(std::uint32_t call);

// SIGSEGV and SIGBUS fill *record and then end the process by the same signal. The handler runs on a stack of its own,
// so that a stack overflow is reported too. `record` must outlive the process's use of adapters.
void install_fault_handler(FaultRecord* record);

}  // namespace qkcts
