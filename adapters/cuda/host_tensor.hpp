// SPDX-License-Identifier: Apache-2.0
// Tensors of the ABI to and from the dense, row-major memory of the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <qkcts/adapter.h>

namespace qkcts::cuda {

// The host handed over something that contradicts the contract; the adapter answers QKCTS_INVALID.
class InvalidArguments : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// QKCTS_DL_* code and bits of an element.
struct ElementType {
  std::uint8_t code, bits;
};

ElementType element_type(std::uint32_t format);
constexpr ElementType int32_type{QKCTS_DL_INT, 32}, bool_type{QKCTS_DL_BOOL, 8};

std::int64_t element_count(const qkcts_tensor& tensor);
// Throws InvalidArguments if the tensor is missing or its elements are not of this type; `name` is for the message.
std::vector<std::byte> packed(const qkcts_tensor* tensor, ElementType type, const char* name);
void unpack(const std::vector<std::byte>& dense, const qkcts_tensor& tensor);

}  // namespace qkcts::cuda
