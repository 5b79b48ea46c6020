// SPDX-License-Identifier: Apache-2.0
// The host executor as a device: memory is memory, and nothing runs beside anything else.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "adapters/cuda/device.hpp"

namespace qkcts::cuda {

namespace {

const char* threads_name(Threads threads) {
  switch (threads) {
    case Threads::fibres:
      return "fibres";
    case Threads::fibres_backwards:
      return "fibres backwards";
    default:
      return "std::thread";
  }
}

}  // namespace

std::string Device::missing() {
  return {};
}

bool Device::is_host() {
  return true;
}

Device::Device(const Settings& settings) : settings_(settings) {
  const ExecutorOptions& executor = settings.executor;
  name_ = std::string("host executor, no GPU (") + threads_name(executor.threads) +
          ", matrix unit K = " + std::to_string(executor.unit_products) +
          ", F = " + std::to_string(executor.unit_fraction) + ")";
  if (executor.unit_zeros_align) name_ += ", zero products align";
  if (executor.unit_subnormals_as_stored) name_ += ", subnormals as stored";
  if (executor.dropped != Barrier::none) name_ += std::string(", without barrier ") + barrier_name(executor.dropped);
  shared_memory_ = std::int64_t{163} * 1024;  // what a block of an A100 may have
}

Device::~Device() = default;

void* Device::allocate(std::size_t bytes) {
  count(bytes);
  void* memory = std::malloc(std::max<std::size_t>(bytes, 1));
  if (memory == nullptr) {
    used_ -= bytes;
    throw OutOfMemory("out of memory: " + std::to_string(bytes) + " bytes");
  }
  // What no kernel wrote is a NaN in every format, as in the executor's shared memory.
  std::memset(memory, 0x7f, bytes);
  blocks_.emplace_back(memory, bytes);
  return memory;
}

void Device::release(void* memory) noexcept {
  const auto block = std::find_if(blocks_.begin(), blocks_.end(), [=](const auto& b) { return b.first == memory; });
  if (block == blocks_.end()) return;
  used_ -= block->second;
  blocks_.erase(block);
  std::free(memory);
}

void Device::upload(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

void Device::download(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

void Device::finish() {}

}  // namespace qkcts::cuda
