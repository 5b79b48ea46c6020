// SPDX-License-Identifier: Apache-2.0
// Where a command may write: the one home of the rule that nothing is lost which nobody meant to replace.
//
// A new file may take the place of nothing, of an empty file, or of a file of its own kind that the command does not
// read. Everything else is a mistake in the command line: `baseline update run.json`, `generate mine.json -o
// mine.json`.
#pragma once

#include <string>
#include <vector>

#include "harness/file_kind.hpp"

namespace qkcts::cli {

struct Destination {
  std::string path;
  FileKind kind;
};

// `inputs`: the files that the command reads; what is no file is passed over. Throws UsageError where an output is one
// of them (also through links), where two outputs are one file, or where a file of another kind is there; WriteError
// where a device or a pipe is. To be called before any work is done.
void require_destinations(const std::vector<Destination>& outputs, const std::vector<std::string>& inputs);

// Of one output.
void require_destination(const std::string& path, FileKind kind, const std::vector<std::string>& inputs);

}  // namespace qkcts::cli
