// SPDX-License-Identifier: Apache-2.0
// A GPU. Calls of one adapter state follow each other in a stream of its own.
#include <algorithm>

#include "adapters/cuda/cuda_check.hpp"
#include "adapters/cuda/device.hpp"

namespace qkcts::cuda {

namespace {

constexpr int oldest_major = 8;  // sm_80: bfloat16 and cp.async

cudaStream_t stream_of(const Device& device) {
  return static_cast<cudaStream_t>(device.stream());
}

}  // namespace

std::string Device::missing() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return std::string("not run: no CUDA device (") + cudaGetErrorString(error) + ")";
  return count == 0 ? "not run: no CUDA device" : "";
}

bool Device::is_host() {
  return false;
}

Device::Device(const Settings& settings) : settings_(settings) {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (settings.device >= count)
    throw InvalidOption("device=" + std::to_string(settings.device) + ": there are " + std::to_string(count) +
                        " devices");
  check_cuda(cudaSetDevice(settings.device), "cudaSetDevice");
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, settings.device), "cudaGetDeviceProperties");
  name_ = std::string(properties.name) + ", sm_" + std::to_string(properties.major) + std::to_string(properties.minor);
  if (properties.major < oldest_major) throw DeviceError(name_ + ": sm_80 or later is needed");
  shared_memory_ = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_ = stream;
}

Device::~Device() {
  // Nobody is left to hear of an error.
  for (const auto& block : blocks_) static_cast<void>(cudaFree(block.first));
  if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_of(*this)));
}

void* Device::allocate(std::size_t bytes) {
  check_cuda(cudaSetDevice(settings_.device), "cudaSetDevice");
  count(bytes);
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, std::max<std::size_t>(bytes, 1));
  if (error != cudaSuccess) {
    used_ -= bytes;
    // Not an error of what comes after.
    if (error == cudaErrorMemoryAllocation) static_cast<void>(cudaGetLastError());
    check_cuda(error, "cudaMalloc of " + std::to_string(bytes) + " bytes, " + std::to_string(used_) + " in use");
  }
  blocks_.emplace_back(memory, bytes);
  return memory;
}

void Device::release(void* memory) noexcept {
  const auto block = std::find_if(blocks_.begin(), blocks_.end(), [=](const auto& b) { return b.first == memory; });
  if (block == blocks_.end()) return;
  used_ -= block->second;
  blocks_.erase(block);
  // After an error of a kernel this fails with the same error, which was reported by finish().
  static_cast<void>(cudaFree(memory));
}

void Device::upload(void* to, const void* from, std::size_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_of(*this)),
             "cudaMemcpyAsync to the device");
  // The source is the caller's, and pageable: it may go as soon as this returns.
  check_cuda(cudaStreamSynchronize(stream_of(*this)), "copy to the device");
}

void Device::download(void* to, const void* from, std::size_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_of(*this)), "cudaMemcpyAsync to the host");
  check_cuda(cudaStreamSynchronize(stream_of(*this)), "copy to the host");
}

void Device::finish() {
  check_cuda(cudaStreamSynchronize(stream_of(*this)), "kernels");
}

}  // namespace qkcts::cuda
