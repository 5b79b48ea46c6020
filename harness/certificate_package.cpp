// SPDX-License-Identifier: Apache-2.0
#include "harness/certificate_package.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>

#include "conformance/digest.hpp"
#include "conformance/file.hpp"
#include "conformance/json_schema.hpp"

namespace qkcts::package {
namespace {

namespace fs = std::filesystem;

std::string inside(const std::string& folder, std::string_view name) {
  return fmt::format("{}/{}", folder, name);
}

std::string file_digest(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: cannot be read", path));
  Sha256 digest;
  std::vector<char> chunk(1U << 16U);
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0)
    digest.update(std::as_bytes(std::span(chunk.data(), static_cast<std::size_t>(file.gcount()))));
  return digest.finish();
}

std::string own_digest(Json body) {
  body.erase("digest");
  return sha256_hex(canonical_text(body));
}

std::string text_of(const Json& body) {
  return body.dump(1) + "\n";
}

// Regular files of these names and nothing else: a link would show what the reviewer's machine holds.
void require_names(const std::string& folder) {
  std::set<std::string> missing(sealed.begin(), sealed.end());
  missing.emplace(certificate);
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) throw InputError(fmt::format("{}: cannot be read as a folder: {}", folder, error.message()));
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (missing.erase(name) == 0)
      throw InputError(fmt::format("{}: does not belong to a certificate", inside(folder, name)));
    if (entry.is_symlink(error) || !entry.is_regular_file(error))
      throw InputError(fmt::format("{}: is no regular file", inside(folder, name)));
  }
  if (!missing.empty()) throw InputError(fmt::format("{}: is missing", inside(folder, *missing.begin())));
}

}  // namespace

Json seal(const std::string& folder, Json body) {
  body["files"] = Json::array();
  for (const std::string_view name : sealed) {
    const std::string path = inside(folder, name);
    body["files"].push_back({{"name", name}, {"bytes", fs::file_size(path)}, {"sha256", file_digest(path)}});
  }
  body["digest"] = own_digest(body);
  write_file_atomically(inside(folder, certificate), text_of(body));
  return body;
}

Json open(const std::string& folder) {
  require_names(folder);
  const std::string path = inside(folder, certificate);
  const std::string text = read_text_file(path);
  Json body = parse_json(text, path);
  require_schema(body, "certificate", path);
  if (body.at("digest") != own_digest(body) || text != text_of(body))
    throw InputError(fmt::format("{}: was changed: its digest is not that of its text", path));
  std::set<std::string> named;
  for (const Json& file : body.at("files")) {
    const auto name = file.at("name").get<std::string>();
    if (std::find(sealed.begin(), sealed.end(), name) == sealed.end() || !named.insert(name).second)
      throw InputError(fmt::format("{}: /files: names {}, which is none of a certificate's files", path, name));
    if (file.at("sha256") != file_digest(inside(folder, name)))
      throw InputError(
          fmt::format("{}: was changed: its SHA-256 is not that of {}", inside(folder, name), certificate));
  }
  if (named.size() != sealed.size()) throw InputError(fmt::format("{}: /files: does not name every file", path));
  return body;
}

}  // namespace qkcts::package
