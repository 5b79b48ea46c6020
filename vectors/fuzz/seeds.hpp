// SPDX-License-Identifier: Apache-2.0
// Where fuzzing starts: good files of every kind, and those that once were trouble.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkcts::fuzz {

struct Seed {
  std::string name;  // of its file
  std::string bytes;
};

// Shipped contracts, plans and profiles; small corpora of every format version. Sorted by name.
std::vector<Seed> good_seeds(std::string_view target);

}  // namespace qkcts::fuzz
