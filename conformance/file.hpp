// SPDX-License-Identifier: Apache-2.0
// Whole files: read with one clear error, written so that a reader sees the old file or the new one, never half of it.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace qkcts {

// A file could not be written. Exit code 6.
class WriteError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws InputError "PATH: reason" if it is no readable regular file or longer than so many bytes.
std::string read_text_file(const std::string& path, std::uint64_t longest = std::uint64_t{64} << 20);

// The same, to be read piece by piece, and again after seekg(0). Reading throws InputError, too: where it fails, or goes
// on beyond so many bytes.
std::unique_ptr<std::istream> open_text_file(const std::string& path, std::uint64_t longest);

// Throws WriteError "PATH: reason" where a new file would take the place of what is no regular file: a device, a pipe.
void require_replaceable(const std::string& path);

// As that of growing_file.hpp, in one piece.
void write_file_atomically(const std::string& path, std::string_view text);

}  // namespace qkcts
