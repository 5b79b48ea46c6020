// SPDX-License-Identifier: Apache-2.0
#include "harness/utf8_text.hpp"

#include <algorithm>
#include <cstddef>

namespace qkcts {
namespace {

// Length of the well-formed sequence at the start of `bytes` (Unicode 15, table 3-7), 0 if there is none.
std::size_t sequence_length(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0; };
  const auto tail = [&](std::size_t i) { return at(i) >= 0x80 && at(i) <= 0xBF; };
  const int lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const int low = lead == 0xE0 ? 0xA0 : 0x80, high = lead == 0xED ? 0x9F : 0xBF;
    return at(1) >= low && at(1) <= high && tail(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const int low = lead == 0xF0 ? 0x90 : 0x80, high = lead == 0xF4 ? 0x8F : 0xBF;
    return at(1) >= low && at(1) <= high && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string utf8_text(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t length = sequence_length(bytes);
    const auto first = static_cast<unsigned char>(bytes[0]);
    const bool control = (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F;
    const bool late_control = length == 2 && first == 0xC2 && static_cast<unsigned char>(bytes[1]) < 0xA0;
    const std::string_view character = bytes.substr(0, length);
    if (late_control || character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF") {
      text += '?';
      bytes.remove_prefix(length);
    } else if (length == 0 || control) {
      text += '?';
      bytes.remove_prefix(1);
    } else {
      text += bytes.substr(0, length);
      bytes.remove_prefix(length);
    }
  }
  return text;
}

std::string utf8_line(std::string_view bytes) {
  std::string line = utf8_text(bytes);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace qkcts
