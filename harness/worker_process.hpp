// SPDX-License-Identifier: Apache-2.0
// The host's side of a worker: start it, talk to it with a deadline, and say how it died if it did.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <sys/types.h>

#include "harness/fault_report.hpp"
#include "harness/verdict.hpp"

namespace qkcts {

enum class MemoryOf : std::uint8_t { worker, worker_and_descendants };

struct WorkerLimits {
  std::chrono::milliseconds timeout{60000};  // of one exchange
  std::size_t resident_bytes = 0;            // 0: four fifths of the machine's memory
  int beside = 1;                            // workers at a time, which share those four fifths
  MemoryOf memory_of = MemoryOf::worker;     // whose resident memory and processor time are added up
  std::optional<std::chrono::steady_clock::time_point> stop_at;  // of the whole run: what runs then is not_run
  std::chrono::milliseconds processor_time{0};                   // of one exchange, all threads together; 0: no limit
  std::size_t address_space_bytes = 0;  // 0: no limit. Devices and sanitizers reserve more than they use
  int respawns = 1000;                  // workers after the first one; then nothing more is run
};

// The bytes that a worker may hold resident: what was asked for, or its share of the default.
std::size_t resident_limit(const WorkerLimits& limits);

inline bool is_over(const std::optional<std::chrono::steady_clock::time_point>& end) {
  return end && std::chrono::steady_clock::now() >= *end;
}

struct WorkerDeath {
  Verdict verdict = Verdict::error_crash;  // not_run if the run was interrupted
  std::string detail;                      // one line
};

class WorkerProcess {
 public:
  // Starts this program again as a worker. Throws std::system_error if that fails.
  explicit WorkerProcess(const WorkerLimits& limits);
  // Kills the worker's process group and everything that came out of it.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Sends one message and waits for one. After a death the object is spent.
  std::variant<std::vector<std::byte>, WorkerDeath> exchange(std::span<const std::byte> message);
  // Sends a last message and waits for the end of the worker, no longer than the timeout.
  void part(std::span<const std::byte> message);

  // The last 16 KiB that the worker wrote to stdout and stderr since the last call.
  std::string take_output();
  // Of the order that was sent last: which of its calls began last.
  std::uint32_t call_under_way() const { return fault_->call; }

 private:
  enum class Readiness { message, death, timeout, processor_time, memory, hang_up, interrupted };
  Readiness pump(std::span<const std::byte> message);
  void send_some(std::span<const std::byte>& rest);
  bool receive_some();
  void drain_output();
  bool answer_complete() const;
  WorkerDeath death_by_itself();
  std::string shared_limit_text() const;
  std::set<pid_t> counted_processes() const;
  std::size_t resident_bytes() const;
  std::chrono::milliseconds processor_time() const;
  void end();

  WorkerLimits limits_;
  pid_t pid_ = -1;
  int conversation_ = -1;
  int output_ = -1;
  FaultRecord* fault_ = nullptr;
  std::set<pid_t> older_children_;
  std::vector<std::byte> received_;
  std::string output_tail_;
};

}  // namespace qkcts
