// SPDX-License-Identifier: Apache-2.0
#include "harness/guarded_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace qkcts {
namespace {

// Wide enough that an index off by a row still lands in it; address space costs nothing.
constexpr std::size_t guard_bytes = std::size_t{1} << 20;
constexpr auto canary = std::byte{0xC5};

}  // namespace

GuardedBuffer::GuardedBuffer(std::string name, std::size_t size, std::size_t alignment, Placement placement)
    : name_(std::move(name)), size_(size) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  pages_ = std::max(page, (size + page - 1) / page * page);
  void* const map =
      mmap(nullptr, pages_ + 2 * guard_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  map_ = static_cast<std::byte*>(map);
  std::byte* const begin = map_ + guard_bytes;
  if (mprotect(begin, pages_, PROT_READ | PROT_WRITE) != 0) {
    munmap(map, pages_ + 2 * guard_bytes);
    throw std::bad_alloc();
  }
  const std::size_t lead = placement == Placement::start_aligned ? 0 : (pages_ - size) / alignment * alignment;
  data_ = begin + lead;
  std::fill(begin, data_, canary);
  std::fill(data_ + size_, begin + pages_, canary);
  watch_.emplace(WatchedMemory{map_, begin, data_, size_, begin + pages_, begin + pages_ + guard_bytes, name_.c_str()});
}

GuardedBuffer::~GuardedBuffer() {
  watch_.reset();
  munmap(map_, pages_ + 2 * guard_bytes);
}

void GuardedBuffer::make_read_only() {
  mprotect(map_ + guard_bytes, pages_, PROT_READ);
}

std::optional<GuardedSide> GuardedBuffer::damage() const {
  const std::byte* const begin = map_ + guard_bytes;
  const auto intact = [](std::byte value) { return value == canary; };
  const std::byte* const data = data_;
  if (!std::all_of(begin, data, intact)) return GuardedSide::before_start;
  if (!std::all_of(data + size_, begin + pages_, intact)) return GuardedSide::behind_end;
  return std::nullopt;
}

}  // namespace qkcts
