// SPDX-License-Identifier: Apache-2.0
#include "vectors/manifest.hpp"

#include <algorithm>
#include <span>
#include <sstream>

#include "conformance/document.hpp"

namespace qkcts {

std::span<const Document> manifest_documents();  // made by qkcts_embed_documents

const std::vector<ReleasedSuite>& released_suites() {
  static const std::vector<ReleasedSuite> suites = [] {
    std::vector<ReleasedSuite> list;
    std::istringstream lines(std::string(manifest_documents().front().text));
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line.front() == '#') continue;
      std::istringstream words(line);
      ReleasedSuite& suite = list.emplace_back();
      words >> suite.name >> suite.cases >> suite.digest;
    }
    return list;
  }();
  return suites;
}

std::optional<ReleasedSuite> released_suite(const std::string& name) {
  const std::vector<ReleasedSuite>& suites = released_suites();
  const auto found =
      std::find_if(suites.begin(), suites.end(), [&](const ReleasedSuite& suite) { return suite.name == name; });
  if (found == suites.end()) return std::nullopt;
  return *found;
}

}  // namespace qkcts
