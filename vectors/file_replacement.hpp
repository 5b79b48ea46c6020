// SPDX-License-Identifier: Apache-2.0
// A new file takes the place of an old one whole, or not at all.
#pragma once

#include <string>

namespace qkcts {

// The new content is written to temporary() by whatever library; commit() forces it to the medium and gives it its
// name. Without commit() the temporary file is removed and the old one stands.
class FileReplacement {
 public:
  // The temporary name lies in the same folder and is apart from those of other runs, unless one is given. Throws
  // WriteError where `path` cannot be a file: a folder, a device, a folder that is not there.
  explicit FileReplacement(std::string path, std::string temporary = {});
  ~FileReplacement();
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;

  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }
  // fsync, rename. Throws WriteError.
  void commit();

 private:
  std::string path_, temporary_;
  bool committed_ = false;
};

}  // namespace qkcts
