// SPDX-License-Identifier: Apache-2.0
// A folder that nobody else can look into, for the files of one run.
#pragma once

#include <string>

namespace qkcts {

class PrivateFolder {
 public:
  // In $TMPDIR or /tmp, mode 0700. Throws WriteError.
  PrivateFolder();
  ~PrivateFolder();  // removes it with all that is in it
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const { return path_; }
  void clear() const;

 private:
  std::string path_;
};

}  // namespace qkcts
