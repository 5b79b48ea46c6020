// SPDX-License-Identifier: Apache-2.0
// A file that is written piece by piece, and that a reader sees whole or not at all.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace qkcts {

// Takes the next piece of a text.
using TextSink = std::function<void(std::string_view piece)>;

// Temporary name in the same folder, fsync, rename. Throws WriteError "PATH: reason" (file.hpp) and what `write`
// throws, and leaves no temporary file behind but where it is killed (PATH.partial.PID).
void write_file_atomically(const std::string& path, const std::function<void(const TextSink& sink)>& write);

// All of the pieces.
std::string text_of(const std::function<void(const TextSink& sink)>& write);

}  // namespace qkcts
