// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace qkcts {

// Text from outside as JSON, XML, HTML and terminals may hold it: control characters other than newline and tab, the
// noncharacters U+FFFE and U+FFFF, and every byte that is not part of well-formed UTF-8, become '?'.
std::string utf8_text(std::string_view bytes);

// The same with line ends as blanks, for messages that must stay on one line.
std::string utf8_line(std::string_view bytes);

}  // namespace qkcts
