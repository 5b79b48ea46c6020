// SPDX-License-Identifier: Apache-2.0
// What request and result files have in common.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/case.hpp"
#include "vectors/hdf5_file.hpp"

namespace qkcts {

// SHA-256 over contract, format, shape and the bits of every input: what was asked, whatever the case is called.
std::string request_digest(const Case& c);

void write_exchange_head(Hdf5Output& file, std::string_view format);
// Throws InputError unless the file has this format and a version that this program reads.
void require_exchange_head(const Hdf5Input& file, std::string_view format);

// Makes the group and those above it that are not there yet.
class GroupMaker {
 public:
  explicit GroupMaker(Hdf5Output& file) : file_(file) {}
  void make(const std::string& group);

 private:
  Hdf5Output& file_;
  std::set<std::string> made_;
};

// Slugs of the groups below /cases that have this attribute, sorted. Throws InputError for what is no slug.
std::vector<std::string> marked_slugs(const Hdf5Input& file, const char* mark);

// The first look at a file of unknown origin: `read_all` reads everything that will be read of it, in a child process
// that may crash, hang or run out of memory; then InputError. Its InputErrors are left to the second look. Call it
// while the process has one thread.
void look_in_child(const std::string& path, const std::function<void()>& read_all);

}  // namespace qkcts
