// SPDX-License-Identifier: Apache-2.0
#include "conformance/tensor.hpp"

#include <bit>
#include <cstring>

namespace qkcts {

static_assert(std::endian::native == std::endian::little, "patterns are read and written in place, little-endian");

namespace {

// Normal binary32 numbers, which are most of all, are widened in integers like decode(): neither the rounding mode nor
// a flush to zero of the thread matters.
bool is_normal32(std::uint32_t pattern) {
  return (pattern & 0x7fffffffu) - 0x00800000u < 0x7f000000u;
}
// Not finite: all bits of the exponent are set. (Tensors hold no e4m3fn.)
template <class Word>
bool none_has_all_of(const std::vector<std::byte>& bytes, Word exponent) {
  Word found = 0;
  for (std::size_t i = 0; i + sizeof(Word) <= bytes.size(); i += sizeof(Word)) {
    Word word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    found |= static_cast<Word>((word & exponent) == exponent);
  }
  return found == 0;
}

double widened(std::uint32_t pattern) {
  constexpr std::uint64_t rebias = std::uint64_t{1023 - 127} << 52;
  const std::uint64_t magnitude = pattern & 0x7fffffffu;
  return std::bit_cast<double>((std::uint64_t{pattern >> 31} << 63) | ((magnitude << 29) + rebias));
}

}  // namespace

ElementType element_type(Format format) {
  return static_cast<ElementType>(format);
}

std::size_t element_size(ElementType type) {
  switch (type) {
    case ElementType::binary64:
      return 8;
    case ElementType::binary32:
    case ElementType::int32:
      return 4;
    case ElementType::binary16:
    case ElementType::bfloat16:
      return 2;
    case ElementType::boolean:
      return 1;
  }
  return 0;
}

std::string_view element_type_name(ElementType type) {
  if (type == ElementType::int32) return "int32";
  if (type == ElementType::boolean) return "boolean";
  return parameters(static_cast<Format>(type)).name;
}

std::size_t Tensor::count() const {
  return extent_product(shape);
}

std::uint64_t Tensor::pattern(std::size_t index) const {
  const std::size_t size = element_size(type);
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, bytes.data() + index * size, size);
  return pattern;
}

void Tensor::set_pattern(std::size_t index, std::uint64_t pattern) {
  const std::size_t size = element_size(type);
  std::memcpy(bytes.data() + index * size, &pattern, size);
}

double Tensor::value(std::size_t index) const {
  if (type == ElementType::binary32) {
    std::uint32_t narrow = 0;
    std::memcpy(&narrow, bytes.data() + index * sizeof narrow, sizeof narrow);
    if (is_normal32(narrow)) return widened(narrow);
  }
  const std::uint64_t bits = pattern(index);
  if (type == ElementType::int32) return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
  if (type == ElementType::boolean) return static_cast<double>(bits);
  return decode(static_cast<Format>(type), bits);
}

std::vector<double> Tensor::values() const {
  std::vector<double> result(count());
  if (type == ElementType::binary32) {
    std::uint32_t others = 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
      std::uint32_t narrow = 0;
      std::memcpy(&narrow, bytes.data() + i * sizeof narrow, sizeof narrow);
      result[i] = widened(narrow);
      others |= is_normal32(narrow) ? 0u : 1u;
    }
    if (others == 0) return result;
  }
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = value(i);
  return result;
}

bool Tensor::all_finite() const {
  switch (type) {
    case ElementType::binary64:
      return none_has_all_of<std::uint64_t>(bytes, 0x7ff0000000000000);
    case ElementType::binary32:
      return none_has_all_of<std::uint32_t>(bytes, 0x7f800000);
    case ElementType::binary16:
      return none_has_all_of<std::uint16_t>(bytes, 0x7c00);
    case ElementType::bfloat16:
      return none_has_all_of<std::uint16_t>(bytes, 0x7f80);
    case ElementType::int32:
    case ElementType::boolean:
      break;
  }
  return true;
}

Tensor Tensor::zeros(ElementType type, std::vector<std::int64_t> shape) {
  Tensor tensor{type, std::move(shape), {}};
  tensor.bytes.assign(tensor.count() * element_size(type), std::byte{0});
  return tensor;
}

std::size_t extent_product(const std::vector<std::int64_t>& shape) {
  std::size_t product = 1;
  for (const std::int64_t extent : shape) product *= static_cast<std::size_t>(extent);
  return product;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace qkcts
