// SPDX-License-Identifier: Apache-2.0
// Work that may crash, hang or eat memory, done in a child process that may die of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace qkcts {

struct ChildLimits {
  std::uint64_t memory_bytes;  // address space; not applied under sanitizers, which reserve terabytes of it
  std::uint64_t cpu_seconds;
  std::uint64_t wall_seconds;
};

enum class ChildEnd { returned, crashed, out_of_time };

struct ChildOutcome {
  ChildEnd end;
  std::string message;  // what the work returned, cut to 4,000 bytes
};

// Whether `memory_bytes` is applied in this build.
bool child_memory_is_limited();

// Runs `work` in a fork of this process and returns what it returned. An exception that escapes it is a crash. The
// child prints nothing. Call it while the process has one thread.
ChildOutcome run_in_limited_child(const std::function<std::string()>& work, const ChildLimits& limits);

}  // namespace qkcts
