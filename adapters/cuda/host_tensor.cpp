// SPDX-License-Identifier: Apache-2.0
#include "adapters/cuda/host_tensor.hpp"

#include <array>
#include <cstring>
#include <string>

namespace qkcts::cuda {

namespace {

// Calls move(place in the tensor, place in dense memory, bytes) for each run of neighbours.
template <class Move>
void for_each_run(const qkcts_tensor& tensor, Move move) {
  if (tensor.ndim < 1 || tensor.ndim > 4) throw InvalidArguments("a tensor has a rank outside 1..4");
  std::array<std::int64_t, 4> extent{1, 1, 1, 1}, stride{0, 0, 0, 0};
  const std::size_t rank = static_cast<std::size_t>(tensor.ndim), first = 4 - rank;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    extent[first + axis] = tensor.shape[axis];
    stride[first + axis] = tensor.strides[axis];
  }
  const auto bytes = static_cast<std::int64_t>(tensor.dtype.bits / 8);
  const std::int64_t run = stride[3] == 1 ? extent[3] : 1;
  std::byte* base = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  std::int64_t dense = 0;
  for (std::int64_t i = 0; i < extent[0]; ++i)
    for (std::int64_t j = 0; j < extent[1]; ++j)
      for (std::int64_t k = 0; k < extent[2]; ++k)
        for (std::int64_t l = 0; l < extent[3]; l += run, dense += run * bytes)
          move(base + (i * stride[0] + j * stride[1] + k * stride[2] + l * stride[3]) * bytes, dense,
               static_cast<std::size_t>(run * bytes));
}

}  // namespace

ElementType element_type(std::uint32_t format) {
  switch (format) {
    case QKCTS_BINARY64:
      return {QKCTS_DL_FLOAT, 64};
    case QKCTS_BINARY32:
      return {QKCTS_DL_FLOAT, 32};
    case QKCTS_BINARY16:
      return {QKCTS_DL_FLOAT, 16};
    case QKCTS_BFLOAT16:
      return {QKCTS_DL_BFLOAT, 16};
    default:
      throw InvalidArguments("an unknown storage format");
  }
}

std::int64_t element_count(const qkcts_tensor& tensor) {
  std::int64_t count = 1;
  for (std::int32_t axis = 0; axis < tensor.ndim; ++axis) count *= tensor.shape[axis];
  return count;
}

std::vector<std::byte> packed(const qkcts_tensor* tensor, ElementType type, const char* name) {
  if (tensor == nullptr) throw InvalidArguments(std::string(name) + " is missing");
  if (tensor->dtype.code != type.code || tensor->dtype.bits != type.bits)
    throw InvalidArguments(std::string(name) + " has another element type than the case");
  std::vector<std::byte> dense(static_cast<std::size_t>(element_count(*tensor) * (type.bits / 8)));
  for_each_run(*tensor, [&](const std::byte* at, std::int64_t to, std::size_t bytes) {
    std::memcpy(dense.data() + to, at, bytes);
  });
  return dense;
}

void unpack(const std::vector<std::byte>& dense, const qkcts_tensor& tensor) {
  for_each_run(tensor, [&](std::byte* at, std::int64_t from, std::size_t bytes) {
    std::memcpy(at, dense.data() + from, bytes);
  });
}

}  // namespace qkcts::cuda
