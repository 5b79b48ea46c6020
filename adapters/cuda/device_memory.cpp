// SPDX-License-Identifier: Apache-2.0
// What both kinds of device do alike: keeping to the memory that they were given.
#include "adapters/cuda/device.hpp"

namespace qkcts::cuda {

void Device::count(std::size_t bytes) {
  const auto limit = static_cast<std::size_t>(settings_.memory);
  if (limit != 0 && bytes > limit - used_)
    throw OutOfMemory("out of device memory: " + std::to_string(bytes) + " bytes more than the " +
                      std::to_string(used_) + " in use pass the " + std::to_string(limit) + " of the option memory");
  used_ += bytes;
}

}  // namespace qkcts::cuda
