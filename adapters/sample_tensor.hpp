// SPDX-License-Identifier: Apache-2.0
// A tensor that owns its memory, in any storage format and layout, for the tests of this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <qkcts/adapter.h>

namespace qkcts {

enum class SampleLayout {
  contiguous,
  scattered  // axes stored in another order, gaps between elements, a byte offset
};

// Elements are addressed by their row-major index.
class SampleTensor {
 public:
  SampleTensor() = default;
  SampleTensor(std::uint8_t code, std::uint8_t bits, std::vector<std::int64_t> shape, SampleLayout layout);

  bool present() const { return !shape_.empty(); }
  std::size_t count() const;
  double get(std::size_t index) const;
  void set(std::size_t index, double value);  // exactly representable values only
  std::vector<double> values() const;
  const std::vector<std::int64_t>& shape() const { return shape_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  // Valid until this object is moved or destroyed; NULL if not present.
  const qkcts_tensor* abi();

 private:
  std::byte* address(std::size_t index);

  std::uint8_t code_ = 0;
  std::uint8_t bits_ = 0;
  std::vector<std::int64_t> shape_, strides_;
  std::size_t offset_ = 0;
  std::vector<std::byte> bytes_;
  qkcts_tensor abi_{};
};

}  // namespace qkcts
