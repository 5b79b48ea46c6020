// SPDX-License-Identifier: Apache-2.0
// Numbers for loops over the widest vectors, which are as long as a line of the cache: none of those that such a loop
// reads or writes from the first on lies in two lines, which would take twice as long.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace qkcts {

template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t line{64};

  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>& /*other*/) {}  // NOLINT(google-explicit-constructor): as allocators have it

  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), line)); }
  void deallocate(T* numbers, std::size_t /*n*/) { ::operator delete(numbers, line); }
  template <class U>
  bool operator==(const LineAllocator<U>& /*other*/) const {
    return true;
  }
};

using LineNumbers = std::vector<double, LineAllocator<double>>;

}  // namespace qkcts
