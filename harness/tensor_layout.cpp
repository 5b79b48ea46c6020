// SPDX-License-Identifier: Apache-2.0
#include "harness/tensor_layout.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

namespace qkcts {
namespace {

constexpr std::array<std::string_view, 5> names = {"dense", "bshd", "padded", "strided", "byte_offset"};

// Axes from the one that varies slowest in memory to the one that varies fastest.
std::vector<std::size_t> memory_order(std::size_t rank, TensorLayout layout, TensorAxes axes) {
  std::vector<std::size_t> order(rank);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (layout == TensorLayout::bshd && axes == TensorAxes::batch_head_token_lane && rank == 4)
    std::swap(order[1], order[2]);
  // The last axis goes first: neighbours of a row are as far apart as they can be.
  if (layout == TensorLayout::strided) std::rotate(order.begin(), order.end() - 1, order.end());
  return order;
}

// Calls `run` with the length as a constant where that is one element: of strided tensors every run is.
template <class Run>
bool by_length(std::size_t bytes, const Run& run) {
  switch (bytes) {
    case 2:
      return run(std::integral_constant<std::size_t, 2>());
    case 4:
      return run(std::integral_constant<std::size_t, 4>());
    case 8:
      return run(std::integral_constant<std::size_t, 8>());
    default:
      return run(bytes);
  }
}

void copy_run(std::byte* to, const std::byte* from, std::size_t bytes) {
  by_length(bytes, [&](auto length) {
    std::memcpy(to, from, length);
    return true;
  });
}

bool same_run(const std::byte* a, const std::byte* b, std::size_t bytes) {
  return by_length(bytes, [&](auto length) { return std::memcmp(a, b, length) == 0; });
}

}  // namespace

std::string_view layout_name(TensorLayout layout) {
  return names[static_cast<std::size_t>(layout)];
}

std::optional<TensorLayout> layout_named(std::string_view name) {
  const auto* const found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<TensorLayout>(found - names.begin());
}

ElementPlaces::ElementPlaces(std::vector<std::int64_t> shape, TensorLayout layout, TensorAxes axes,
                             std::int64_t quantum)
    : shape_(std::move(shape)), strides_(shape_.size(), 1) {
  const std::vector<std::size_t> order = memory_order(shape_.size(), layout, axes);
  if (layout == TensorLayout::byte_offset) offset_ = static_cast<std::size_t>(3 * quantum);
  std::int64_t stride = layout == TensorLayout::strided ? 2 : 1, widening = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    strides_[order[i]] = stride;
    stride *= shape_[order[i]];
    // Another width of gap for each axis, so that two strides that are mistaken for each other are not the same.
    if (layout == TensorLayout::padded || layout == TensorLayout::strided) {
      stride = (stride + quantum - 1) / quantum * quantum + quantum * widening;
      widening += 2;
    }
  }
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < shape_.size(); ++axis) last += (shape_[axis] - 1) * strides_[axis];
  const bool empty = std::find(shape_.begin(), shape_.end(), 0) != shape_.end();
  extent_ = empty ? 0 : offset_ + static_cast<std::size_t>(last) + 1;
}

template <class Visit>
void ElementPlaces::each_run(const Visit& visit) const {
  if (extent_ == 0) return;
  std::size_t axes = shape_.size(), run = 1;  // axes behind which all lies as in the dense tensor
  while (axes > 0 && strides_[axes - 1] == static_cast<std::int64_t>(run))
    run *= static_cast<std::size_t>(shape_[--axes]);
  std::vector<std::int64_t> index(axes, 0);
  for (std::size_t dense = 0;; dense += run) {
    std::size_t place = offset_;
    for (std::size_t axis = 0; axis < axes; ++axis) place += static_cast<std::size_t>(index[axis] * strides_[axis]);
    visit(dense, place, run);
    std::size_t axis = axes;
    while (axis > 0 && ++index[axis - 1] == shape_[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

void ElementPlaces::scatter(std::span<const std::byte> dense, std::size_t element, std::byte* buffer) const {
  each_run([&](std::size_t from, std::size_t place, std::size_t count) {
    copy_run(buffer + place * element, dense.data() + from * element, count * element);
  });
}

std::vector<std::byte> ElementPlaces::gather(const std::byte* buffer, std::size_t element) const {
  std::size_t count = element;
  for (const std::int64_t extent : shape_) count *= static_cast<std::size_t>(extent);
  std::vector<std::byte> dense(count);
  each_run([&](std::size_t to, std::size_t place, std::size_t run) {
    copy_run(dense.data() + to * element, buffer + place * element, run * element);
  });
  return dense;
}

void ElementPlaces::copy(const std::byte* from, std::size_t element, std::byte* to) const {
  each_run([&](std::size_t, std::size_t place, std::size_t count) {
    copy_run(to + place * element, from + place * element, count * element);
  });
}

bool ElementPlaces::holds(std::span<const std::byte> dense, std::size_t element, const std::byte* buffer) const {
  bool same = true;
  each_run([&](std::size_t from, std::size_t place, std::size_t count) {
    same = same && same_run(buffer + place * element, dense.data() + from * element, count * element);
  });
  return same;
}

std::vector<std::size_t> ElementPlaces::gaps() const {
  std::vector<bool> taken(extent_, false);
  each_run([&](std::size_t, std::size_t place, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) taken[place + i] = true;
  });
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < extent_; ++i)
    if (!taken[i]) free.push_back(i);
  return free;
}

}  // namespace qkcts
