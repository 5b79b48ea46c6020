// SPDX-License-Identifier: Apache-2.0
// Datasets with the two attributes that every dataset has, `format` and `dimensions`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "vectors/layout.hpp"

namespace qkcts {

// The group of `name` exists. Throws WriteError.
void write_named_axes(Hdf5Output& file, const std::string& name, StoredType type, std::string_view format,
                      const StageLayout& layout, std::span<const std::byte> bytes);

// An input tensor under its own name.
void write_input(Hdf5Output& file, const std::string& group, Input input, const Tensor& tensor);

}  // namespace qkcts
