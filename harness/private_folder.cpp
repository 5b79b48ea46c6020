// SPDX-License-Identifier: Apache-2.0
#include "harness/private_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "conformance/file.hpp"

namespace qkcts {

namespace fs = std::filesystem;

PrivateFolder::PrivateFolder() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) throw WriteError(fmt::format("TMPDIR names no folder: {}", error.message()));
  path_ = (parent / "qkcts_XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr)
    throw WriteError(fmt::format("{}: no folder can be made there: {}", parent.string(), std::strerror(errno)));
}

PrivateFolder::~PrivateFolder() {
  std::error_code error;  // what cannot be removed is not worth the end of a run
  fs::remove_all(path_, error);
}

void PrivateFolder::clear() const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_, error)) fs::remove_all(entry.path(), error);
}

}  // namespace qkcts
