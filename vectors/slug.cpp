// SPDX-License-Identifier: Apache-2.0
#include "vectors/slug.hpp"

#include <algorithm>

#include "vectors/schema.hpp"

namespace qkcts {

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= schema::longest_slug && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_slug(std::string_view text) {
  if (text.size() > schema::longest_slug) return false;
  for (int part = 0; part < schema::deepest_slug; ++part) {
    const std::size_t end = std::min(text.find('/'), text.size());
    if (!is_name(text.substr(0, end))) return false;
    if (end == text.size()) return true;
    text.remove_prefix(end + 1);
  }
  return false;
}

}  // namespace qkcts
