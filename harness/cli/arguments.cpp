// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "conformance/file.hpp"
#include "harness/usage_error.hpp"

namespace qkcts::cli {

qkcts_stage stage_from_text(const std::string& text) {
  if (const auto stage = stage_named(text)) return *stage;
  std::string known;
  for (const qkcts_stage stage : all_stages) known += fmt::format("{}{}", known.empty() ? "" : ", ", stage_name(stage));
  throw UsageError(fmt::format("'{}' is no stage; there are: {}", text, known));
}

StageSet stages_from_text(const std::string& text) {
  StageSet set = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    set |= bit(stage_from_text(text.substr(at, end - at)));
    at = end + 1;
  }
  return set;
}

Contract contract_from_argument(const std::string& argument) {
  std::error_code error;
  const bool is_file = std::filesystem::exists(argument, error) ||
                       (argument.size() > 5 && argument.compare(argument.size() - 5, 5, ".json") == 0);
  if (!is_file) return shipped_contract(argument);
  return contract_from_json(read_text_file(argument), argument);
}

std::string chosen_case(const CorpusReader& reader, const std::string& wanted) {
  const std::string& path = reader.info().path;
  std::vector<std::string> found;
  for (const std::string& slug : reader.slugs()) {
    if (slug == wanted) return slug;
    if (slug.find(wanted) != std::string::npos) found.push_back(slug);
  }
  if (found.size() == 1) return found.front();
  if (found.empty())
    throw InputError(
        fmt::format("{}: no case contains \"{}\"; `qkcts inspect {} --names` lists them", path, wanted, path));
  const std::size_t count = found.size();
  found.resize(std::min<std::size_t>(count, 4));
  throw InputError(fmt::format("{}: {} cases contain \"{}\": {}{}", path, count, wanted, fmt::join(found, ", "),
                               count > 4 ? ", ..." : ""));
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace qkcts::cli
