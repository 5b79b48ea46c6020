// SPDX-License-Identifier: Apache-2.0
#include "harness/adapter_digest.hpp"

#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include "conformance/digest.hpp"
#include "harness/command_words.hpp"

namespace qkcts {
namespace {

std::string file_digest(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Sha256 digest;
  std::vector<char> chunk(1u << 16);
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    digest.update(std::as_bytes(std::span(chunk.data(), static_cast<std::size_t>(file.gcount()))));
  }
  return digest.finish();
}

}  // namespace

std::string adapter_digest(const AdapterSpec& spec) {
  if (spec.kind != AdapterKind::command) return file_digest(spec.path);
  const std::vector<std::string> words = command_words(spec.options, spec.given);
  Sha256 digest;
  digest.update_field("qkcts-command 1");
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::error_code error;
    const std::string& path = i == 0 ? spec.path : words[i];
    digest.update_field(words[i]);
    digest.update_field(std::filesystem::is_regular_file(path, error) ? file_digest(path) : std::string());
  }
  return digest.finish();
}

}  // namespace qkcts
