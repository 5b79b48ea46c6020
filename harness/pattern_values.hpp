// SPDX-License-Identifier: Apache-2.0
// Values of many bit patterns, as decode() says them of each.
#pragma once

#include <cstddef>

#include "conformance/format.hpp"

namespace qkcts {

// `patterns`: count patterns of the format, little-endian, wherever they stand.
void read_patterns(Format format, const std::byte* patterns, std::size_t count, double* values);

}  // namespace qkcts
