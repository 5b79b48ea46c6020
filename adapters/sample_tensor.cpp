// SPDX-License-Identifier: Apache-2.0
#include "adapters/sample_tensor.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace qkcts {

namespace {

double decode_half(std::uint16_t bits, int fraction_bits, int bias) {
  const int exponent_bits = 15 - fraction_bits;
  const int exponent = (bits & 0x7fff) >> fraction_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

// Of a value that the format holds exactly and that is 0, infinite, NaN or normal.
std::uint16_t encode_half(double value, int fraction_bits, int bias) {
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const int infinity = ((1 << (15 - fraction_bits)) - 1) << fraction_bits;
  if (std::isnan(value)) return static_cast<std::uint16_t>(infinity | (1 << (fraction_bits - 1)));
  if (value == 0) return static_cast<std::uint16_t>(sign);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [1/2, 1)
  const int whole = static_cast<int>(std::ldexp(fraction, fraction_bits + 1));
  return static_cast<std::uint16_t>(sign | ((exponent - 1 + bias) << fraction_bits) | (whole - (1 << fraction_bits)));
}

}  // namespace

SampleTensor::SampleTensor(std::uint8_t code, std::uint8_t bits, std::vector<std::int64_t> shape, SampleLayout layout)
    : code_(code), bits_(bits), shape_(std::move(shape)), strides_(shape_.size()) {
  // Scattered: the two axes in the middle change places (as in [B,L,H,D]) and every second element is a gap.
  std::vector<std::size_t> order(shape_.size());
  for (std::size_t axis = 0; axis < order.size(); ++axis) order[axis] = axis;
  const bool scattered = layout == SampleLayout::scattered;
  if (scattered && order.size() == 4) std::swap(order[1], order[2]);
  std::int64_t stride = scattered ? 2 : 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    strides_[order[i]] = stride;
    stride *= shape_[order[i]];
  }
  offset_ = scattered ? 24 : 0;
  bytes_.assign(offset_ + static_cast<std::size_t>(stride) * bits_ / 8, std::byte{0x7f});
}

std::size_t SampleTensor::count() const {
  std::size_t product = shape_.empty() ? 0 : 1;
  for (const std::int64_t extent : shape_) product *= static_cast<std::size_t>(extent);
  return product;
}

std::byte* SampleTensor::address(std::size_t index) {
  std::int64_t element = 0;
  for (std::size_t axis = shape_.size(); axis-- > 0;) {
    const auto extent = static_cast<std::size_t>(shape_[axis]);
    element += static_cast<std::int64_t>(index % extent) * strides_[axis];
    index /= extent;
  }
  return bytes_.data() + offset_ + element * bits_ / 8;
}

double SampleTensor::get(std::size_t index) const {
  const std::byte* from = const_cast<SampleTensor*>(this)->address(index);
  const auto read = [&](auto value) {
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  if (code_ == QKCTS_DL_INT) return read(std::int32_t{});
  if (code_ == QKCTS_DL_BOOL) return read(std::uint8_t{});
  if (code_ == QKCTS_DL_BFLOAT) return decode_half(read(std::uint16_t{}), 7, 127);
  if (bits_ == 16) return decode_half(read(std::uint16_t{}), 10, 15);
  return bits_ == 32 ? static_cast<double>(read(float{})) : read(double{});
}

void SampleTensor::set(std::size_t index, double value) {
  std::byte* to = address(index);
  const auto write = [&](auto bits) { std::memcpy(to, &bits, sizeof bits); };
  if (code_ == QKCTS_DL_INT) return write(static_cast<std::int32_t>(value));
  if (code_ == QKCTS_DL_BOOL) return write(static_cast<std::uint8_t>(value));
  if (code_ == QKCTS_DL_BFLOAT) return write(encode_half(value, 7, 127));
  if (bits_ == 16) return write(encode_half(value, 10, 15));
  if (bits_ == 32) return write(static_cast<float>(value));
  write(value);
}

std::vector<double> SampleTensor::values() const {
  std::vector<double> result(count());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = get(i);
  return result;
}

const qkcts_tensor* SampleTensor::abi() {
  if (!present()) return nullptr;
  abi_ = qkcts_tensor{};
  abi_.data = bytes_.data();
  abi_.device.device_type = QKCTS_DL_CPU;
  abi_.ndim = static_cast<std::int32_t>(shape_.size());
  abi_.dtype.code = code_;
  abi_.dtype.bits = bits_;
  abi_.dtype.lanes = 1;
  abi_.shape = shape_.data();
  abi_.strides = strides_.data();
  abi_.byte_offset = offset_;
  return &abi_;
}

}  // namespace qkcts
