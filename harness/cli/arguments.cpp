// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "conformance/file.hpp"
#include "conformance/near_name.hpp"
#include "harness/case_run.hpp"
#include "harness/failure_text.hpp"
#include "harness/file_kind.hpp"
#include "harness/usage_error.hpp"
#include "harness/value_text.hpp"

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

void require_corpus_argument(const std::string& corpus, const std::string& adapter) {
  const std::string name = corpus.substr(0, corpus.find('?'));
  std::error_code error;
  const bool is_name = !std::filesystem::is_regular_file(corpus, error) && is_bundled_adapter(name);
  if (!is_name && !corpus.starts_with("cmd:") && file_kind(corpus) != FileKind::library) return;
  if (file_kind(adapter) == FileKind::corpus)
    throw UsageError(fmt::format("'{}' is an adapter and '{}' a corpus: the adapter comes first", corpus, adapter));
  throw UsageError(fmt::format(
      "'{}' is an adapter; in its place a corpus is expected: a file as `qkcts generate core -o core.h5` writes it",
      corpus));
}

std::string no_case_text(const std::string& corpus, const std::string& glob) {
  const std::string why = no_case_text(CorpusReader(corpus).slugs(), glob);
  if (why.empty()) return "no case is left of those that match";
  return fmt::format("{}; `qkcts inspect {} --names` lists them all", why, shell_quoted(corpus));
}

std::string no_case_text(const std::vector<std::string>& slugs, const std::string& glob) {
  const auto matching = [&slugs](const std::string& wanted) {
    std::vector<std::string> found;
    for (const std::string& slug : slugs)
      if (::fnmatch(wanted.c_str(), slug.c_str(), 0) == 0) found.push_back(slug);
    return found;
  };
  if (!matching(glob).empty()) return {};
  const std::string wider = "*" + glob + "*";
  const std::vector<std::string> inside = matching(wider);
  const std::string offer = inside.empty() ? fmt::format("the nearest is {}", nearest_name(glob, slugs))
                                           : fmt::format("'{}' would match {}, such as {}", wider,
                                                         counted(inside.size(), "case", "cases"), inside.front());
  return fmt::format("no case matches '{}', a glob over whole names; {}", glob, offer);
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace qkcts::cli
