// SPDX-License-Identifier: Apache-2.0
// Text for a terminal of 80 columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace qkcts {

inline constexpr std::size_t terminal_columns = 80;

// Columns that UTF-8 text takes up: one per character.
std::size_t text_columns(std::string_view text);

// `head`, and behind it the words of `text`, in lines of 80 columns. Later lines begin where `head` ends, or at column
// `indent`; the text begins on one if the first word has no room beside a longer `head`. A word that is longer than a
// line is not cut. Ends with a newline.
std::string wrapped(const std::string& head, std::string_view text);
std::string wrapped(const std::string& head, std::string_view text, std::size_t indent);

// Cut to so many columns; where something is lost, the last of them holds a '~'.
std::string clipped(const std::string& text, std::size_t width);

// One row of a table: a name in `name_width` columns, or on a line of its own if it is longer, and cells of
// `cell_width` columns to the right of it; those that have no room stand below the first ones.
std::string table_row(const std::string& name, std::size_t name_width, const std::vector<std::string>& cells,
                      std::size_t cell_width);

}  // namespace qkcts
