// SPDX-License-Identifier: Apache-2.0
// SHA-256, and the one way in which structured data is fed to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace qkcts {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  // Raw bytes.
  void update(std::span<const std::byte> bytes);
  // Length-prefixed (8 bytes, little-endian), so that ("ab", "c") and ("a", "bc") differ.
  void update_field(std::string_view text);
  void update_field(std::span<const std::byte> bytes);
  void update_number(std::uint64_t number);  // 8 bytes, little-endian

  // 64 lower-case hexadecimal digits. The object is spent afterwards.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string sha256_hex(std::string_view text);

}  // namespace qkcts
