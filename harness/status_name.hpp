// SPDX-License-Identifier: Apache-2.0
// The statuses of the ABI as words, for messages and files.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace qkcts {

// "ok", "unsupported", "unavailable", "out_of_memory", "invalid", "internal"; "" for a number that is no qkcts_status.
std::string_view status_word(std::uint32_t status);
std::optional<std::uint32_t> status_named(std::string_view word);

}  // namespace qkcts
