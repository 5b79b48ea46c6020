// SPDX-License-Identifier: Apache-2.0
// The released suites: vectors/golden/manifest.txt, compiled in.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace qkcts {

struct ReleasedSuite {
  std::string name;
  std::size_t cases = 0;
  std::string digest;  // logical, as docs/vector_format.md defines it
};

const std::vector<ReleasedSuite>& released_suites();
std::optional<ReleasedSuite> released_suite(const std::string& name);

}  // namespace qkcts
