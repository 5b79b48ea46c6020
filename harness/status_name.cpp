// SPDX-License-Identifier: Apache-2.0
#include "harness/status_name.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <qkcts/adapter.h>

namespace qkcts {
namespace {

constexpr std::array<std::string_view, 6> words = {"ok",      "unsupported", "unavailable", "out_of_memory",
                                                   "invalid", "internal"};
static_assert(QKCTS_OK == 0 && QKCTS_INTERNAL + 1 == words.size());

}  // namespace

std::string_view status_word(std::uint32_t status) {
  return status < words.size() ? words[status] : std::string_view();
}

std::optional<std::uint32_t> status_named(std::string_view word) {
  const auto* const found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return std::nullopt;
  return static_cast<std::uint32_t>(std::distance(words.begin(), found));
}

}  // namespace qkcts
