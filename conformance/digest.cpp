// SPDX-License-Identifier: Apache-2.0
#include "conformance/digest.hpp"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace qkcts {

struct Sha256::Context {
  EVP_MD_CTX* handle = EVP_MD_CTX_new();

  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(handle); }
};

namespace {

void require(int status) {
  if (status != 1) throw std::runtime_error("libcrypto: SHA-256 failed");
}

}  // namespace

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  require(context_->handle != nullptr ? 1 : 0);
  require(EVP_DigestInit_ex(context_->handle, EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(context_->handle, bytes.data(), bytes.size()));
}

void Sha256::update_field(std::string_view text) {
  update_field(std::as_bytes(std::span(text.data(), text.size())));
}

void Sha256::update_field(std::span<const std::byte> bytes) {
  update_number(bytes.size());
  update(bytes);
}

void Sha256::update_number(std::uint64_t number) {
  std::array<std::byte, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(number >> (8 * i));
  update(bytes);
}

std::string Sha256::finish() {
  std::array<unsigned char, 32> hash{};
  unsigned int length = 0;
  require(EVP_DigestFinal_ex(context_->handle, hash.data(), &length));
  std::string text;
  for (const unsigned char byte : hash) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view text) {
  Sha256 sha;
  sha.update(std::as_bytes(std::span(text.data(), text.size())));
  return sha.finish();
}

}  // namespace qkcts
