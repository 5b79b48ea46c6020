// SPDX-License-Identifier: Apache-2.0
// The probe of the matrix unit, on units of which the answers are known.
#include "adapters/cuda/unit_probe.hpp"

#include <gtest/gtest.h>

namespace qkcts::cuda {
namespace {

constexpr NarrowFormat formats[] = {NarrowFormat::bfloat16, NarrowFormat::binary16};

UnitFindings found(NarrowFormat format, int products, int fraction, bool zeros_align = false, bool as_stored = false) {
  Settings settings;
  settings.executor.unit_products = products;
  settings.executor.unit_fraction = fraction;
  settings.executor.unit_zeros_align = zeros_align;
  settings.executor.unit_subnormals_as_stored = as_stored;
  Device device(settings);
  return probe_unit(device, format);
}

TEST(UnitProbe, FindsTheUnitOfEachGeneration) {
  for (const NarrowFormat format : formats) {
    for (const auto& [products, fraction] : {std::pair{4, 23}, std::pair{8, 24}, std::pair{16, 25}, std::pair{8, 27}}) {
      const UnitFindings findings = found(format, products, fraction);
      EXPECT_EQ(findings.products, products);
      EXPECT_EQ(findings.fraction, fraction);
      EXPECT_TRUE(findings.toward_zero);
      EXPECT_FALSE(findings.zeros_align);
      EXPECT_FALSE(findings.subnormals_as_stored);
      EXPECT_EQ(findings.elements, 1024);
      EXPECT_EQ(findings.different, 0);
    }
  }
}

// The assumption on which batch invariance rests: a unit that breaks it is found.
TEST(UnitProbe, FindsZeroProductsThatAlign) {
  for (const NarrowFormat format : formats) {
    const UnitFindings findings = found(format, 8, 24, true);
    EXPECT_TRUE(findings.zeros_align);
    EXPECT_FALSE(findings.subnormals_as_stored);
    EXPECT_EQ(findings.different, 0);
  }
}

TEST(UnitProbe, FindsSubnormalsThatAreAlignedAsStored) {
  for (const NarrowFormat format : formats) {
    const UnitFindings findings = found(format, 8, 24, false, true);
    EXPECT_TRUE(findings.subnormals_as_stored);
    EXPECT_FALSE(findings.zeros_align);
    EXPECT_EQ(findings.different, 0);
  }
}

TEST(UnitProbe, SaysWhatItFoundInOneLine) {
  Settings settings;
  Device device(settings);
  UnitFindings findings;
  findings.products = 16;
  findings.fraction = 25;
  findings.toward_zero = true;
  findings.elements = 4096;
  findings.different = 3;
  const std::string line = unit_line(device, NarrowFormat::binary16, findings);
  EXPECT_NE(
      line.find(
          R"("format": "binary16", "products": 16, "fraction": 25, "toward_zero": true, )"
          R"("zero_products_align": false, "subnormals_as_stored": false, "sums": 4096, "other_bits_than_the_model": 3})"),
      std::string::npos)
      << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace qkcts::cuda
