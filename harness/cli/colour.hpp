// SPDX-License-Identifier: Apache-2.0
// Colours on a terminal, and nowhere else. They repeat what a word says already.
#pragma once

#include <cstdio>
#include <string>

namespace qkcts::cli {

// A terminal that can move its cursor (TERM is not dumb).
bool is_capable_terminal(std::FILE* stream);

// Failing words red, passing ones green, at the ends of lines and in front of FAIL. The text stays as it is otherwise.
std::string coloured(const std::string& text);

// To the standard output: coloured() if it is a capable terminal and NO_COLOR is not set or empty (no-color.org).
void print_coloured(const std::string& text);

}  // namespace qkcts::cli
