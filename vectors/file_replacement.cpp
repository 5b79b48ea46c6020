// SPDX-License-Identifier: Apache-2.0
#include "vectors/file_replacement.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "conformance/file.hpp"

namespace qkcts {
namespace {

// What is wrong with the name is said in the user's words, before any work is done.
void require_place(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw WriteError(fmt::format("{}: is a folder", path));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, error))
    throw WriteError(fmt::format("{}: cannot be written: there is no folder {}", path, folder.string()));
}

void sync_folder(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const int fd = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // the rename stands; only its survival of a power cut is not forced
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

FileReplacement::FileReplacement(std::string path, std::string temporary)
    : path_(std::move(path)), temporary_(std::move(temporary)) {
  require_replaceable(path_);
  require_place(path_);
  if (temporary_.empty()) temporary_ = fmt::format("{}.partial.{}", path_, ::getpid());
}

FileReplacement::~FileReplacement() {
  if (!committed_) ::unlink(temporary_.c_str());
}

void FileReplacement::commit() {
  const int fd = ::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const int sync_errno = errno;
  if (fd >= 0) ::close(fd);
  if (!synced) throw WriteError(fmt::format("{}: cannot be written: {}", path_, std::strerror(sync_errno)));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    throw WriteError(fmt::format("{}: cannot be renamed to: {}", path_, std::strerror(errno)));
  committed_ = true;
  sync_folder(path_);
}

}  // namespace qkcts
