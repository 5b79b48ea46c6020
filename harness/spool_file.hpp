// SPDX-License-Identifier: Apache-2.0
// Bytes put aside in a temporary file that has no name: it is gone with the process, however that ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace qkcts {

class SpoolFile {
 public:
  struct Place {
    std::uint64_t start, bytes;
  };

  SpoolFile() = default;
  ~SpoolFile();
  SpoolFile(SpoolFile&& other) noexcept;
  SpoolFile& operator=(SpoolFile&& other) noexcept;

  // In the place of `old`, which nobody reads any more, if there is room. Where there is none in the folder for
  // temporary files, or no such folder, the bytes stay in memory.
  Place put(std::span<const std::byte> bytes, Place old = {});
  // Throws std::runtime_error if they are there no more.
  std::vector<std::byte> get(Place place) const;

 private:
  bool write(std::uint64_t start, std::span<const std::byte> bytes);

  int file_ = -1;         // opened with the first bytes
  bool refused_ = false;  // once there was no room, nothing more is tried
  std::uint64_t end_ = 0;
  std::map<std::uint64_t, std::vector<std::byte>> held_;  // what the file did not take, by its start
};

}  // namespace qkcts
