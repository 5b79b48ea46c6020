// SPDX-License-Identifier: Apache-2.0
// JSON documents of the source tree (contracts, profiles, schemas, plans), compiled into the program.
#pragma once

#include <string_view>

namespace qkcts {

struct Document {
  std::string_view name;  // file name without folder and extension
  std::string_view text;
};

}  // namespace qkcts
