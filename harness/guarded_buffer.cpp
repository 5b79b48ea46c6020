// SPDX-License-Identifier: Apache-2.0
#include "harness/guarded_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace qkcts {
namespace {

// Wide enough that an index off by a row still lands in it; address space costs nothing.
constexpr std::size_t guard_bytes = std::size_t{1} << 20;
constexpr auto canary = std::byte{0xC5};

bool is_canary(std::span<const std::byte> bytes) {
  // Each byte is the one before it.
  return bytes.empty() || (bytes[0] == canary && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Mapped memory whose buffer is gone, for the next ones: fresh pages have to be zeroed by the system, one fault for
// each. What they held is overwritten, or becomes a canary. Between two buffers nothing of it can be touched.
// What is spare counts as memory of the worker, so that it is kept from one call of a case to the next and no longer:
// whether a case fits must not depend on those before it.
class SparePages {
 public:
  struct Map {
    std::byte* begin = nullptr;  // lower guard, room for pages, upper guard
    std::size_t room = 0;
  };

  ~SparePages() { clear(); }

  void clear() {
    const std::lock_guard lock(mutex_);
    drop();
  }

  // With the first `pages` bytes of its room accessible.
  Map take(std::size_t pages) {
    const std::lock_guard lock(mutex_);
    Map map;
    // The last one that fits: its pages may still be in a cache.
    for (std::size_t i = spare_.size(); i-- > 0;) {
      if (spare_[i].room < pages || spare_[i].room > 2 * pages) continue;
      map = spare_[i];
      spare_.erase(spare_.begin() + static_cast<std::ptrdiff_t>(i));
      kept_ -= map.room + 2 * guard_bytes;
      break;
    }
    if (map.begin == nullptr) map = fresh(pages);
    if (map.begin == nullptr) {  // what is spare may be in the way
      drop();
      map = fresh(pages);
    }
    if (map.begin == nullptr) throw std::bad_alloc();
    if (mprotect(map.begin + guard_bytes, pages, PROT_READ | PROT_WRITE) != 0) {
      munmap(map.begin, map.room + 2 * guard_bytes);
      throw std::bad_alloc();
    }
    return map;
  }

  void give_back(const Map& map) {
    const std::lock_guard lock(mutex_);
    const std::size_t size = map.room + 2 * guard_bytes;
    if (kept_ + size > most_kept || mprotect(map.begin + guard_bytes, map.room, PROT_NONE) != 0) {
      munmap(map.begin, size);
      return;
    }
    kept_ += size;
    spare_.push_back(map);
  }

 private:
  static Map fresh(std::size_t pages) {
    void* const begin =
        mmap(nullptr, pages + 2 * guard_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return begin == MAP_FAILED ? Map{} : Map{static_cast<std::byte*>(begin), pages};
  }
  void drop() {
    for (const Map& map : spare_) munmap(map.begin, map.room + 2 * guard_bytes);
    spare_.clear();
    kept_ = 0;
  }

  static constexpr std::size_t most_kept = std::size_t{256} << 20;  // bytes, guards included
  std::mutex mutex_;                                                // the diagnosis runs kernels in several threads
  std::vector<Map> spare_;
  std::size_t kept_ = 0;
};

SparePages& spare_pages() {
  static SparePages pages;
  return pages;
}

}  // namespace

void drop_spare_buffers() {
  spare_pages().clear();
}

GuardedBuffer::GuardedBuffer(std::string name, std::size_t size, std::size_t alignment, Placement placement)
    : name_(std::move(name)), size_(size) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  pages_ = std::max(page, (size + page - 1) / page * page);
  const SparePages::Map map = spare_pages().take(pages_);
  map_ = map.begin;
  room_ = map.room;
  std::byte* const begin = map_ + guard_bytes;
  const std::size_t lead = placement == Placement::start_aligned ? 0 : (pages_ - size) / alignment * alignment;
  data_ = begin + lead;
  std::fill(begin, data_, canary);
  std::fill(data_ + size_, begin + pages_, canary);
  watch_.emplace(WatchedMemory{map_, begin, data_, size_, begin + pages_, begin + room_ + guard_bytes, name_.c_str()});
}

GuardedBuffer::~GuardedBuffer() {
  watch_.reset();
  spare_pages().give_back({map_, room_});
}

void GuardedBuffer::make_read_only() {
  mprotect(map_ + guard_bytes, pages_, PROT_READ);
}

std::optional<GuardedSide> GuardedBuffer::damage() const {
  const std::byte* const begin = map_ + guard_bytes;
  if (!is_canary({begin, data_})) return GuardedSide::before_start;
  if (!is_canary({data_ + size_, begin + pages_})) return GuardedSide::behind_end;
  return std::nullopt;
}

}  // namespace qkcts
