// SPDX-License-Identifier: Apache-2.0
// What a fuzzer throws bytes at: everything that reads a file of unknown origin.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkcts::fuzz {

struct Target {
  std::string_view name;                           // of the program NAME_fuzz, and of the folder of its seeds
  std::string (*refusal)(std::string_view bytes);  // the text of the InputError; empty: accepted
};

// corpus, contract, plan, profile. A target reads the bytes as the program would read such a file; it ends the process
// if what it read does not survive being written and read again.
const std::vector<Target>& targets();
const Target& target(std::string_view name);

}  // namespace qkcts::fuzz
