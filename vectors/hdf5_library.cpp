// SPDX-License-Identifier: Apache-2.0
#include "vectors/hdf5_library.hpp"

#include <algorithm>
#include <array>

namespace qkcts {
namespace hdf5 {
namespace {

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex instance;
  return instance;
}

// A float type with IEEE semantics that the library does not predefine: sign bit first, then exponent, then fraction.
hid_t half_width_float(std::size_t exponent_bits, std::size_t bias) {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  const std::size_t fraction_bits = 15 - exponent_bits;
  // The order matters: the fields must fit the precision at every step.
  H5Tset_fields(type, 15, fraction_bits, exponent_bits, 0, fraction_bits);
  H5Tset_precision(type, 16);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, bias);
  return type;
}

hid_t make_type(StoredType type) {
  switch (type) {
    case StoredType::binary64:
      return H5Tcopy(H5T_IEEE_F64LE);
    case StoredType::binary32:
      return H5Tcopy(H5T_IEEE_F32LE);
    case StoredType::binary16:
      return half_width_float(5, 15);
    case StoredType::bfloat16:
      return half_width_float(8, 127);
    case StoredType::uint8:
      return H5Tcopy(H5T_STD_U8LE);
    case StoredType::int16:
      return H5Tcopy(H5T_STD_I16LE);
    case StoredType::uint32:
      return H5Tcopy(H5T_STD_U32LE);
    case StoredType::int32:
      return H5Tcopy(H5T_STD_I32LE);
    case StoredType::uint64:
      return H5Tcopy(H5T_STD_U64LE);
    case StoredType::int64:
      return H5Tcopy(H5T_STD_I64LE);
    case StoredType::uint16:
      return H5Tcopy(H5T_STD_U16LE);
  }
  return -1;
}

}  // namespace

LibraryLock::LibraryLock() : lock_(library_mutex()) {
  static const bool first = H5dont_atexit() >= 0;
  static_cast<void>(first);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

std::string library_reason() {
  std::string innermost;
  const auto keep = [](unsigned, const H5E_error2_t* error, void* data) -> herr_t {
    auto* text = static_cast<std::string*>(data);
    if (text->empty() && error->desc != nullptr) *text = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep, &innermost);
  // "file write failed: time = ..., errno = 28, error message = 'No space left on device', buf = 0x..."
  const std::string mark = "error message = '";
  if (const std::size_t start = innermost.find(mark); start != std::string::npos) {
    innermost.erase(0, start + mark.size());
    innermost.erase(std::min(innermost.find('\''), innermost.size()));
  }
  for (char& c : innermost)
    if (static_cast<unsigned char>(c) < 32 || static_cast<unsigned char>(c) > 126) c = '?';
  return innermost.empty() ? "the HDF5 library gave no reason" : innermost.substr(0, 160);
}

hid_t file_type(StoredType type) {
  static std::array<hid_t, 11> types{};  // 0 is no identifier of a type; they live as long as the process
  hid_t& made = types[static_cast<std::size_t>(type)];
  if (made == 0) made = make_type(type);
  return made;
}

Handle access_list() {
  Handle list(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(list, H5F_LIBVER_V110, H5F_LIBVER_V110);
  H5Pset_fclose_degree(list, H5F_CLOSE_STRONG);
  return list;
}

}  // namespace hdf5

std::size_t stored_size(StoredType type) {
  switch (type) {
    case StoredType::binary64:
    case StoredType::uint64:
    case StoredType::int64:
      return 8;
    case StoredType::binary32:
    case StoredType::uint32:
    case StoredType::int32:
      return 4;
    case StoredType::binary16:
    case StoredType::bfloat16:
    case StoredType::int16:
    case StoredType::uint16:
      return 2;
    case StoredType::uint8:
      return 1;
  }
  return 0;
}

}  // namespace qkcts
