// SPDX-License-Identifier: Apache-2.0
// Names that come near to one that nobody knows: what a message offers instead.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkcts {

// How many characters have to be put in, taken out or replaced to turn `name` into one that `pattern` matches, where
// '*' stands for anything and '?' for any character, as in a glob. Without them it is the Levenshtein distance. Of both
// only the first 100 characters count.
std::size_t edit_distance(std::string_view pattern, std::string_view name);

// At most four of `known`, in their order, that contain `name` or differ from it by at most three edits and by at most
// as many as a third of its letters: "a, b"; empty if there are none.
std::string near_names(std::string_view name, std::span<const std::string> known);

// Of least edit distance to the pattern, the first of several; empty if `known` is.
std::string nearest_name(std::string_view pattern, std::span<const std::string> known);

}  // namespace qkcts
