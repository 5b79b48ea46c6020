// SPDX-License-Identifier: Apache-2.0
// The first look at a file of unknown origin happens in a child process that may die.
#pragma once

#include <cstdint>
#include <string>

namespace qkcts {

struct UntrustedLimits {
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;  // address space; not applied under sanitizers that reserve it
  std::uint64_t cpu_seconds = 0;                        // 0: by the size of the file
  std::uint64_t wall_seconds = 0;                       // 0: by the size of the file
};

// Reads the whole corpus in a child with limits on memory and time. Throws InputError with the child's own message, or
// that the file crashed the reader or ran past a limit. Call it while the process has one thread.
void check_untrusted_corpus(const std::string& path, const UntrustedLimits& limits = {});

}  // namespace qkcts
