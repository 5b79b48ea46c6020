// SPDX-License-Identifier: Apache-2.0
// A JSON document too long to be held whole.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "conformance/json.hpp"

namespace qkcts {

// As parse_json(), but the objects of the list that stands at the top under `key` are handed over one after another,
// and the list that is returned is empty.
Json parse_json_in_parts(std::string_view text, std::string_view origin, std::string_view key,
                         const std::function<void(const Json& item)>& take);

// The same of a file, of which no more than some kilobytes stand in memory. Throws as read_text_file() does, too.
Json parse_json_file_in_parts(const std::string& path, std::uint64_t longest, std::string_view key,
                              const std::function<void(const Json& item)>& take);

}  // namespace qkcts
