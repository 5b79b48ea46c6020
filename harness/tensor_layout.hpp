// SPDX-License-Identifier: Apache-2.0
// Where the elements of a tensor lie in memory: row by row without gaps, or otherwise where an adapter claims that it
// reads strides and offsets. docs/adapter_abi.md, "layouts".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace qkcts {

enum class TensorLayout : std::uint8_t {
  dense,        // row-major without gaps: what every adapter takes
  bshd,         // tokens outside of heads, where a tensor is [B,H,L,D]
  padded,       // gaps behind rows, heads and entries; the last axis without gaps
  strided,      // axes in another order, gaps everywhere, also between neighbours of a row
  byte_offset,  // dense, but the first element is not the first of the buffer
};
inline constexpr std::array claimable_layouts = {TensorLayout::bshd, TensorLayout::padded, TensorLayout::strided,
                                                 TensorLayout::byte_offset};
std::string_view layout_name(TensorLayout layout);
std::optional<TensorLayout> layout_named(std::string_view name);

// What the axes of a tensor are; only some of them have a usual second order.
enum class TensorAxes : std::uint8_t { batch_head_token_lane, others };

class ElementPlaces {
 public:
  // Gaps and offset are multiples of `quantum` elements, so that what an adapter asks of alignment still holds; under
  // `strided` there is no such rule between elements.
  ElementPlaces(std::vector<std::int64_t> shape, TensorLayout layout, TensorAxes axes, std::int64_t quantum);

  const std::vector<std::int64_t>& strides() const { return strides_; }  // in elements
  std::size_t offset() const { return offset_; }                         // elements before the first one
  std::size_t extent() const { return extent_; }                         // elements of the whole buffer

  void scatter(std::span<const std::byte> dense, std::size_t element, std::byte* buffer) const;
  std::vector<std::byte> gather(const std::byte* buffer, std::size_t element) const;
  // The tensor from one such buffer to another; what lies between its elements stays.
  void copy(const std::byte* from, std::size_t element, std::byte* to) const;
  // Does the buffer hold the tensor, bit for bit?
  bool holds(std::span<const std::byte> dense, std::size_t element, const std::byte* buffer) const;
  // The elements of the buffer that belong to no element of the tensor.
  std::vector<std::size_t> gaps() const;

 private:
  // visit(dense, place, count): neighbours in memory, `count` elements from `dense` on lie from `place` on.
  template <class Visit>
  void each_run(const Visit& visit) const;

  std::vector<std::int64_t> shape_, strides_;
  std::size_t offset_ = 0, extent_ = 0;
};

}  // namespace qkcts
