// SPDX-License-Identifier: Apache-2.0
// Tensors of the ABI seen through shape, strides and element format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <qkcts/adapter.h>

#include "adapters/scalar/number_format.hpp"

namespace qkcts::scalar {

// The host handed over something that contradicts the contract; the adapter answers QKCTS_INVALID.
class InvalidArguments : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class TensorView {
 public:
  TensorView() = default;
  explicit TensorView(const qkcts_tensor* tensor) {
    if (tensor == nullptr) return;
    rank_ = tensor->ndim;
    if (rank_ < 1 || rank_ > 4) throw InvalidArguments("a tensor has a rank outside 1..4");
    first_ = static_cast<std::byte*>(tensor->data) + tensor->byte_offset;
    bytes_ = tensor->dtype.bits / 8;
    code_ = tensor->dtype.code;
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank_); ++axis) {
      extent_[axis] = tensor->shape[axis];
      // An axis of extent 1 is broadcast: every index meets the same element.
      stride_[axis] = tensor->shape[axis] == 1 ? 0 : tensor->strides[axis];
    }
  }

  bool present() const { return first_ != nullptr; }
  std::int64_t extent(std::size_t axis) const { return extent_[axis]; }

  template <class Real, class... Index>
  Real load(Index... index) const {
    return decode<Real>(address(index...));
  }

  template <class Real, class... Index>
  void store(Real value, Index... index) const {
    encode(address(index...), value);
  }

  // All elements in row-major order.
  template <class Real>
  std::vector<Real> load_all() const {
    std::vector<Real> values;
    std::array<std::int64_t, 4> full{1, 1, 1, 1};
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(rank_); ++axis) full[axis] = extent_[axis];
    for (std::int64_t i = 0; i < full[0]; ++i)
      for (std::int64_t j = 0; j < full[1]; ++j)
        for (std::int64_t k = 0; k < full[2]; ++k)
          for (std::int64_t l = 0; l < full[3]; ++l) values.push_back(load<Real>(i, j, k, l));
    return values;
  }

 private:
  template <class... Index>
  std::byte* address(Index... index) const {
    std::int64_t offset = 0;
    std::size_t axis = 0;
    ((offset += static_cast<std::int64_t>(index) * stride_[axis++]), ...);
    return first_ + offset * static_cast<std::int64_t>(bytes_);
  }

  template <class Bits>
  static Bits read(const std::byte* from) {
    Bits bits;
    std::memcpy(&bits, from, sizeof bits);
    return bits;
  }

  template <class Bits>
  static void write(std::byte* to, Bits bits) {
    std::memcpy(to, &bits, sizeof bits);
  }

  template <class Real>
  Real decode(const std::byte* from) const {
    switch (code_ * 256 + bytes_) {
      case QKCTS_DL_FLOAT * 256 + 8:
        return static_cast<Real>(read<double>(from));
      case QKCTS_DL_FLOAT * 256 + 4:
        return static_cast<Real>(read<float>(from));
      case QKCTS_DL_FLOAT * 256 + 2:
        return static_cast<Real>(from_binary16(read<std::uint16_t>(from)));
      case QKCTS_DL_BFLOAT * 256 + 2:
        return static_cast<Real>(from_bfloat16(read<std::uint16_t>(from)));
      case QKCTS_DL_INT * 256 + 4:
        return static_cast<Real>(read<std::int32_t>(from));
      case QKCTS_DL_BOOL * 256 + 1:
        return static_cast<Real>(read<std::uint8_t>(from) != 0);
      default:
        throw InvalidArguments("a tensor has an unknown element type");
    }
  }

  template <class Real>
  void encode(std::byte* to, Real value) const {
    switch (code_ * 256 + bytes_) {
      case QKCTS_DL_FLOAT * 256 + 8:
        return write(to, static_cast<double>(value));
      case QKCTS_DL_FLOAT * 256 + 4:
        return write(to, static_cast<float>(value));
      case QKCTS_DL_FLOAT * 256 + 2:
        return write(to, to_binary16(static_cast<float>(value)));
      case QKCTS_DL_BFLOAT * 256 + 2:
        return write(to, to_bfloat16(static_cast<float>(value)));
      default:
        throw InvalidArguments("a stage has an unknown element type");
    }
  }

  std::byte* first_ = nullptr;
  std::int32_t rank_ = 0;
  std::uint32_t bytes_ = 0;
  std::uint32_t code_ = 0;
  std::array<std::int64_t, 4> extent_{};
  std::array<std::int64_t, 4> stride_{};
};

}  // namespace qkcts::scalar
