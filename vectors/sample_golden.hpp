// SPDX-License-Identifier: Apache-2.0
// Small proven cases for the tests of this folder.
#pragma once

#include <filesystem>
#include <string>

#include "vectors/generate.hpp"

namespace qkcts {

// For example sample_plan("qwen3_rmsnorm", "gaussian", Format::bfloat16, "1,2,1,3,4,8,6").
PlannedCase sample_plan(const std::string& contract, const std::string& family, Format format,
                        const std::string& shape);
GoldenCase sample_golden(const std::string& contract, const std::string& family, Format format,
                         const std::string& shape);

// The same case as files of the first three versions hold it.
GoldenCase without_separation(GoldenCase golden);

// A case of format version 2 made by hand out of one of version 1: the last key of batch entry 0 is hidden, and holds
// every kind of NaN and infinity; its row of k_norm is not judged.
GoldenCase golden_with_excluded_keys(Format format);

// A folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::size_t file_count() const;

 private:
  std::filesystem::path path_;
};

std::string file_bytes(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);
// A corpus of these cases; returns its path.
std::string write_corpus(const TemporaryFolder& folder, const std::string& name, std::vector<GoldenCase> cases);

}  // namespace qkcts
