// SPDX-License-Identifier: Apache-2.0
#include "conformance/near_name.hpp"

#include <algorithm>

namespace qkcts {
namespace {

constexpr std::size_t longest = 100, most_named = 4, few_edits = 3;
// "of" stands in half of all names.
constexpr std::size_t shortest_part = 3;

}  // namespace

std::size_t edit_distance(std::string_view pattern, std::string_view name) {
  pattern = pattern.substr(0, longest);
  name = name.substr(0, longest);
  std::vector<std::size_t> row(name.size() + 1);
  for (std::size_t j = 0; j <= name.size(); ++j) row[j] = j;
  for (const char wanted : pattern) {
    std::size_t diagonal = row[0];
    if (wanted != '*') ++row[0];
    for (std::size_t j = 1; j <= name.size(); ++j) {
      const std::size_t above = row[j];
      if (wanted == '*') {
        row[j] = std::min(above, row[j - 1]);
      } else {
        const std::size_t substituted = diagonal + (wanted == '?' || wanted == name[j - 1] ? 0 : 1);
        row[j] = std::min({above + 1, row[j - 1] + 1, substituted});
      }
      diagonal = above;
    }
  }
  return row[name.size()];
}

std::string near_names(std::string_view name, std::span<const std::string> known) {
  const std::size_t edits = std::min(few_edits, name.size() / 3);  // three of four letters make another word
  std::string near;
  std::size_t count = 0;
  for (const std::string& one : known) {
    const bool contains = name.size() >= shortest_part && one.find(name) != std::string::npos;
    if (!contains && edit_distance(name, one) > edits) continue;
    if (++count > most_named) break;
    near += (near.empty() ? "" : ", ") + one;
  }
  return near;
}

std::string nearest_name(std::string_view pattern, std::span<const std::string> known) {
  std::string nearest;
  std::size_t least = 0;
  for (const std::string& one : known) {
    const std::size_t distance = edit_distance(pattern, one);
    if (!nearest.empty() && distance >= least) continue;
    least = distance;
    nearest = one;
  }
  return nearest;
}

}  // namespace qkcts
