// SPDX-License-Identifier: Apache-2.0
// The fuzz targets without a fuzzer: good seeds are read, bad ones are refused, and so are
// changed seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "vectors/counter_generator.hpp"
#include "vectors/fuzz/seeds.hpp"
#include "vectors/fuzz/target.hpp"
#include "vectors/limited_child.hpp"
#include "vectors/sample_golden.hpp"

namespace qkcts::fuzz {
namespace {

TEST(FuzzReplay, GoodSeedsAreAccepted) {
  for (const Target& target : targets()) {
    const std::vector<Seed> seeds = good_seeds(target.name);
    EXPECT_FALSE(seeds.empty()) << target.name;
    for (const Seed& seed : seeds) EXPECT_EQ(target.refusal(seed.bytes), "") << target.name << " " << seed.name;
  }
}

// A finding stays here as vectors/fuzz/seeds/TARGET/NAME. Libraries may crash in a child, this project's code may not.
TEST(FuzzReplay, FindingsAreRefused) {
  std::size_t count = 0;
  for (const Target& target : targets()) {
    const std::filesystem::path folder = std::filesystem::path(QKCTS_SOURCE_DIR) / "vectors/fuzz/seeds" / target.name;
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string bytes = file_bytes(entry.path().string());
      const ChildOutcome outcome =
          run_in_limited_child([&] { return target.refusal(bytes); }, {std::uint64_t{4} << 30U, 20, 300});
      EXPECT_EQ(outcome.end, ChildEnd::returned) << entry.path();
      EXPECT_NE(outcome.message, "") << entry.path() << " was accepted";
      ++count;
    }
  }
  EXPECT_GT(count, 0U);
}

// A little of what a fuzzer does, under every compiler: one byte of a text becomes another, or the text ends early.
TEST(FuzzReplay, ChangedTextsAreReadOrRefused) {
  std::map<std::string, int> refused;
  for (const Target& target : targets()) {
    if (target.name == "corpus") continue;  // hdf5_hostile_test.cpp
    const RandomStream random(7, 0);
    std::uint64_t draw = 0;
    int accepted = 0;
    for (const Seed& seed : good_seeds(target.name))
      for (int i = 0; i < 8; ++i) {
        std::string bytes = seed.bytes;
        const std::size_t at = random.below(draw++, bytes.size());
        if (i % 4 == 0)
          bytes.resize(at);
        else
          bytes[at] = R"(0123456789.-+eE[]{}",: truefalsnul\)"[random.below(draw++, 35)];
        (target.refusal(bytes).empty() ? accepted : refused[std::string(target.name)])++;
      }
    EXPECT_GT(refused[std::string(target.name)], 0) << target.name;
    if (target.name == "contract") {
      EXPECT_GT(accepted, 0);
    }
  }
}

}  // namespace
}  // namespace qkcts::fuzz
