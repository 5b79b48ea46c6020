// SPDX-License-Identifier: Apache-2.0
// What kind of file stands under a name: so that no command overwrites a file of another kind, and that a file in the
// wrong place is called by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace qkcts {

enum class FileKind : std::uint8_t {
  corpus,
  requests,
  results,
  library,
  contract,
  run,
  baseline,
  certificate,
  archive,
  bench,
  adequacy,
  page,
  markdown,
  junit,
  ctrf,
  code_quality,
  drawing,
  journal,
};

// "a corpus", "the run.json of a run", with its article.
std::string_view kind_name(FileKind kind);

// By marks in its first and last bytes: no proof that it can be read. Nothing for what is no regular file, cannot be
// opened, or is of no such kind.
std::optional<FileKind> file_kind(const std::string& path);

// The same file, also through symbolic and hard links. False if one of them is not there.
bool is_same_file(const std::string& a, const std::string& b);

// Throws InputError where a file of another kind, or a folder, stands in the place of `wanted`; what is of no known
// kind is left to its reader.
void require_kind(const std::string& path, FileKind wanted);

}  // namespace qkcts
