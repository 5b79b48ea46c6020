// SPDX-License-Identifier: Apache-2.0
// What may be chosen with `qkcts run cuda?key=value,key=value` (docs/cuda.md).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "adapters/cuda/executor/block_executor.hpp"

namespace qkcts::cuda {

enum class Path { automatic, plain, tensor };

struct Settings {
  Path path = Path::automatic;
  std::int64_t split_keys = -1;  // keys per part of a row; 0: never split, -1: as the lengths say
  int device = -1;               // of the GPU only; -1: the first that this build has code for
  std::int64_t memory = 0;       // bytes of device memory that may be used; 0: all there is
  ExecutorOptions executor;      // of the host only
};

class InvalidOption : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// `host`: options of the executor are known too. Throws InvalidOption.
Settings settings_of(const std::string& options, bool host);

}  // namespace qkcts::cuda
