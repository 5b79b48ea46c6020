// SPDX-License-Identifier: Apache-2.0
// A tensor of the ABI as address arithmetic: no element is touched here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include <qkcts/adapter.h>

namespace qkcts::avx2 {

// The host handed over something that contradicts the contract; the adapter answers QKCTS_INVALID.
class InvalidArguments : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Element : std::uint8_t { absent, binary32, binary16, bfloat16, int32, boolean };

inline std::int64_t element_bytes(Element element) {
  return element == Element::boolean ? 1 : element == Element::binary32 || element == Element::int32 ? 4 : 2;
}

struct StridedTensor {
  std::byte* first = nullptr;
  Element element = Element::absent;
  std::array<std::int64_t, 4> stride{};  // in elements; 0 along an axis of extent 1, which so is broadcast

  bool present() const { return element != Element::absent; }

  std::byte* at(std::int64_t i, std::int64_t j = 0, std::int64_t k = 0, std::int64_t l = 0) const {
    return first + (i * stride[0] + j * stride[1] + k * stride[2] + l * stride[3]) * element_bytes(element);
  }
};

inline Element element_of(const qkcts_tensor& tensor) {
  switch (tensor.dtype.code * 256 + tensor.dtype.bits) {
    case QKCTS_DL_FLOAT * 256 + 32:
      return Element::binary32;
    case QKCTS_DL_FLOAT * 256 + 16:
      return Element::binary16;
    case QKCTS_DL_BFLOAT * 256 + 16:
      return Element::bfloat16;
    case QKCTS_DL_INT * 256 + 32:
      return Element::int32;
    case QKCTS_DL_BOOL * 256 + 8:
      return Element::boolean;
    default:
      throw InvalidArguments("a tensor has an element type that this kernel does not know");
  }
}

inline StridedTensor strided(const qkcts_tensor* tensor) {
  StridedTensor result;
  if (tensor == nullptr) return result;
  if (tensor->ndim < 1 || tensor->ndim > 4) throw InvalidArguments("a tensor has a rank outside 1..4");
  result.first = static_cast<std::byte*>(tensor->data) + tensor->byte_offset;
  result.element = element_of(*tensor);
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(tensor->ndim); ++axis) {
    result.stride[axis] = tensor->shape[axis] == 1 ? 0 : tensor->strides[axis];
  }
  return result;
}

}  // namespace qkcts::avx2
