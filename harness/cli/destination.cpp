// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/destination.hpp"

#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "conformance/file.hpp"
#include "harness/usage_error.hpp"

namespace qkcts::cli {
namespace {

namespace fs = std::filesystem;

bool would_lose_nothing(const std::string& path) {
  std::error_code error;
  return !fs::is_regular_file(path, error) || fs::file_size(path, error) == 0;
}

void require_one(const Destination& output, const std::vector<std::string>& inputs) {
  const std::string& path = output.path;
  require_replaceable(path);
  for (const std::string& input : inputs)
    if (is_same_file(path, input))
      throw UsageError(fmt::format("{}: is {} that this command reads; name another file to write", path,
                                   path == input ? "a file" : fmt::format("the same file as {}", input)));
  if (!would_lose_nothing(path) && file_kind(path) != output.kind)
    throw UsageError(fmt::format(
        "{}: is there already and is not {}, so it would be lost; move it away, or name another file to write", path,
        kind_name(output.kind)));
}

}  // namespace

void require_destinations(const std::vector<Destination>& outputs, const std::vector<std::string>& inputs) {
  std::set<std::string> known;
  for (const Destination& output : outputs) {
    require_one(output, inputs);
    std::error_code error;
    const std::string whole = fs::weakly_canonical(fs::absolute(output.path, error), error).string();
    if (!known.insert(error ? output.path : whole).second)
      throw UsageError(fmt::format("{}: is named for two outputs", output.path));
  }
}

void require_destination(const std::string& path, FileKind kind, const std::vector<std::string>& inputs) {
  require_destinations({{path, kind}}, inputs);
}

}  // namespace qkcts::cli
