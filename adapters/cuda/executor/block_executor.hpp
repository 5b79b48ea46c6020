// SPDX-License-Identifier: Apache-2.0
// Runs the blocks of a grid one after the other, the threads of a block as fibres (fast, and in an order that can be
// turned round) or as std::threads (what ThreadSanitizer understands). Shared memory is poisoned before every block.
// Grids of several OS threads do not know of each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "adapters/cuda/barrier.hpp"

namespace qkcts::cuda {

enum class Threads { fibres, fibres_backwards, os_threads };

struct ExecutorOptions {
  Threads threads = Threads::fibres;
  Barrier dropped = Barrier::none;  // this one lets everybody through: a planted fault
  int unit_products = 8;            // K and F of the matrix unit: an A100
  int unit_fraction = 24;
  bool unit_zeros_align = false;           // see UnitModel
  bool unit_subnormals_as_stored = false;  // likewise
};

struct Grid {
  std::int64_t x = 1, y = 1, z = 1;
};

// Sixteen bytes at a time, kept until the thread waits for their group. The destination is poison from the beginning
// of a copy on: on a GPU it may arrive at any time in between.
class PendingCopies {
 public:
  void begin(void* to, const void* from, bool valid);
  void commit();
  void wait(std::size_t pending);

 private:
  struct Copy {
    void* to;
    const void* from;
    bool valid;
  };
  std::vector<std::vector<Copy>> groups_;
  std::vector<Copy> open_;
};

constexpr std::size_t executor_threads = 128, executor_lanes = 32, words_of_slot = 8;

// What the lanes of a warp show each other: two sets in turn, so that one barrier is enough for an exchange.
struct WarpState {
  std::array<std::array<std::array<std::uint64_t, words_of_slot>, executor_lanes>, 2> slots{};
};

struct BlockState {
  std::int64_t x = 0, y = 0, z = 0;
  void* shared = nullptr;
  std::array<WarpState, executor_threads / executor_lanes> warps;
  ExecutorOptions options;
};

struct ThreadState {
  unsigned index = 0;
  unsigned turn = 0;  // of exchanges: which set of slots is next
  BlockState* block = nullptr;
  PendingCopies copies;
  void* schedule = nullptr;  // of the kind of threads that is used
};

class WarpSlots {
 public:
  explicit WarpSlots(const std::array<std::array<std::uint64_t, words_of_slot>, executor_lanes>& set) : set_(set) {}
  const std::uint64_t* of(unsigned lane) const { return set_[lane].data(); }

 private:
  const std::array<std::array<std::uint64_t, words_of_slot>, executor_lanes>& set_;
};

#ifndef __CUDACC__  // which does not know the attribute, and needs nothing of this
// Of the caller, inside of a kernel. Asked for at every word of a kernel, so without a call: a library that is loaded
// late has room for one pointer in the memory of threads that was there before.
extern constinit thread_local ThreadState* current_thread __attribute__((tls_model("initial-exec")));
inline ThreadState& this_thread() {
  return *current_thread;
}
inline unsigned lane_index() {
  return this_thread().index % executor_lanes;
}
#endif

void wait_for_block(Barrier name);
// Shows `count` words to the other lanes, and what all of them show until the exchange after the next.
WarpSlots exchange(const std::uint64_t* words, std::size_t count);

// Throws std::logic_error where the threads of a block do not meet at the same barrier, std::bad_alloc, and
// std::system_error where no more threads can be started.
void run_grid(const Grid& grid, std::size_t shared_bytes, const ExecutorOptions& options,
              const std::function<void()>& kernel);

}  // namespace qkcts::cuda
