// SPDX-License-Identifier: Apache-2.0
// A zero-initialised array of floats on a cache line boundary.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace qkcts::avx2 {

class AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(std::size_t count) : size_(count) {
    constexpr std::size_t line = 64;
    const std::size_t bytes = (count * sizeof(float) + line) / line * line;  // at least one line
    storage_.reset(static_cast<float*>(std::aligned_alloc(line, bytes)));
    if (storage_ == nullptr) throw std::bad_alloc();
    std::memset(storage_.get(), 0, bytes);
  }

  float* data() { return storage_.get(); }
  const float* data() const { return storage_.get(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  std::unique_ptr<float, Free> storage_;
  std::size_t size_ = 0;
};

}  // namespace qkcts::avx2
