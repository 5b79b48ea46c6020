// SPDX-License-Identifier: Apache-2.0
#include "conformance/tensor.hpp"

#include <bit>
#include <cstring>

#include "conformance/tensor_row.hpp"

namespace qkcts {

static_assert(std::endian::native == std::endian::little, "patterns are read and written in place, little-endian");

namespace {

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

// Zeros and normal numbers of a narrow format, which are most of all, need no decode(): binary32 holds them, and to
// widen it is exact whatever the rounding mode and the flush to zero of the thread.
template <class Pattern, unsigned fraction_bits, unsigned bias>
struct Narrow {
  static constexpr std::uint32_t sign = std::uint32_t{1} << (8 * sizeof(Pattern) - 1);
  static constexpr std::uint32_t least_normal = std::uint32_t{1} << fraction_bits;
  static constexpr std::uint32_t infinity = sign - least_normal;

  static Pattern at(const std::vector<std::byte>& bytes, std::size_t index) {
    Pattern pattern = 0;
    std::memcpy(&pattern, bytes.data() + index * sizeof pattern, sizeof pattern);
    return pattern;
  }
  static bool is_common(Pattern pattern) {
    const std::uint32_t size = pattern & (sign - 1);
    return (size == 0) | (size - least_normal < infinity - least_normal);
  }
  static double widened(Pattern pattern) {
    constexpr unsigned shift = 23 - fraction_bits;
    const std::uint32_t size = pattern & (sign - 1);
    const std::uint32_t wide = size == 0 ? 0 : (size << shift) + ((127 - bias) << 23);
    return std::bit_cast<float>(((pattern & sign) != 0 ? std::uint32_t{1} << 31 : 0) | wide);
  }

  // Those from `first` on; false if some of them are not common, which are wrong then.
  static bool widen(const std::vector<std::byte>& bytes, std::size_t first, std::vector<double>& to) {
    std::uint32_t others = 0;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const Pattern pattern = at(bytes, first + i);
      to[i] = widened(pattern);
      others |= is_common(pattern) ? 0u : 1u;
    }
    return others == 0;
  }
};
using Narrow32 = Narrow<std::uint32_t, 23, 127>;
using NarrowBfloat16 = Narrow<std::uint16_t, 7, 127>;
using Narrow16 = Narrow<std::uint16_t, 10, 15>;

std::vector<double> some_values(const Tensor& tensor, std::size_t first, std::size_t count) {
  std::vector<double> result(count);
  if (tensor.type == ElementType::binary64) {
    if (count > 0) std::memcpy(result.data(), tensor.bytes.data() + first * sizeof(double), count * sizeof(double));
    return result;
  }
  if (tensor.type == ElementType::binary32 && Narrow32::widen(tensor.bytes, first, result)) return result;
  if (tensor.type == ElementType::bfloat16 && NarrowBfloat16::widen(tensor.bytes, first, result)) return result;
  if (tensor.type == ElementType::binary16 && Narrow16::widen(tensor.bytes, first, result)) return result;
  for (std::size_t i = 0; i < count; ++i) result[i] = tensor.value(first + i);
  return result;
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
    const std::uint32_t narrow = Narrow32::at(bytes, index);
    if (Narrow32::is_common(narrow)) return Narrow32::widened(narrow);
  } else if (type == ElementType::bfloat16) {
    const std::uint16_t narrow = NarrowBfloat16::at(bytes, index);
    if (NarrowBfloat16::is_common(narrow)) return NarrowBfloat16::widened(narrow);
  } else if (type == ElementType::binary16) {
    const std::uint16_t narrow = Narrow16::at(bytes, index);
    if (Narrow16::is_common(narrow)) return Narrow16::widened(narrow);
  }
  const std::uint64_t bits = pattern(index);
  if (type == ElementType::int32) return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
  if (type == ElementType::boolean) return static_cast<double>(bits);
  return decode(static_cast<Format>(type), bits);
}

std::vector<double> Tensor::values() const {
  return some_values(*this, 0, count());
}

std::vector<double> row_values(const Tensor& tensor, std::int64_t row, std::int64_t width) {
  return some_values(tensor, static_cast<std::size_t>(row * width), static_cast<std::size_t>(width));
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
