// SPDX-License-Identifier: Apache-2.0
#include "harness/pattern_values.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace qkcts {
namespace {

// Every pattern that there is, of the long formats a million; in an odd place, as bytes may stand.
TEST(PatternValues, AreThoseOfDecode) {
  std::mt19937_64 random(1);
  for (const Format format :
       {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16, Format::e4m3fn, Format::e5m2}) {
    const int bits = parameters(format).bits;
    const auto size = static_cast<std::size_t>(bits / 8);
    const std::size_t count = bits <= 16 ? std::size_t{1} << bits : 1000000;
    std::vector<std::uint64_t> patterns(count);
    std::vector<std::byte> bytes(count * size + 1);
    for (std::size_t i = 0; i < count; ++i) {
      patterns[i] = bits <= 16 ? i : random() >> (64 - bits);
      std::memcpy(bytes.data() + 1 + i * size, &patterns[i], size);
    }
    std::vector<double> values(count);
    read_patterns(format, bytes.data() + 1, count, values.data());
    for (std::size_t i = 0; i < count; ++i) {
      const double expected = decode(format, patterns[i]);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(values[i])) << patterns[i];
      } else {
        ASSERT_EQ(std::bit_cast<std::uint64_t>(values[i]), std::bit_cast<std::uint64_t>(expected)) << patterns[i];
      }
    }
  }
}

}  // namespace
}  // namespace qkcts
