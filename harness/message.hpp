// SPDX-License-Identifier: Apache-2.0
// Byte messages between host and worker: the same program on the same machine, so numbers travel as they stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace qkcts {

// A message that is shorter than what it claims to hold. An adapter that scribbles over the worker can cause it.
class MessageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class MessageWriter {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { append(std::as_bytes(std::span(&value, 1))); }
  void put_bytes(std::span<const std::byte> bytes) {
    put(static_cast<std::uint64_t>(bytes.size()));
    append(bytes);
  }
  void put_text(std::string_view text) { put_bytes(std::as_bytes(std::span(text))); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void append(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  std::vector<std::byte> bytes_;
};

class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  requires std::is_trivially_copyable_v<T> T get() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  bool get_flag() { return get<std::uint8_t>() != 0; }  // whatever byte stands there
  std::vector<std::byte> get_bytes() {
    const auto bytes = take(get<std::uint64_t>());
    return {bytes.begin(), bytes.end()};
  }
  std::string get_text() {
    const auto bytes = take(get<std::uint64_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::span<const std::byte> take(std::uint64_t count) {
    if (count > rest_.size()) throw MessageError("message ends early");
    const auto taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  std::span<const std::byte> rest_;
};

}  // namespace qkcts
