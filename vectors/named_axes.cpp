// SPDX-License-Identifier: Apache-2.0
#include "vectors/named_axes.hpp"

#include <fmt/format.h>

#include "vectors/schema.hpp"

namespace qkcts {

void write_named_axes(Hdf5Output& file, const std::string& name, StoredType type, std::string_view format,
                      const StageLayout& layout, std::span<const std::byte> bytes) {
  file.write_dataset(name, type, layout.extents, bytes);
  file.write_text(name, schema::attribute::format, format);
  file.write_texts(name, schema::attribute::dimensions, layout.dimensions);
}

void write_input(Hdf5Output& file, const std::string& group, Input input, const Tensor& tensor) {
  StageLayout layout{{}, input_dimensions(input, tensor.shape.size())};
  for (const std::int64_t extent : tensor.shape) layout.extents.push_back(static_cast<std::uint64_t>(extent));
  write_named_axes(file, fmt::format("{}/{}", group, input_name(input)), stored_type(tensor.type),
                   element_type_name(tensor.type), layout, tensor.bytes);
}

}  // namespace qkcts
