// SPDX-License-Identifier: Apache-2.0
// `generate --separate A B`: a search for inputs that tell two contracts apart, and a corpus of the best.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace qkcts::cli {

struct SeparateArguments {
  std::vector<std::string> contracts;  // two, or none: no search
  std::string stage;
  std::uint32_t steps = 200;
  double seconds = 0;  // 0: no limit
  // Of `generate`; one of each at most.
  std::vector<std::string> families, formats, shapes, profiles;
  std::uint64_t seed = 0;
  std::string output;
};

void add_separate_options(CLI::App& generate_app, SeparateArguments& arguments);
int separate(const SeparateArguments& arguments);

}  // namespace qkcts::cli
