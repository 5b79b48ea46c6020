// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "conformance/contract.hpp"
#include "vectors/hdf5_library.hpp"

namespace qkcts {

using hdf5::Handle;
using hdf5::LibraryLock;

namespace {

// Deflate cannot shrink data by more than this factor, so fewer stored bytes cannot hold what is promised.
constexpr std::uint64_t deflate_ratio = 1032;
constexpr std::size_t most_members = 65536;
constexpr int highest_rank = 8;
constexpr std::size_t longest_link = 2048;

constexpr StoredType all_stored_types[] = {StoredType::binary64, StoredType::binary32, StoredType::binary16,
                                           StoredType::bfloat16, StoredType::uint8,    StoredType::int16,
                                           StoredType::uint32,   StoredType::int32,    StoredType::uint64,
                                           StoredType::int64,    StoredType::uint16};

[[noreturn]] void refuse(const std::string& path, const std::string& object, std::string_view reason) {
  throw InputError(fmt::format("{}: /{}: {}", path, object, reason));
}

[[noreturn]] void cannot_read(const std::string& path, const std::string& object) {
  refuse(path, object, "cannot be read: " + hdf5::library_reason());
}

std::string inside(const std::string& group, const std::string& name) {
  return group.empty() ? name : fmt::format("{}/{}", group, name);
}

// What it has read of the structure of a file the library keeps: by default more and more of it, up to 32 MiB as
// stored, of which the attributes of cases take more than ten times that in memory. A corpus is read from its beginning
// to its end, and little of it is asked for twice. The names of a large group are, and are one piece: for such a piece
// alone more room is made, up to max_size.
void keep_little_structure(hid_t access) {
  H5AC_cache_config_t cache{};
  cache.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  if (H5Pget_mdc_config(access, &cache) < 0) return;
  cache.set_initial_size = true;
  cache.initial_size = std::size_t{1} << 19;
  cache.min_size = cache.initial_size;
  cache.max_size = std::size_t{4} << 20;
  cache.incr_mode = H5C_incr__off;
  H5Pset_mdc_config(access, &cache);
}

}  // namespace

struct Hdf5Input::State {
  std::string path;
  Handle file{-1, H5Fclose};

  struct OpenGroup {
    std::string name;
    Handle handle;
  };
  // The groups on the way to the object that was opened last: neighbours are asked for one after another.
  mutable std::vector<OpenGroup> trail;

