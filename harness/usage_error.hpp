// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace qkcts {

// An argument that is none: a stage that does not exist, an index that is not one. Exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace qkcts
