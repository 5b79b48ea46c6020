// SPDX-License-Identifier: Apache-2.0
// A tensor of a long cache is not copied whole where one row after the other is looked at.
#pragma once

#include <cstdint>
#include <vector>

#include "conformance/tensor.hpp"

namespace qkcts {

// Elements row * width to (row + 1) * width - 1, exact.
std::vector<double> row_values(const Tensor& tensor, std::int64_t row, std::int64_t width);

}  // namespace qkcts
