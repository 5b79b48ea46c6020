// SPDX-License-Identifier: Apache-2.0
// A GPU. Calls of one adapter state follow each other in a stream of its own.
#include <algorithm>

#include "adapters/cuda/cuda_check.hpp"
#include "adapters/cuda/device.hpp"
#include "adapters/cuda/device_choice.hpp"
#include "adapters/cuda/launches.hpp"

namespace qkcts::cuda {

namespace {

cudaStream_t stream_of(const Device& device) {
  return static_cast<cudaStream_t>(device.stream());
}

// 80 is sm_80, 120 sm_120.
std::vector<Architecture> architectures(std::initializer_list<int> numbers) {
  std::vector<Architecture> list;
  for (const int number : numbers) list.push_back({number / 10, number % 10});
  return list;
}

// What cuda.cmake had made.
BuiltCode built_code() {
  return {architectures({QKCTS_CUDA_BINARIES}), architectures({QKCTS_CUDA_PTX})};
}

std::vector<Card> cards_of_machine() {
  int count = 0;
  // Whatever goes wrong here (no driver, an old one, a container without the device) is the machine's.
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess)
    throw Unavailable(std::string("not run: no CUDA device (") + cudaGetErrorString(error) + ")");
  std::vector<Card> cards;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    cards.push_back({properties.name, {properties.major, properties.minor}});
  }
  return cards;
}

}  // namespace

std::string Device::missing() {
  try {
    return choose_device(cards_of_machine(), built_code(), -1).refusal;
  } catch (const Unavailable& reason) {
    return reason.what();
  }
}

bool Device::is_host() {
  return false;
}

Device::Device(const Settings& settings) : settings_(settings) {
  const std::vector<Card> cards = cards_of_machine();
  const DeviceChoice choice = choose_device(cards, built_code(), settings.device);
  if (!choice.refusal.empty()) throw Unavailable(choice.refusal);
  settings_.device = choice.device;
  const Card& card = cards[static_cast<std::size_t>(choice.device)];
  name_ = card.name + ", " + name_of(card.architecture);
  check_cuda(cudaSetDevice(choice.device), "cudaSetDevice");
  int bytes = 0;
  check_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, choice.device),
             "cudaDeviceGetAttribute");
  shared_memory_ = bytes;
  load_kernels();
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
  // Of this thread: another state may have chosen another one.
  check_cuda(cudaSetDevice(settings_.device), "cudaSetDevice");
  blocks_.reserve(blocks_.size() + 1);
  count(bytes);
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, std::max<std::size_t>(bytes, 1));
  if (error != cudaSuccess) {
    used_ -= bytes;
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
  if (cudaFree(memory) != cudaSuccess) static_cast<void>(cudaGetLastError());
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
