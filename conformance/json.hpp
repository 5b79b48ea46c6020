// SPDX-License-Identifier: Apache-2.0
// The door to nlohmann/json: every other file reads and writes JSON through this header.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace qkcts {

using Json = nlohmann::json;

// Strict RFC 8259. Beyond the grammar these are errors: duplicate keys, nesting deeper than 64, numbers outside
// binary64, invalid UTF-8. Throws InputError "ORIGIN:LINE:COLUMN: reason".
Json parse_json(std::string_view text, std::string_view origin);

// One line, keys in byte order, integers as such, other numbers as the shortest decimal that reads back to the same
// binary64. Equal documents have equal texts. Throws InputError for NaN and infinities.
std::string canonical_text(const Json& value);

}  // namespace qkcts
