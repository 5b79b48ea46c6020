// SPDX-License-Identifier: Apache-2.0
#include "conformance/tensor.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "conformance/format.hpp"
#include "conformance/tensor_row.hpp"

namespace qkcts {
namespace {

TEST(Tensor, HoldsPatternsOfEveryElementType) {
  for (const ElementType type : {ElementType::binary64, ElementType::binary32, ElementType::binary16,
                                 ElementType::bfloat16, ElementType::int32, ElementType::boolean}) {
    Tensor tensor = Tensor::zeros(type, {2, 3});
    EXPECT_EQ(tensor.bytes.size(), 6 * element_size(type));
    tensor.set_pattern(4, 1);
    for (std::size_t i = 0; i < tensor.count(); ++i) EXPECT_EQ(tensor.pattern(i), i == 4 ? 1U : 0U);
  }
}

TEST(Tensor, ValuesAreExact) {
  Tensor half = Tensor::zeros(ElementType::bfloat16, {3});
  half.set_pattern(0, encode(Format::bfloat16, 1.5));
  half.set_pattern(1, encode(Format::bfloat16, -0x1p-133));
  EXPECT_EQ(half.values(), (std::vector<double>{1.5, -0x1p-133, 0}));
  Tensor integers = Tensor::zeros(ElementType::int32, {2});
  integers.set_pattern(0, 0xffffffffU);
  integers.set_pattern(1, 0x7fffffffU);
  EXPECT_EQ(integers.values(), (std::vector<double>{-1, 2147483647}));
}

// The short way of most patterns says what decode() says, of all patterns of 16 bits and of some of each exponent
// of 32.
TEST(Tensor, EveryPatternHasTheValueOfItsFormat) {
  const auto expect_same = [](const Tensor& tensor) {
    const std::vector<double> all = tensor.values();
    for (std::size_t i = 0; i < tensor.count(); ++i) {
      const double exact = decode(static_cast<Format>(tensor.type), tensor.pattern(i));
      ASSERT_TRUE(std::isnan(exact) ? std::isnan(all[i])
                                    : exact == all[i] && std::signbit(exact) == std::signbit(all[i]));
      ASSERT_TRUE(std::isnan(exact) || tensor.value(i) == exact);
    }
  };
  for (const ElementType type : {ElementType::binary16, ElementType::bfloat16}) {
    Tensor every = Tensor::zeros(type, {65536}), finite = Tensor::zeros(type, {65536});
    for (std::size_t i = 0; i < 65536; ++i) every.set_pattern(i, i);
    expect_same(every);
    // Without those that are not finite or subnormal, which all take the long way together.
    for (std::size_t i = 0; i < 65536; ++i) {
      const double x = std::fabs(every.value(i));
      finite.set_pattern(i, x == 0 || (x >= 0x1p-14 && std::isfinite(x)) ? i : 0);
    }
    expect_same(finite);
  }
  Tensor wide = Tensor::zeros(ElementType::binary32, {512 * 5});
  for (std::size_t exponent = 0; exponent < 512; ++exponent)
    for (std::size_t i = 0; i < 5; ++i)
      wide.set_pattern(exponent * 5 + i, (exponent << 23) + std::array{0U, 1U, 0x2aaaaaU, 0x7ffffeU, 0x7fffffU}[i]);
  expect_same(wide);
}

TEST(Tensor, ARowIsThatOfTheWhole) {
  for (const Format format : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16}) {
    Tensor tensor = Tensor::zeros(element_type(format), {4, 3});
    // Among them a subnormal number, which does not take the short way.
    for (std::size_t i = 0; i < 12; ++i)
      tensor.set_pattern(i, i == 7 ? 1 : encode(format, 0.5 * static_cast<double>(i)));
    const std::vector<double> all = tensor.values();
    for (std::int64_t row = 0; row < 4; ++row)
      EXPECT_EQ(row_values(tensor, row, 3), std::vector<double>(all.begin() + row * 3, all.begin() + row * 3 + 3));
  }
}

TEST(Tensor, NeighboursStayUntouched) {
  Tensor tensor = Tensor::zeros(ElementType::binary16, {3});
  for (std::size_t i = 0; i < 3; ++i) tensor.set_pattern(i, 0xffff);
  tensor.set_pattern(1, 0);
  EXPECT_EQ(tensor.pattern(0), 0xffffU);
  EXPECT_EQ(tensor.pattern(1), 0U);
  EXPECT_EQ(tensor.pattern(2), 0xffffU);
}

TEST(Tensor, NamesAndShapes) {
  EXPECT_EQ(shape_text({1, 16, 17}), "[1, 16, 17]");
  EXPECT_EQ(shape_text({}), "[]");
  EXPECT_EQ(extent_product({4, 0, 3}), 0U);
  EXPECT_EQ(element_type_name(ElementType::boolean), "boolean");
  EXPECT_EQ(element_type_name(element_type(Format::binary16)), "binary16");
}

TEST(Tensor, FiniteIsWhatHasNoExponentOfOnes) {
  for (const Format format : {Format::binary64, Format::binary32, Format::binary16, Format::bfloat16}) {
    Tensor tensor = Tensor::zeros(element_type(format), {2, 3});
    for (std::size_t i = 0; i < 6; ++i)
      tensor.set_pattern(i, encode(format, i % 2 == 0 ? -1.5 : parameters(format).largest));
    EXPECT_TRUE(tensor.all_finite());
    for (const double special : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
      Tensor other = tensor;
      other.set_pattern(5, encode(format, special));
      EXPECT_FALSE(other.all_finite());
    }
  }
  Tensor ids = Tensor::zeros(ElementType::int32, {1});
  ids.set_pattern(0, 0x7fffffff);
  EXPECT_TRUE(ids.all_finite());
}

}  // namespace
}  // namespace qkcts
