// SPDX-License-Identifier: Apache-2.0
#include "harness/tensor_layout.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace qkcts {
namespace {

constexpr auto bhld = TensorAxes::batch_head_token_lane;

std::vector<std::byte> counting(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

TEST(TensorLayout, StridesAreThoseOfTheOrder) {
  using Strides = std::vector<std::int64_t>;
  EXPECT_EQ(ElementPlaces({2, 3, 4, 5}, TensorLayout::dense, bhld, 1).strides(), (Strides{60, 20, 5, 1}));
  EXPECT_EQ(ElementPlaces({2, 3, 4, 5}, TensorLayout::bshd, bhld, 1).strides(), (Strides{60, 5, 15, 1}));
  EXPECT_EQ(ElementPlaces({2, 3, 4, 5}, TensorLayout::bshd, TensorAxes::others, 1).strides(), (Strides{60, 20, 5, 1}));
  EXPECT_EQ(ElementPlaces({2, 3, 4, 5}, TensorLayout::padded, bhld, 1).strides().back(), 1);
  EXPECT_GT(ElementPlaces({2, 3, 4, 5}, TensorLayout::strided, bhld, 1).strides().back(), 1);
  EXPECT_EQ(ElementPlaces({7}, TensorLayout::strided, TensorAxes::others, 1).strides(), (Strides{2}));
  const ElementPlaces aligned({2, 3, 4, 5}, TensorLayout::padded, bhld, 8);
  for (std::size_t axis = 0; axis < 3; ++axis) EXPECT_EQ(aligned.strides()[axis] % 8, 0);
  EXPECT_EQ(ElementPlaces({4}, TensorLayout::byte_offset, TensorAxes::others, 8).offset(), 24u);
}

// Whatever the layout, no two elements share a place, what was put there comes back, and the rest are gaps.
TEST(TensorLayout, EveryElementHasAPlaceOfItsOwn) {
  for (const TensorLayout layout : {TensorLayout::dense, TensorLayout::bshd, TensorLayout::padded,
                                    TensorLayout::strided, TensorLayout::byte_offset}) {
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{2, 3, 4, 5}, {1, 1, 1, 1}, {2, 3, 4}, {6}, {1, 4, 1, 3}}) {
      const ElementPlaces places(shape, layout, bhld, 2);
      const auto count =
          static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
      const std::vector<std::byte> dense = counting(count);
      std::vector<std::byte> buffer(places.extent(), std::byte{0xFF});
      places.scatter(dense, 1, buffer.data());
      EXPECT_EQ(places.gather(buffer.data(), 1), dense) << layout_name(layout);
      EXPECT_EQ(places.gaps().size() + count, places.extent()) << layout_name(layout);
      for (const std::size_t gap : places.gaps()) EXPECT_EQ(buffer[gap], std::byte{0xFF});
    }
  }
}

TEST(TensorLayout, NamesAreReadBack) {
  for (const TensorLayout layout : claimable_layouts) EXPECT_EQ(layout_named(layout_name(layout)), layout);
  EXPECT_EQ(layout_named("bhsd"), std::nullopt);
}

}  // namespace
}  // namespace qkcts
