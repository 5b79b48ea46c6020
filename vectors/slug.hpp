// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace qkcts {

// [a-z0-9_]+(/[a-z0-9_]+)*, at most 200 characters and 8 parts.
bool is_slug(std::string_view text);
bool is_name(std::string_view text);  // [a-z0-9_]+

}  // namespace qkcts
