// SPDX-License-Identifier: Apache-2.0
// A certificate as one file to send.
#pragma once

#include <string>

namespace qkcts::cli {

// FOLDER.tar.zst beside the folder, which need not be there.
std::string archive_path(const std::string& folder);

// Writes it, if tar and zstd are at hand. Returns its path, or nothing where they are not: the folder is the
// certificate, the archive only a wrapping.
std::string archive_certificate(const std::string& folder);

}  // namespace qkcts::cli
