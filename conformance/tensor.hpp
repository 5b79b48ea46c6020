// SPDX-License-Identifier: Apache-2.0
// A dense row-major tensor of raw bits, as it stands in a file and as an adapter sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/format.hpp"

namespace qkcts {

enum class ElementType : std::uint32_t {
  binary64 = QKCTS_BINARY64,
  binary32 = QKCTS_BINARY32,
  binary16 = QKCTS_BINARY16,
  bfloat16 = QKCTS_BFLOAT16,
  int32 = 32,
  boolean = 33,  // one byte, 0 or 1
};

ElementType element_type(Format format);
std::size_t element_size(ElementType type);
std::string_view element_type_name(ElementType type);

struct Tensor {
  ElementType type = ElementType::binary32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  std::size_t count() const;                       // product of the extents
  double value(std::size_t index) const;           // exact; int32 and boolean too
  std::uint64_t pattern(std::size_t index) const;  // raw bits
  void set_pattern(std::size_t index, std::uint64_t pattern);
  std::vector<double> values() const;
  bool all_finite() const;  // of a tensor of numbers

  static Tensor zeros(ElementType type, std::vector<std::int64_t> shape);
};

std::size_t extent_product(const std::vector<std::int64_t>& shape);
std::string shape_text(const std::vector<std::int64_t>& shape);  // "[1, 16, 17, 128]"

}  // namespace qkcts
