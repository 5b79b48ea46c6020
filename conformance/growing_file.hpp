// SPDX-License-Identifier: Apache-2.0
// A file that is written piece by piece, and that a reader sees whole or not at all.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace qkcts {

// Takes the next piece of a text.
using TextSink = std::function<void(std::string_view piece)>;

// A file without a name in the same folder, fsync, its name; a temporary name and rename where there is a PATH already.
// Throws WriteError "PATH: reason" (file.hpp) and what `write` throws. Whatever ends it meanwhile leaves nothing behind,
// but for a whole PATH.partial.PID if it is killed between the last two steps; where the file system has no files without a name, that
// is the name from the beginning, and a kill leaves what was written.
void write_file_atomically(const std::string& path, const std::function<void(const TextSink& sink)>& write);

// All of the pieces.
std::string text_of(const std::function<void(const TextSink& sink)>& write);

}  // namespace qkcts
