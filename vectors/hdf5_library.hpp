// SPDX-License-Identifier: Apache-2.0
// What reading and writing share: the door to <hdf5.h>, for vectors/hdf5_*.cpp alone.
#pragma once

#define H5_USE_110_API
#include <hdf5.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "vectors/hdf5_file.hpp"

namespace qkcts::hdf5 {

constexpr std::uint64_t chunk_bytes = 1024 * 1024;
constexpr H5Z_filter_t filters[] = {H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32};

// Held by every public call. The library may be built without thread safety, keeps error printing per thread, and would
// otherwise run its own clean-up at exit, which loops when a file could not be flushed (full disk).
class LibraryLock {
 public:
  LibraryLock();

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

class Handle {
 public:
  using Closer = herr_t (*)(hid_t);
  Handle(hid_t id, Closer closer) : id_(id), closer_(closer) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), closer_(other.closer_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(closer_, other.closer_);
    return *this;
  }
  ~Handle() { close(); }
  bool close() {
    const hid_t id = std::exchange(id_, -1);
    return id < 0 || closer_(id) >= 0;
  }
  operator hid_t() const { return id_; }  // NOLINT(google-explicit-constructor)
  bool valid() const { return id_ >= 0; }

 private:
  hid_t id_;
  Closer closer_;
};

// The library's own words for the innermost failure, cut to what does not change from run to run.
std::string library_reason();

hid_t file_type(StoredType type);  // under the lock; not to be closed
Handle access_list();

}  // namespace qkcts::hdf5
