// SPDX-License-Identifier: Apache-2.0
// Bytes put aside in a temporary file that has no name: it is gone with the process, however that ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace qkcts {

class SpoolFile {
 public:
  SpoolFile() = default;
  ~SpoolFile();
  SpoolFile(SpoolFile&& other) noexcept;
  SpoolFile& operator=(SpoolFile&& other) noexcept;

  // At this place, which may lie behind the end. False if there is no room, or no folder for temporary files: then what
  // was to be written has to stay where it is.
  bool write(std::uint64_t place, std::span<const std::byte> bytes);
  // What was written there. Throws std::runtime_error if it is there no more.
  std::vector<std::byte> read(std::uint64_t place, std::size_t count) const;

 private:
  int file_ = -1;         // opened with the first write
  bool refused_ = false;  // once there was no room, nothing more is tried
};

}  // namespace qkcts