  // The link must be the only hard link to its object.
  H5O_type_t kind_of(hid_t group, const std::string& name, const std::string& object) const {
    H5L_info_t link{};
    if (H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0) refuse(path, object, "is missing");
    if (link.type != H5L_TYPE_HARD) refuse(path, object, "is a soft or external link; only plain objects are read");
    H5O_info_t info{};
    if (H5Oget_info_by_name2(group, name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) cannot_read(path, object);
    if (info.rc != 1) refuse(path, object, "is linked more than once");
    return info.type;
  }

  Handle step(hid_t group, const std::string& name, const std::string& object, H5O_type_t kind) const {
    const H5O_type_t found = kind_of(group, name, object);
    if (kind != H5O_TYPE_UNKNOWN && found != kind)
      refuse(path, object, kind == H5O_TYPE_GROUP ? "is no group" : "is no dataset");
    Handle next(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose);
    if (!next.valid()) cannot_read(path, object);
    return next;
  }

  std::vector<std::string> names_in(hid_t owner, const std::string& group) const {
    H5G_info_t info{};
    if (H5Gget_info(owner, &info) < 0) cannot_read(path, group);
    if (info.nlinks > most_members) refuse(path, group, "has too many members");
    std::vector<std::string> names;
    const auto keep = [](hid_t, const char* name, const H5L_info_t*, void* data) -> herr_t {
      auto* list = static_cast<std::vector<std::string>*>(data);
      if (list->size() >= most_members) return 1;
      list->emplace_back(name);
      return 0;
    };
    hsize_t position = 0;
    if (H5Literate(owner, H5_INDEX_NAME, H5_ITER_INC, &position, keep, &names) != 0) cannot_read(path, group);
    for (const std::string& name : names)
      if (name.empty() || name == "." || name.find('/') != std::string::npos) refuse(path, group, "odd name");
    return names;
  }

  bool is_group(hid_t owner, const std::string& name, const std::string& group) const {
    const H5O_type_t kind = kind_of(owner, name, inside(group, name));
    if (kind != H5O_TYPE_GROUP && kind != H5O_TYPE_DATASET)
      refuse(path, inside(group, name), "is neither group nor dataset");
    return kind == H5O_TYPE_GROUP;
  }

  void read_target(hid_t owner, const std::string& name, const std::string& group, std::size_t size,
                   StoredLink& found) const {
    std::vector<char> value(size);
    unsigned flags = 0;
    const char* file_name = nullptr;
    const char* object = nullptr;
    if (size == 0 || size > longest_link || H5Lget_val(owner, name.c_str(), value.data(), size, H5P_DEFAULT) < 0 ||
        H5Lunpack_elink_val(value.data(), size, &flags, &file_name, &object) < 0)
      refuse(path, inside(group, name), "is no external link that can be read");
    found.file = file_name;
    found.object = object;
  }

  // Follows the path link by link, from where the last one left it.
  Handle open(const std::string& object, H5O_type_t kind) const {
    if (trail.empty()) trail.push_back({"", Handle(H5Gopen2(file, "/", H5P_DEFAULT), H5Oclose)});
    if (!trail.front().handle.valid()) cannot_read(path, object);
    std::size_t depth = 1;
    std::size_t start = 0;
    while (start < object.size()) {
      const std::size_t end = std::min(object.find('/', start), object.size());
      const std::string name = object.substr(start, end - start);
      if (depth < trail.size() && trail[depth].name != name) trail.erase(trail.begin() + depth, trail.end());
      if (end == object.size()) return step(trail[depth - 1].handle, name, object, kind);
      if (depth == trail.size())
        trail.push_back({name, step(trail.back().handle, name, object.substr(0, end), H5O_TYPE_GROUP)});
      ++depth;
      start = end + 1;
    }
    return Handle(H5Gopen2(file, "/", H5P_DEFAULT), H5Oclose);
  }

  struct OpenDataset {
    std::string name;
    Handle handle{-1, H5Oclose};
    StoredDataset stored{};
  };
  mutable OpenDataset last;  // described a moment ago, and about to be read

  const OpenDataset& look_at(const std::string& name) const {
    if (last.name == name && last.handle.valid()) return last;
    OpenDataset opened{name, open(name, H5O_TYPE_DATASET)};
    opened.stored = describe(opened.handle, name);
    last = std::move(opened);
    return last;
  }

  StoredDataset describe(hid_t dataset, const std::string& name) const {
    const Handle type(H5Dget_type(dataset), H5Tclose);
    const Handle space(H5Dget_space(dataset), H5Sclose);
    if (!type.valid() || !space.valid()) cannot_read(path, name);
    StoredDataset result{type_of(type, name), extents_of(space, name), 0};
    result.bytes = stored_size(result.type);
    for (const std::uint64_t extent : result.extents) {
      if (extent > std::uint64_t{1} << 40 || result.bytes > (std::uint64_t{1} << 48) / extent)
        refuse(path, name, "is impossibly large");
      result.bytes *= extent;
    }
    check_layout(dataset, name, result);
    return result;
  }

  StoredType type_of(hid_t type, const std::string& name) const {
    const H5T_class_t kind = H5Tget_class(type);
    if (kind == H5T_INTEGER || kind == H5T_FLOAT)
      for (const StoredType candidate : all_stored_types)
        if (H5Tequal(type, hdf5::file_type(candidate)) > 0) return candidate;
    refuse(path, name, "has an element type that the format does not know");
  }

  std::vector<std::uint64_t> extents_of(hid_t space, const std::string& name) const {
    const int rank = H5Sget_simple_extent_ndims(space);
    if (H5Sget_simple_extent_type(space) != H5S_SIMPLE || rank < 1 || rank > highest_rank)
      refuse(path, name, "is no array of 1 to 8 axes");
    std::vector<hsize_t> dims(static_cast<std::size_t>(rank)), most(static_cast<std::size_t>(rank));
    if (H5Sget_simple_extent_dims(space, dims.data(), most.data()) < 0) cannot_read(path, name);
    if (std::find(dims.begin(), dims.end(), hsize_t{0}) != dims.end()) refuse(path, name, "has an empty axis");
    if (dims != most) refuse(path, name, "can be extended");
    return {dims.begin(), dims.end()};
  }

  void check_layout(hid_t dataset, const std::string& name, const StoredDataset& stored) const {
    const Handle list(H5Dget_create_plist(dataset), H5Pclose);
    if (!list.valid()) cannot_read(path, name);
    const H5D_layout_t layout = H5Pget_layout(list);
    const int filter_count = H5Pget_nfilters(list);
    const std::uint64_t storage = H5Dget_storage_size(dataset);
    if (layout == H5D_CONTIGUOUS) {
      if (filter_count != 0 || H5Pget_external_count(list) != 0) refuse(path, name, "has data outside the file");
      if (storage != stored.bytes) refuse(path, name, "has no data");
      return;
    }
    if (layout != H5D_CHUNKED) refuse(path, name, "has a storage layout that the format does not know");
    hsize_t chunk[highest_rank] = {};
    const int rank = H5Pget_chunk(list, highest_rank, chunk);
    if (rank != static_cast<int>(stored.extents.size())) cannot_read(path, name);
    std::uint64_t bytes = stored_size(stored.type);
    for (int axis = 0; axis < rank; ++axis) {
      if (chunk[axis] < 1 || chunk[axis] > stored.extents[static_cast<std::size_t>(axis)])
        refuse(path, name, "has a chunk larger than itself");
      bytes *= chunk[axis];
    }
    if (bytes > 64 * hdf5::chunk_bytes) refuse(path, name, "has chunks that are too large");
    if (filter_count != static_cast<int>(std::size(hdf5::filters))) refuse(path, name, "has foreign filters");
    for (unsigned i = 0; i < std::size(hdf5::filters); ++i) {
      unsigned flags = 0;
      std::size_t value_count = 0;
      if (H5Pget_filter2(list, i, &flags, &value_count, nullptr, 0, nullptr, nullptr) != hdf5::filters[i])
        refuse(path, name, "has foreign filters");
    }
    if (storage == 0 || stored.bytes / storage > deflate_ratio) refuse(path, name, "has less data than it promises");
  }

  // Opens an attribute, checks that it is `count` texts or numbers of a small size; the caller checks the type.
  Handle open_attribute(hid_t owner, const std::string& object, const char* name) const {
    if (H5Aexists(owner, name) <= 0) refuse(path, object, fmt::format("attribute {} is missing", name));
    Handle attribute(H5Aopen(owner, name, H5P_DEFAULT), H5Aclose);
    if (!attribute.valid()) cannot_read(path, object);
    if (H5Aget_storage_size(attribute) > largest_attribute)
      refuse(path, object, fmt::format("attribute {} is too large", name));
    return attribute;
  }

  std::size_t attribute_count(hid_t attribute, const std::string& object, const char* name) const {
    const Handle space(H5Aget_space(attribute), H5Sclose);
    if (!space.valid()) cannot_read(path, object);
    const H5S_class_t kind = H5Sget_simple_extent_type(space);
    if (kind == H5S_SCALAR) return 1;
    const hssize_t count = kind == H5S_SIMPLE && H5Sget_simple_extent_ndims(space) == 1
                               ? H5Sget_simple_extent_npoints(space)
                               : hssize_t{-1};
    if (count < 1 || count > static_cast<hssize_t>(largest_attribute))
      refuse(path, object, fmt::format("attribute {} is no list", name));
    return static_cast<std::size_t>(count);
  }
};

Hdf5Input::Hdf5Input(const std::string& path) : state_(std::make_unique<State>()) {
  const LibraryLock lock;
  state_->path = path;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw InputError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  if (!S_ISREG(status.st_mode)) throw InputError(fmt::format("{}: is no regular file", path));
  const Handle access = hdf5::access_list();
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(access, false, true);  // a corpus may lie on a read-only or network file system
#endif
  keep_little_structure(access);
  if (H5Fis_hdf5(path.c_str()) <= 0) throw InputError(fmt::format("{}: is no HDF5 file", path));
  state_->file = Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose);
  if (!state_->file.valid()) throw InputError(fmt::format("{}: cannot be opened: {}", path, hdf5::library_reason()));
}

Hdf5Input::~Hdf5Input() {
  const LibraryLock lock;
  state_.reset();
}
Hdf5Input::Hdf5Input(Hdf5Input&&) noexcept = default;
Hdf5Input& Hdf5Input::operator=(Hdf5Input&&) noexcept = default;

const std::string& Hdf5Input::path() const {
  return state_->path;
}

std::vector<StoredMember> Hdf5Input::members(const std::string& group) const {
  const LibraryLock lock;
  const Handle owner = state_->open(group, H5O_TYPE_GROUP);
  std::vector<StoredMember> result;
  for (const std::string& name : state_->names_in(owner, group))
    result.push_back({name, state_->is_group(owner, name, group)});
  return result;
}

std::vector<StoredLink> Hdf5Input::links(const std::string& group) const {
  const LibraryLock lock;
  const Handle owner = state_->open(group, H5O_TYPE_GROUP);
  std::vector<StoredLink> result;
  for (const std::string& name : state_->names_in(owner, group)) {
    H5L_info_t link{};
    if (H5Lget_info(owner, name.c_str(), &link, H5P_DEFAULT) < 0) cannot_read(state_->path, inside(group, name));
    StoredLink found{name, false, {}, {}};
    if (link.type == H5L_TYPE_EXTERNAL) {
      state_->read_target(owner, name, group, link.u.val_size, found);
    } else {
      found.is_group = state_->is_group(owner, name, group);
    }
    result.push_back(std::move(found));
  }
  return result;
}

StoredDataset Hdf5Input::describe(const std::string& dataset) const {
  const LibraryLock lock;
  return state_->look_at(dataset).stored;
}

std::vector<std::byte> Hdf5Input::read(const std::string& dataset) const {
  const LibraryLock lock;
  const State::OpenDataset& open = state_->look_at(dataset);
  std::vector<std::byte> bytes(open.stored.bytes);
  if (H5Dread(open.handle, hdf5::file_type(open.stored.type), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0)
    cannot_read(state_->path, dataset);
  return bytes;
}

bool Hdf5Input::has_attribute(const std::string& object, const char* name) const {
  const LibraryLock lock;
  return H5Aexists(state_->open(object, H5O_TYPE_UNKNOWN), name) > 0;
}

std::string Hdf5Input::read_text(const std::string& object, const char* name) const {
  std::vector<std::string> texts = read_texts(object, name);
  if (texts.size() != 1) refuse(state_->path, object, fmt::format("attribute {} is no single text", name));
  return std::move(texts.front());
}

std::vector<std::string> Hdf5Input::read_texts(const std::string& object, const char* name) const {
  const LibraryLock lock;
  const Handle owner = state_->open(object, H5O_TYPE_UNKNOWN);
  const Handle attribute = state_->open_attribute(owner, object, name);
  const Handle type(H5Aget_type(attribute), H5Tclose);
  if (!type.valid() || H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0)
    refuse(state_->path, object, fmt::format("attribute {} is no fixed-length text", name));
  const std::size_t width = H5Tget_size(type);
  const std::size_t count = state_->attribute_count(attribute, object, name);
  if (width == 0 || width > largest_attribute || width * count > largest_attribute)
    refuse(state_->path, object, fmt::format("attribute {} is too large", name));
  std::string padded(width * count, '\0');
  if (H5Aread(attribute, type, padded.data()) < 0) cannot_read(state_->path, object);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string text = padded.substr(i * width, width);
    texts.push_back(text.substr(0, text.find('\0')));
  }
  return texts;
}

std::vector<std::byte> Hdf5Input::read_numbers(const std::string& object, const char* name, StoredType type,
                                               std::size_t count) const {
  const LibraryLock lock;
  const Handle owner = state_->open(object, H5O_TYPE_UNKNOWN);
  const Handle attribute = state_->open_attribute(owner, object, name);
  const Handle stored(H5Aget_type(attribute), H5Tclose);
  if (!stored.valid()) cannot_read(state_->path, object);
  const H5T_class_t kind = H5Tget_class(stored);
  const hid_t wanted = hdf5::file_type(type);
  if ((kind != H5T_INTEGER && kind != H5T_FLOAT) || H5Tequal(stored, wanted) <= 0 ||
      state_->attribute_count(attribute, object, name) != count)
    refuse(state_->path, object, fmt::format("attribute {} has another type or length", name));
  std::vector<std::byte> bytes(count * stored_size(type));
  if (H5Aread(attribute, wanted, bytes.data()) < 0) cannot_read(state_->path, object);
  return bytes;
}

}  // namespace qkcts
