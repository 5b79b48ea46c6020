// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/released_corpus.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "conformance/contract.hpp"
#include "harness/usage_error.hpp"

namespace qkcts::cli {
namespace {

// ../share/qkcts/vectors of the program: made by the build, and by the installation.
std::filesystem::path folder_beside_the_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().parent_path() / "share/qkcts/vectors";
}

}  // namespace

ReleasedSuite suite_from_argument(const std::string& name) {
  if (const auto suite = released_suite(name)) return *suite;
  std::vector<std::string> names;
  for (const ReleasedSuite& suite : released_suites()) names.push_back(suite.name);
  throw UsageError(fmt::format("'{}' is no released suite; there are: {}", name, fmt::join(names, ", ")));
}

std::string released_corpus_path(const ReleasedSuite& suite) {
  std::vector<std::filesystem::path> folders;
  if (const char* const named = std::getenv("QKCTS_CORPORA"); named != nullptr && *named != '\0')
    folders.emplace_back(named);
  folders.push_back(folder_beside_the_program());
  for (const std::filesystem::path& folder : folders) {
    std::error_code error;
    std::filesystem::path file = folder / (suite.name + ".h5");
    if (std::filesystem::exists(file, error)) return file.string();
  }
  return {};
}

std::string require_released_corpus(const ReleasedSuite& suite) {
  std::string path = released_corpus_path(suite);
  if (path.empty())
    throw InputError(fmt::format(
        "{0}.h5 is neither in the folder that QKCTS_CORPORA names nor beside this program; `qkcts generate {0} -o "
        "DIR/{0}.h5` makes it (digest {1}), then QKCTS_CORPORA=DIR",
        suite.name, suite.digest.substr(0, 12)));
  return path;
}

}  // namespace qkcts::cli
