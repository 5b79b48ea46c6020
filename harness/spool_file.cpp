// SPDX-License-Identifier: Apache-2.0
#include "harness/spool_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace qkcts {
namespace {

// Not every file system knows O_TMPFILE.
int nameless_file() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return -1;
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  std::string name = (folder / "qkcts-XXXXXX").string();
  const int named = mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) unlink(name.c_str());
  return named;
}

}  // namespace

SpoolFile::~SpoolFile() {
  if (file_ >= 0) close(file_);
}

SpoolFile::SpoolFile(SpoolFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), refused_(std::exchange(other.refused_, false)) {}

SpoolFile& SpoolFile::operator=(SpoolFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(refused_, other.refused_);
  return *this;
}

bool SpoolFile::write(std::uint64_t place, std::span<const std::byte> bytes) {
  if (refused_) return false;
  if (file_ < 0) file_ = nameless_file();
  refused_ = file_ < 0;
  while (!refused_ && !bytes.empty()) {
    const ssize_t put = pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(place));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      refused_ = true;
    } else {
      bytes = bytes.subspan(static_cast<std::size_t>(put));
      place += static_cast<std::uint64_t>(put);
    }
  }
  return !refused_;
}

std::vector<std::byte> SpoolFile::read(std::uint64_t place, std::size_t count) const {
  std::vector<std::byte> bytes(count);
  for (std::size_t done = 0; done < count;) {
    const ssize_t got = pread(file_, bytes.data() + done, count - done, static_cast<off_t>(place + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw std::runtime_error("the temporary file of the results cannot be read back");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace qkcts
