// SPDX-License-Identifier: Apache-2.0
// The words of platform.hpp as nvcc reads them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "adapters/cuda/barrier.hpp"

// One block per multiprocessor is enough to go on with: registers are not to be saved by spilling them.
#define QKCTS_KERNEL __global__ void __launch_bounds__(128, 1)
#define QKCTS_DEVICE __device__ __forceinline__
// Read where it lies, also by reference; without it a copy would be made for each thread.
#define QKCTS_PROBLEM const __grid_constant__ Problem
#define QKCTS_UNROLL _Pragma("unroll")
#define QKCTS_ROLLED _Pragma("unroll 1")  // few turns, and registers are dearer

namespace qkcts::cuda {

QKCTS_DEVICE int thread_index() {
  return static_cast<int>(threadIdx.x);
}
QKCTS_DEVICE std::int64_t block_x() {
  return blockIdx.x;
}
QKCTS_DEVICE std::int64_t block_y() {
  return blockIdx.y;
}
QKCTS_DEVICE std::int64_t block_z() {
  return blockIdx.z;
}

// Dynamic shared memory, aligned for whatever lies in it.
QKCTS_DEVICE void* shared_memory() {
  extern __shared__ uint4 dynamic_memory[];
  return dynamic_memory;
}

QKCTS_DEVICE void sync_block(Barrier /*name*/) {
  __syncthreads();
}

template <class Value>
QKCTS_DEVICE Value shuffle_xor(Value value, int lanes) {
  return __shfl_xor_sync(0xffffffffu, value, lanes);
}

QKCTS_DEVICE unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// 16 bytes from global to shared memory behind the thread's back; zeros where the source is not valid.
QKCTS_DEVICE void copy_async(void* to, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
               : "memory");
}
QKCTS_DEVICE void commit_copies() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
// Until at most `pending` of the thread's groups are under way.
template <int pending>
QKCTS_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(pending) : "memory");
}

// 8 x 8 matrices of 16-bit numbers: lane i gives the row i % 8 of matrix i / 8 and gets numbers 2 (i % 4) and the next
// of row i / 4 of each.
QKCTS_DEVICE void load_matrices(std::uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}
QKCTS_DEVICE void load_matrices(std::uint32_t (&to)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];\n"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(shared_address(row))
               : "memory");
}
QKCTS_DEVICE void load_transposed(std::uint32_t (&to)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];\n"
               : "=r"(to[0]), "=r"(to[1])
               : "r"(shared_address(row))
               : "memory");
}

// c += a b, 16 x 8 x 16, on the matrix unit.
QKCTS_DEVICE void multiply_bfloat16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
QKCTS_DEVICE void multiply_binary16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace qkcts::cuda
