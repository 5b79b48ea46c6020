// SPDX-License-Identifier: Apache-2.0
// Reading the group of one case, each object checked before it is used.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "vectors/golden_case.hpp"
#include "vectors/hdf5_file.hpp"

namespace qkcts {

template <class T>
std::vector<T> as_array(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// Reads one case; counts the bytes that it asks for against the limit of a case.
class CaseReading {
 public:
  CaseReading(const Hdf5Input& file, std::string group) : file_(file), group_(std::move(group)) {}

  [[noreturn]] void refuse(const std::string& object, std::string_view reason) const;

  // The names found: all of the required ones and some of the optional ones.
  std::vector<std::string> expect_members(const std::string& group, const std::vector<std::string>& required,
                                          const std::vector<std::string>& optional = {}) const;

  std::vector<std::byte> dataset(const std::string& name, StoredType type, const std::vector<std::uint64_t>& extents);

  Tensor input(const InputRequirement& need, const qkcts_shape& shape);
  GoldenStage stage(qkcts_stage stage, const Case& c, std::size_t profiles);
  // Behind the stages: elements lie in rows that are stored.
  SeparationRecord separation(const GoldenCase& golden);
  qkcts_shape shape() const;
  Range range(const char* name) const;
  Format format() const;

  const Hdf5Input& file() const { return file_; }
  const std::string& group() const { return group_; }

 private:
  std::vector<std::byte> take(const std::string& name, std::uint64_t bytes);
  std::vector<std::uint32_t> all_rows(const std::string& group, qkcts_stage stage, const qkcts_shape& shape) const;
  std::vector<std::uint32_t> some_rows(const std::string& group, qkcts_stage stage, const qkcts_shape& shape);
  void check_values(const std::string& group, qkcts_stage stage, const Case& c, const GoldenStage& golden) const;
  void check_special(const std::string& group, qkcts_stage stage, const Case& c, const GoldenStage& golden) const;
  void check_separation(const SeparationRecord& record, const GoldenCase& golden) const;

  const Hdf5Input& file_;
  std::string group_;
  std::uint64_t taken_ = 0;
};

}  // namespace qkcts
