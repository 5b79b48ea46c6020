// SPDX-License-Identifier: Apache-2.0
#include "adapters/scalar/number_format.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

namespace qkcts::scalar {
namespace {

struct HalfFormat {
  const char* name;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
  std::uint16_t infinity;
};

const HalfFormat formats[] = {{"binary16", from_binary16, to_binary16, 0x7c00},
                              {"bfloat16", from_bfloat16, to_bfloat16, 0x7f80}};

// Every pattern comes back; that also pins the widening, since narrowing is checked against it below.
TEST(NumberFormat, RoundTripIsTheIdentity) {
  for (const HalfFormat& format : formats) {
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
      const float value = format.widen(static_cast<std::uint16_t>(bits));
      if ((bits & 0x7fff) > format.infinity) {
        EXPECT_TRUE(std::isnan(value));
        EXPECT_TRUE(std::isnan(format.widen(format.narrow(value))));
      } else {
        ASSERT_EQ(format.narrow(value), bits) << format.name;
      }
    }
  }
}

TEST(NumberFormat, WidensKnownValues) {
  EXPECT_EQ(from_binary16(0x3c00), 1.0f);
  EXPECT_EQ(from_binary16(0x7bff), 65504.0f);
  EXPECT_EQ(from_binary16(0x0001), 0x1p-24f);
  EXPECT_EQ(from_binary16(0x83ff), -0x3ffp-24f);
  EXPECT_EQ(from_bfloat16(0x3f80), 1.0f);
  EXPECT_EQ(from_bfloat16(0x0001), 0x1p-133f);
  EXPECT_EQ(from_bfloat16(0x7f7f), 0x1.fep+127f);
}

// Between two neighbours: just below the middle goes down, the middle to the even one, just above goes up.
TEST(NumberFormat, RoundsToNearestEven) {
  for (const HalfFormat& format : formats) {
    for (std::uint32_t low = 0; low < format.infinity; ++low) {
      const std::uint32_t high = low + 1;
      const double above =
          high == format.infinity
              ? 2.0 * format.widen(static_cast<std::uint16_t>(low)) - format.widen(static_cast<std::uint16_t>(low - 1))
              : static_cast<double>(format.widen(static_cast<std::uint16_t>(high)));
      const double middle = (format.widen(static_cast<std::uint16_t>(low)) + above) / 2;
      const float tie = static_cast<float>(middle);
      ASSERT_EQ(static_cast<double>(tie), middle);
      const std::uint32_t even = low % 2 == 0 ? low : high;
      ASSERT_EQ(format.narrow(tie), even) << format.name << ' ' << tie;
      ASSERT_EQ(format.narrow(-tie), even | 0x8000u) << format.name << ' ' << tie;
      ASSERT_EQ(format.narrow(std::nextafter(tie, 0.0f)), low) << format.name << ' ' << tie;
      ASSERT_EQ(format.narrow(std::nextafter(tie, std::numeric_limits<float>::infinity())), high)
          << format.name << ' ' << tie;
    }
  }
}

}  // namespace
}  // namespace qkcts::scalar
