// SPDX-License-Identifier: Apache-2.0
#include "harness/unwritten_elements.hpp"

#include <cstring>

#include "conformance/lanes.hpp"
#include "harness/judgement.hpp"

namespace qkcts {
namespace {

template <class Pattern>
Pattern pattern_at(const std::byte* patterns, std::size_t i) {
  Pattern pattern;
  std::memcpy(&pattern, patterns + i * sizeof pattern, sizeof pattern);
  return pattern;
}

template <class Pattern>
[[gnu::always_inline]] inline void find_any(const std::byte* patterns, std::size_t count, Pattern poison, bool* any) {
  Pattern found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Pattern pattern;
    std::memcpy(&pattern, patterns + i * sizeof pattern, sizeof pattern);
    found |= static_cast<Pattern>(pattern == poison ? 1 : 0);
  }
  *any = found != 0;
}

struct Found {
  std::uint64_t count = 0;
  std::size_t first = 0;
};

template <class Pattern>
Found find(const std::byte* patterns, std::size_t count, std::uint64_t poison_bits) {
  const auto poison = static_cast<Pattern>(poison_bits);
  bool any = false;
  in_widest_lanes([=, any = &any]() QKCTS_STRAIGHT { find_any<Pattern>(patterns, count, poison, any); });
  Found found;
  for (std::size_t i = 0; any && i < count; ++i) {
    if (pattern_at<Pattern>(patterns, i) != poison) continue;
    if (found.count++ == 0) found.first = i;
  }
  return found;
}

Found find(const std::byte* patterns, std::size_t count, std::uint64_t poison, std::size_t size) {
  switch (size) {
    case 8:
      return find<std::uint64_t>(patterns, count, poison);
    case 4:
      return find<std::uint32_t>(patterns, count, poison);
    case 2:
      return find<std::uint16_t>(patterns, count, poison);
    default:
      return find<std::uint8_t>(patterns, count, poison);
  }
}

}  // namespace

UnwrittenElements::UnwrittenElements(Format format, std::span<const std::byte> tensor, std::size_t length)
    : poison_(poison_pattern(format)),
      size_(static_cast<std::size_t>(parameters(format).bits / 8)),
      length_(length),
      tensor_(tensor) {}

void UnwrittenElements::search_to(std::size_t elements) {
  if (elements <= searched_) return;
  const Found found = find(tensor_.data() + searched_ * size_, elements - searched_, poison_, size_);
  if (count_ == 0 && found.count > 0) {
    const std::size_t first = searched_ + found.first;
    first_ = {static_cast<std::uint32_t>(first / length_), static_cast<std::uint32_t>(first % length_)};
  }
  count_ += found.count;
  searched_ = elements;
}

}  // namespace qkcts
