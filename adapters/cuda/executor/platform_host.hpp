// SPDX-License-Identifier: Apache-2.0
// The words of platform.hpp on the host: a CUDA thread is a fibre or a std::thread of the block executor.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "adapters/cuda/barrier.hpp"
#include "adapters/cuda/executor/block_executor.hpp"
#include "adapters/cuda/executor/matrix_unit.hpp"

#define QKCTS_KERNEL void
#define QKCTS_DEVICE inline
#define QKCTS_PROBLEM const Problem&
#define QKCTS_UNROLL
#define QKCTS_ROLLED

namespace qkcts::cuda {

inline int thread_index() {
  return static_cast<int>(this_thread().index);
}
inline std::int64_t block_x() {
  return this_thread().block->x;
}
inline std::int64_t block_y() {
  return this_thread().block->y;
}
inline std::int64_t block_z() {
  return this_thread().block->z;
}
inline void* shared_memory() {
  return this_thread().block->shared;
}

inline void sync_block(Barrier name) {
  wait_for_block(name);
}

template <class Value>
Value shuffle_xor(Value value, int lanes) {
  static_assert(sizeof(Value) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  const WarpSlots slots = exchange(&bits, 1);
  std::memcpy(&value, slots.of(lane_index() ^ static_cast<unsigned>(lanes)), sizeof value);
  return value;
}

// The copy is made when the thread waits for it, not before: data that nobody waited for is the poison that was there.
inline void copy_async(void* to, const void* from, bool valid) {
  this_thread().copies.begin(to, from, valid);
}
inline void commit_copies() {
  this_thread().copies.commit();
}
template <int pending>
void wait_copies() {
  this_thread().copies.wait(pending);
}

template <int count>
void load_rows(std::uint32_t (&to)[count], const void* row, bool transposed) {
  std::uint64_t address = 0;
  static_assert(sizeof row == sizeof address);
  std::memcpy(&address, &row, sizeof row);
  const WarpSlots slots = exchange(&address, 1);
  const unsigned lane = lane_index();
  for (unsigned m = 0; m < count; ++m) {
    std::uint16_t pair[2];
    for (unsigned e = 0; e < 2; ++e) {
      const unsigned r = transposed ? 2 * (lane % 4) + e : lane / 4;
      const unsigned c = transposed ? lane / 4 : 2 * (lane % 4) + e;
      const std::uint16_t* from = nullptr;
      std::memcpy(&from, slots.of(8 * m + r), sizeof from);
      pair[e] = from[c];
    }
    to[m] = std::uint32_t{pair[1]} << 16 | pair[0];
  }
}

inline void load_matrices(std::uint32_t (&to)[4], const void* row) {
  load_rows(to, row, false);
}
inline void load_matrices(std::uint32_t (&to)[2], const void* row) {
  load_rows(to, row, false);
}
inline void load_transposed(std::uint32_t (&to)[2], const void* row) {
  load_rows(to, row, true);
}

inline void multiply_bfloat16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  multiply_on_unit(NarrowFormat::bfloat16, c, a, b);
}
inline void multiply_binary16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  multiply_on_unit(NarrowFormat::binary16, c, a, b);
}

}  // namespace qkcts::cuda
