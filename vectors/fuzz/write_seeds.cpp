// SPDX-License-Identifier: Apache-2.0
// fuzz_seeds FOLDER: writes the seeds of every target into FOLDER/TARGET/, for a run of libFuzzer.
#include <cstdio>
#include <filesystem>

#include "vectors/fuzz/seeds.hpp"
#include "vectors/fuzz/target.hpp"
#include "vectors/sample_golden.hpp"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: fuzz_seeds FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = arguments[1];
  for (const qkcts::fuzz::Target& target : qkcts::fuzz::targets()) {
    std::filesystem::create_directories(folder / target.name);
    for (const qkcts::fuzz::Seed& seed : qkcts::fuzz::good_seeds(target.name))
      qkcts::write_bytes((folder / target.name / seed.name).string(), seed.bytes);
  }
}
