// SPDX-License-Identifier: Apache-2.0
// Some binary64 numbers that go through the same operations side by side, each rounded as if it were alone: the vector
// types of g++ and clang++. Inner loops of budgets are written once, for any such type, and compiled for pairs, which
// every target has registers for, and for four or eight at a time where the machine has AVX2 or AVX-512; loops without
// such types are left to the compiler (in_widest_lanes). Bits do not depend on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#define QKCTS_WIDE_LANES 1
// What is compiled so may only be called where lane_count() says so. No contraction: see the compiler options.
#define QKCTS_WIDE __attribute__((target("avx2,fma")))
#define QKCTS_WIDEST __attribute__((target("avx2,fma,avx512f,avx512dq,avx512vl")))
#else
#define QKCTS_WIDE_LANES 0
#endif

namespace qkcts {

template <std::size_t N>
struct LanesOf {
  using Numbers __attribute__((vector_size(8 * N))) = double;
  using Bits __attribute__((vector_size(8 * N))) = std::uint64_t;

  // By reference, and always inlined: as arguments and results such types depend on the instruction set.
  [[gnu::always_inline]] static void read(const double* from, Numbers& x) { std::memcpy(&x, from, sizeof x); }
  [[gnu::always_inline]] static void write(const Numbers& x, double* to) { std::memcpy(to, &x, sizeof x); }
  [[gnu::always_inline]] static void take_magnitudes(Numbers& x) {
    x = reinterpret_cast<Numbers>(reinterpret_cast<Bits>(x) & 0x7fffffffffffffffu);
  }
};

// 2, 4 or 8: of this machine.
inline std::size_t lane_count() {
#if QKCTS_WIDE_LANES
  static const std::size_t count = [] {
    if (__builtin_cpu_supports("avx2") == 0 || __builtin_cpu_supports("fma") == 0) return std::size_t{2};
    const bool widest = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                        __builtin_cpu_supports("avx512vl") != 0;
    return widest ? std::size_t{8} : std::size_t{4};
  }();
  return count;
#else
  return 2;
#endif
}

// Marks a lambda whose loops are compiled anew wherever it is called.
#define QKCTS_STRAIGHT __attribute__((always_inline))

#if QKCTS_WIDE_LANES
template <class Loop>
QKCTS_WIDE void run_wide(Loop loop) {
  loop();
}
template <class Loop>
QKCTS_WIDEST void run_widest(Loop loop) {
  loop();
}
#endif

// Runs loops over arrays that the compiler turns into vector instructions for the widest lanes of this machine: no
// branch, no sum from one element to the next. The arrays are `__restrict` parameters of an inlined function, which the
// compiler trusts not to overlap; `loop` is QKCTS_STRAIGHT, captures by value and calls it.
template <class Loop>
void in_widest_lanes(Loop loop) {
#if QKCTS_WIDE_LANES
  if (lane_count() == 8) return run_widest(loop);
  if (lane_count() == 4) return run_wide(loop);
#endif
  loop();
}

}  // namespace qkcts
