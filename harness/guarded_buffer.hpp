// SPDX-License-Identifier: Apache-2.0
// Memory that an adapter is given: inaccessible pages on both sides, and canary bytes in what is left of the mapped
// pages.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "harness/fault_report.hpp"

namespace qkcts {

enum class Placement {
  end_aligned,    // the last byte touches the upper guard: overruns fault at once
  start_aligned,  // the first byte touches the lower guard: underruns fault at once
};

enum class GuardedSide { before_start, behind_end };

class GuardedBuffer {
 public:
  // `alignment` is a power of two up to a page; an end-aligned buffer may leave alignment - 1 canary bytes behind it.
  // Throws std::bad_alloc.
  GuardedBuffer(std::string name, std::size_t size, std::size_t alignment, Placement placement);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  const std::string& name() const { return name_; }

  // From here on a write to the buffer faults.
  void make_read_only();
  // Where canary bytes were overwritten, if any.
  std::optional<GuardedSide> damage() const;

 private:
  std::string name_;
  std::size_t size_;
  std::byte* map_ = nullptr;  // lower guard, pages, upper guard
  std::size_t room_ = 0;      // bytes between the guards
  std::size_t pages_ = 0;     // of these the first ones are accessible
  std::byte* data_ = nullptr;
  std::optional<MemoryWatch> watch_;
};

// Gives back what was kept of buffers that are gone, for those to come.
void drop_spare_buffers();

}  // namespace qkcts
