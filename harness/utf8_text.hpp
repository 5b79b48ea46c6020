// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace qkcts {

// Text from outside as JSON, XML and HTML may hold it: control characters other than newline and tab, and every byte
// that is not part of well-formed UTF-8, become '?'.
std::string utf8_text(std::string_view bytes);

}  // namespace qkcts
