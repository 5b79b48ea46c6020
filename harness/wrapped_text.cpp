// SPDX-License-Identifier: Apache-2.0
#include "harness/wrapped_text.hpp"

#include <algorithm>

namespace qkcts {
namespace {

std::string without_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string blanks(std::size_t count) {
  std::string text;
  text.resize(count, ' ');
  return text;
}

}  // namespace

std::size_t text_columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string wrapped(const std::string& head, std::string_view text) {
  return wrapped(head, text, text_columns(head));
}

std::string wrapped(const std::string& head, std::string_view text, std::size_t indent) {
  std::string result, line = head;
  bool has_word = false;
  while (!text.empty()) {
    const std::size_t start = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string_view word = text.substr(start, end - start);
    text.remove_prefix(end);
    if (word.empty()) break;
    const bool can_move = has_word || text_columns(line) > indent;
    if (can_move && text_columns(line) + (has_word ? 1 : 0) + text_columns(word) > terminal_columns) {
      result += without_end(line) + "\n";
      line = blanks(indent);
      has_word = false;
    }
    if (has_word) line += ' ';
    line += word;
    has_word = true;
  }
  return result + without_end(line) + "\n";
}

std::string clipped(const std::string& text, std::size_t width) {
  if (text_columns(text) <= width) return text;
  std::size_t end = 0;
  for (std::size_t columns = 0; columns + 1 < width; ++columns) do
      ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U);
  return text.substr(0, end) + "~";
}

std::string table_row(const std::string& name, std::size_t name_width, const std::vector<std::string>& cells,
                      std::size_t cell_width) {
  std::string text, line = name;
  const std::size_t columns = text_columns(name);
  if (columns > name_width && !cells.empty()) {
    text = name + "\n";
    line = blanks(name_width);
  } else {
    line += blanks(name_width - std::min(columns, name_width));
  }
  for (const std::string& cell : cells) {
    if (text_columns(line) + cell_width > terminal_columns && text_columns(line) > name_width) {
      text += without_end(line) + "\n";
      line = blanks(name_width);
    }
    const std::size_t width = text_columns(cell);
    line += blanks(cell_width - std::min(width, cell_width)) + cell;
  }
  return text + without_end(line) + "\n";
}

}  // namespace qkcts
