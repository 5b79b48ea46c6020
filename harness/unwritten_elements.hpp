// SPDX-License-Identifier: Apache-2.0
// Where an adapter left the poison pattern: in rows that nothing else looks at, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "conformance/format.hpp"
#include "harness/coordinates.hpp"

namespace qkcts {

class UnwrittenElements {
 public:
  // In the tensor of a stage, in rows of `length` elements.
  UnwrittenElements(Format format, std::span<const std::byte> tensor, std::size_t length);

  // Goes on as far as `elements`, the number of those that have been looked at then.
  void search_to(std::size_t elements);
  // As far as that it is known that none is left.
  void skip_to(std::size_t elements) { searched_ = elements; }

  std::uint64_t count() const { return count_; }
  const std::optional<ElementCoordinates>& first() const { return first_; }

 private:
  std::uint64_t poison_ = 0;
  std::size_t size_ = 0, length_ = 0, searched_ = 0;
  std::span<const std::byte> tensor_;
  std::uint64_t count_ = 0;
  std::optional<ElementCoordinates> first_;
};

}  // namespace qkcts
