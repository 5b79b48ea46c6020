// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "conformance/file.hpp"
#include "vectors/hdf5_library.hpp"

namespace qkcts {

using hdf5::Handle;
using hdf5::LibraryLock;

namespace {

// From this many bytes on a dataset is cut into chunks and compressed.
constexpr std::uint64_t contiguous_limit = 64 * 1024;
constexpr unsigned deflate_level = 6;
constexpr unsigned compact_entries = 64;  // members and attributes of a group that stay in its header

[[noreturn]] void cannot_write(const std::string& file, const std::string& object) {
  const std::string reason = hdf5::library_reason();
  throw WriteError(object.empty() ? fmt::format("{}: cannot be written: {}", file, reason)
                                  : fmt::format("{}: /{}: cannot be written: {}", file, object, reason));
}

Handle text_type(std::size_t length) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, length);
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

// No clock in the file, and no heaps for a handful of entries.
void set_group_properties(hid_t list) {
  H5Pset_obj_track_times(list, false);
  H5Pset_attr_phase_change(list, compact_entries, compact_entries / 2);
  H5Pset_link_phase_change(list, compact_entries, compact_entries / 2);
}

// Cuts the leading axes until a chunk is small enough; the fast axes stay whole.
std::vector<hsize_t> chunk_extents(const std::vector<std::uint64_t>& extents, std::size_t element) {
  std::vector<hsize_t> chunk(extents.begin(), extents.end());
  std::uint64_t bytes = element;
  for (const hsize_t extent : chunk) bytes *= extent;
  for (std::size_t axis = 0; axis < chunk.size() && bytes > hdf5::chunk_bytes; ++axis) {
    const std::uint64_t rest = bytes / chunk[axis];
    chunk[axis] = std::max<hsize_t>(1, hdf5::chunk_bytes / rest);
    bytes = rest * chunk[axis];
  }
  return chunk;
}

}  // namespace

struct Hdf5Output::State {
  std::string shown;
  Handle file{-1, H5Fclose};

  void write_attribute(const std::string& object, const char* name, hid_t type, hid_t space, const void* data) const {
    const Handle owner(H5Oopen(file, object.empty() ? "/" : object.c_str(), H5P_DEFAULT), H5Oclose);
    const Handle attribute(H5Acreate2(owner, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    if (!owner.valid() || !attribute.valid() || H5Awrite(attribute, type, data) < 0) cannot_write(shown, object);
  }
};

Hdf5Output::Hdf5Output(const std::string& path, const std::string& shown) : state_(std::make_unique<State>()) {
  const LibraryLock lock;
  state_->shown = shown.empty() ? path : shown;
  const Handle access = hdf5::access_list();
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  set_group_properties(creation);
  state_->file = Handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access), H5Fclose);
  if (!state_->file.valid()) cannot_write(path, {});
}

Hdf5Output::~Hdf5Output() {
  const LibraryLock lock;
  state_.reset();
}

void Hdf5Output::create_group(const std::string& group) {
  const LibraryLock lock;
  const Handle list(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  set_group_properties(list);
  const Handle made(H5Gcreate2(state_->file, group.c_str(), H5P_DEFAULT, list, H5P_DEFAULT), H5Gclose);
  if (!made.valid()) cannot_write(state_->shown, group);
}

void Hdf5Output::link_external(const std::string& name, const std::string& file, const std::string& object) {
  const LibraryLock lock;
  if (H5Lcreate_external(file.c_str(), object.c_str(), state_->file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT) < 0)
    cannot_write(state_->shown, name);
}

void Hdf5Output::write_dataset(const std::string& dataset, StoredType type, const std::vector<std::uint64_t>& extents,
                               std::span<const std::byte> bytes) {
  const LibraryLock lock;
  const hid_t stored = hdf5::file_type(type);
  const std::vector<hsize_t> dims(extents.begin(), extents.end());
  const Handle space(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose);
  const Handle list(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(list, false);
  H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
  if (bytes.size() > contiguous_limit) {
    const std::vector<hsize_t> chunk = chunk_extents(extents, stored_size(type));
    H5Pset_chunk(list, static_cast<int>(chunk.size()), chunk.data());
    H5Pset_shuffle(list);
    H5Pset_deflate(list, deflate_level);
    H5Pset_fletcher32(list);
  }
  const Handle made(H5Dcreate2(state_->file, dataset.c_str(), stored, space, H5P_DEFAULT, list, H5P_DEFAULT), H5Dclose);
  if (!made.valid() || H5Dwrite(made, stored, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0)
    cannot_write(state_->shown, dataset);
}

void Hdf5Output::write_text(const std::string& object, const char* name, std::string_view text) {
  const LibraryLock lock;
  const std::string padded = text.empty() ? std::string(1, '\0') : std::string(text);
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  state_->write_attribute(object, name, text_type(padded.size()), space, padded.data());
}

void Hdf5Output::write_texts(const std::string& object, const char* name, const std::vector<std::string>& texts) {
  const LibraryLock lock;
  std::size_t width = 1;
  for (const std::string& text : texts) width = std::max(width, text.size());
  std::string padded(width * texts.size(), '\0');
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i].copy(padded.data() + i * width, width);
  const hsize_t count = texts.size();
  const Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
  state_->write_attribute(object, name, text_type(width), space, padded.data());
}

void Hdf5Output::write_numbers(const std::string& object, const char* name, StoredType type,
                               std::span<const std::byte> bytes) {
  const LibraryLock lock;
  const hsize_t count = bytes.size() / stored_size(type);
  const Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
  state_->write_attribute(object, name, hdf5::file_type(type), space, bytes.data());
}

void Hdf5Output::overwrite_numbers(const std::string& object, const char* name, StoredType type,
                                   std::span<const std::byte> bytes) {
  const LibraryLock lock;
  const Handle owner(H5Oopen(state_->file, object.empty() ? "/" : object.c_str(), H5P_DEFAULT), H5Oclose);
  const Handle attribute(H5Aopen(owner, name, H5P_DEFAULT), H5Aclose);
  if (!attribute.valid() || H5Awrite(attribute, hdf5::file_type(type), bytes.data()) < 0)
    cannot_write(state_->shown, object);
}

void Hdf5Output::close() {
  const LibraryLock lock;
  if (!state_->file.valid()) return;
  if (H5Fflush(state_->file, H5F_SCOPE_GLOBAL) < 0 || !state_->file.close()) cannot_write(state_->shown, {});
}

}  // namespace qkcts
