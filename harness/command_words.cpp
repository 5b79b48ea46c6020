// SPDX-License-Identifier: Apache-2.0
#include "harness/command_words.hpp"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "harness/adapter_error.hpp"

namespace qkcts {
namespace {

bool is_program(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::vector<std::string> command_words(const std::string& command, const std::string& given) {
  std::vector<std::string> words;
  bool inside = false;  // of a word, which may be empty: ''
  char quote = '\0';
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n')) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
      words.back() += command[++i];
    } else {
      words.back() += c;
    }
  }
  if (quote != '\0') throw AdapterError(fmt::format("{}: a quote is not closed", given));
  if (words.empty() || words.front().empty())
    throw AdapterError(fmt::format("{}: names no program; cmd:PROGRAM ARGUMENT... is due", given));
  return words;
}

std::string program_path(const std::string& name, const std::string& given) {
  if (name.find('/') != std::string::npos) {
    if (is_program(name)) return std::filesystem::absolute(name).lexically_normal().string();
    throw AdapterError(fmt::format("{}: {} is no program that can be run", given, name));
  }
  const char* const list = std::getenv("PATH");
  const std::string folders = list != nullptr ? list : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t at = 0; at <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    std::string candidate = fmt::format("{}/{}", end == at ? "." : folders.substr(at, end - at), name);
    if (is_program(candidate)) return candidate;
    at = end + 1;
  }
  throw AdapterError(fmt::format("{}: there is no program {} on PATH", given, name));
}

}  // namespace qkcts
