// SPDX-License-Identifier: Apache-2.0
// Device memory and the stream of one adapter state. device_cuda.cpp is a GPU, device_host.cpp the host executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/cuda/settings.hpp"

namespace qkcts::cuda {

// A call of the CUDA runtime failed; the text says which and why.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class OutOfMemory : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// There is nothing to run on, although the library is fine; the text begins with "not run".
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Device {
 public:
  // Why there is nothing to run on; empty if there is.
  static std::string missing();
  static bool is_host();

  // Throws Unavailable, InvalidOption or DeviceError.
  explicit Device(const Settings& settings);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  void* allocate(std::size_t bytes);
  void release(void* memory) noexcept;
  void upload(void* to, const void* from, std::size_t bytes);
  void download(void* to, const void* from, std::size_t bytes);
  void finish();  // waits for all that was started; what failed on the way is thrown here

  // Bytes of shared memory that a block may have.
  std::int64_t shared_memory() const { return shared_memory_; }
  std::string name() const { return name_; }  // "host executor, ..." or that of the card
  const Settings& settings() const { return settings_; }
  void* stream() const { return stream_; }

 private:
  void count(std::size_t bytes);

  Settings settings_;
  std::string name_;
  void* stream_ = nullptr;
  std::int64_t shared_memory_ = 0;
  std::size_t used_ = 0;
  std::vector<std::pair<void*, std::size_t>> blocks_;
};

// Memory of one call, released together.
class DeviceArena {
 public:
  explicit DeviceArena(Device& device) : device_(device) {}
  ~DeviceArena() {
    for (void* block : blocks_) device_.release(block);
  }
  DeviceArena(const DeviceArena&) = delete;
  DeviceArena& operator=(const DeviceArena&) = delete;

  void* take(std::size_t bytes) {
    blocks_.reserve(blocks_.size() + 1);
    blocks_.push_back(device_.allocate(bytes));
    return blocks_.back();
  }
  void* take(const std::vector<std::byte>& content) {
    void* memory = take(content.size());
    device_.upload(memory, content.data(), content.size());
    return memory;
  }
  Device& device() const { return device_; }

 private:
  Device& device_;
  std::vector<void*> blocks_;
};

}  // namespace qkcts::cuda
