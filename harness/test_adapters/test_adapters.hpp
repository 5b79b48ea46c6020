// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace qkcts {

// Path of a library of this folder; the folder is given by the build.
inline std::string test_adapter(const std::string& name) {
  return std::string(QKCTS_TEST_ADAPTERS) + "/lib" + name + ".so";
}

}  // namespace qkcts
