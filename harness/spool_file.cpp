// SPDX-License-Identifier: Apache-2.0
#include "harness/spool_file.hpp"

#include <algorithm>
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

SpoolFile::SpoolFile(SpoolFile&& other) noexcept {
  *this = std::move(other);
}

SpoolFile& SpoolFile::operator=(SpoolFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(refused_, other.refused_);
  std::swap(end_, other.end_);
  std::swap(held_, other.held_);
  return *this;
}

SpoolFile::Place SpoolFile::put(std::span<const std::byte> bytes, Place old) {
  if (bytes.empty()) return {};
  const Place place = {bytes.size() <= old.bytes ? old.start : end_, bytes.size()};
  if (old.bytes > 0) held_.erase(old.start);
  end_ = std::max(end_, place.start + place.bytes);
  if (!write(place.start, bytes)) held_[place.start] = {bytes.begin(), bytes.end()};
  return place;
}

std::vector<std::byte> SpoolFile::get(Place place) const {
  if (place.bytes == 0) return {};
  if (const auto held = held_.find(place.start); held != held_.end()) return held->second;
  std::vector<std::byte> bytes(place.bytes);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = pread(file_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(place.start + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw std::runtime_error("the temporary file of the results cannot be read back");
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

bool SpoolFile::write(std::uint64_t start, std::span<const std::byte> bytes) {
  if (refused_) return false;
  if (file_ < 0) file_ = nameless_file();
  refused_ = file_ < 0;
  while (!refused_ && !bytes.empty()) {
    const ssize_t put = pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(start));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      refused_ = true;
    } else {
      bytes = bytes.subspan(static_cast<std::size_t>(put));
      start += static_cast<std::uint64_t>(put);
    }
  }
  return !refused_;
}

}  // namespace qkcts
