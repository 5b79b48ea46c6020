// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace qkcts {

// An adapter that cannot be run at all: no such file, no symbol, another ABI, a faulty describe(). Exit code 4.
class AdapterError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace qkcts
