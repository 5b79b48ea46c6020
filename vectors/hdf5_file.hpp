// SPDX-License-Identifier: Apache-2.0
// The door to HDF5: files of plain groups, datasets of fixed-size numbers and small attributes, nothing else.
//
// No variable-length, reference or compound type, no soft link, no second hard link, no filter but shuffle, deflate and
// fletcher32, in that order, is ever written or accepted, and no external link is ever followed. Floating-point data is
// written and read as raw bits: the library's own conversion between float formats rounds wrongly. Objects are named by
// their path from the root, without a leading "/"; "" is the root. Every call may come from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qkcts {

enum class StoredType { binary64, binary32, binary16, bfloat16, uint8, int16, uint32, int32, uint64, int64, uint16 };
std::size_t stored_size(StoredType type);

// What is known of a dataset before any of its data is read.
struct StoredDataset {
  StoredType type;
  std::vector<std::uint64_t> extents;  // each >= 1
  std::uint64_t bytes;
};

struct StoredMember {
  std::string name;
  bool is_group;
};

// A member, or an external link, which is never followed.
struct StoredLink {
  std::string name;
  bool is_group;             // false for an external link
  std::string file, object;  // of an external link, as they stand there; else empty
};

// A file that is being written. A failed call throws WriteError "SHOWN: OBJECT: reason". Equal calls give equal bytes.
class Hdf5Output {
 public:
  // Creates the file or cuts it to nothing. Messages name it as `shown`, the path if that is empty.
  explicit Hdf5Output(const std::string& path, const std::string& shown = {});
  ~Hdf5Output();
  Hdf5Output(const Hdf5Output&) = delete;
  Hdf5Output& operator=(const Hdf5Output&) = delete;

  void create_group(const std::string& group);  // its parent exists
  // `object` of `file` under another name. Nobody looks whether it is there.
  void link_external(const std::string& name, const std::string& file, const std::string& object);
  void write_dataset(const std::string& dataset, StoredType type, const std::vector<std::uint64_t>& extents,
                     std::span<const std::byte> bytes);

  // Attributes of an existing object.
  void write_text(const std::string& object, const char* name, std::string_view text);
  void write_texts(const std::string& object, const char* name, const std::vector<std::string>& texts);
  void write_numbers(const std::string& object, const char* name, StoredType type, std::span<const std::byte> bytes);
  // Other numbers of the same type and count, in place.
  void overwrite_numbers(const std::string& object, const char* name, StoredType type,
                         std::span<const std::byte> bytes);

  void close();  // everything is in the file, though not yet on the medium

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A file that is read and not believed. A failed call or a foreign kind of object throws InputError
// "PATH: OBJECT: reason".
class Hdf5Input {
 public:
  explicit Hdf5Input(const std::string& path);
  ~Hdf5Input();
  Hdf5Input(Hdf5Input&&) noexcept;
  Hdf5Input& operator=(Hdf5Input&&) noexcept;

  const std::string& path() const;
  std::vector<StoredMember> members(const std::string& group) const;  // sorted by name, at most 65,536
  // The same where external links may stand.
  std::vector<StoredLink> links(const std::string& group) const;
  StoredDataset describe(const std::string& dataset) const;
  // describe() first: the caller decides whether it wants that many bytes.
  std::vector<std::byte> read(const std::string& dataset) const;

  bool has_attribute(const std::string& object, const char* name) const;
  std::string read_text(const std::string& object, const char* name) const;
  std::vector<std::string> read_texts(const std::string& object, const char* name) const;
  // `count` elements of exactly this type.
  std::vector<std::byte> read_numbers(const std::string& object, const char* name, StoredType type,
                                      std::size_t count) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Largest attribute that is written or read, in bytes.
constexpr std::size_t largest_attribute = 60000;

}  // namespace qkcts
