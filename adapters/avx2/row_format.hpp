// SPDX-License-Identifier: Apache-2.0
// Rows of any storage format and stride to and from binary32. Widening is exact, narrowing rounds to nearest even.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adapters/avx2/strided_tensor.hpp"

namespace qkcts::avx2 {

// row[0..count) = the elements at `from`, `from` + stride, ... of a tensor with binary32, binary16 or bfloat16
// elements.
void load_row(const StridedTensor& tensor, const std::byte* from, std::int64_t stride, std::int64_t count, float* row);

// The inverse; one correct rounding where the format is narrower.
void store_row(const StridedTensor& tensor, std::byte* to, std::int64_t stride, std::int64_t count, const float* row);

}  // namespace qkcts::avx2
