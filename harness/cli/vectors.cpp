// SPDX-License-Identifier: Apache-2.0
// Whole corpora: what changed between two, and one out of several files.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "conformance/json.hpp"
#include "harness/cli/commands.hpp"
#include "harness/cli/destination.hpp"
#include "harness/value_text.hpp"
#include "vectors/corpus_diff.hpp"
#include "vectors/corpus_join.hpp"
#include "vectors/untrusted_file.hpp"

namespace qkcts::cli {
namespace {

constexpr std::size_t columns = 80;

// JSON has no infinity.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json("infinity");
}

Json json_of(const CorpusReader& corpus) {
  const CorpusInfo& info = corpus.info();
  return {{"file", info.path}, {"suite", info.suite}, {"digest", info.digest}, {"cases", corpus.slugs().size()}};
}

Json json_of(const CaseDifference& difference) {
  Json json = {{"aspect", difference.aspect}, {"place", difference.place}, {"text", difference.text}};
  if (difference.elements != 0) {
    json["elements"] = difference.elements;
    if (difference.most != 0) {
      json["least"] = number(difference.least);
      json["most"] = number(difference.most);
    }
  }
  return json;
}

std::string diff_json(const CorpusReader& before, const CorpusReader& after, const CorpusDifference& difference) {
  Json changed = Json::array();
  for (const ChangedCase& c : difference.changed) {
    Json list = Json::array();
    for (const CaseDifference& d : c.differences) list.push_back(json_of(d));
    changed.push_back({{"case", c.slug}, {"differences", list}});
  }
  const Json json = {{"schema", "qkcts-vectors-diff/1"},
                     {"old", json_of(before)},
                     {"new", json_of(after)},
                     {"head", difference.head},
                     {"appeared", difference.appeared},
                     {"vanished", difference.vanished},
                     {"changed", changed},
                     {"equal", difference.equal}};
  return json.dump(2) + "\n";
}

void print_slugs(const char* title, const std::vector<std::string>& slugs) {
  if (slugs.empty()) return;
  fmt::print("\n{}\n", title);
  for (const std::string& slug : slugs) fmt::print("{}\n", slug);
}

// In how many of the changed cases each aspect differs, and by how much at most: what a reviewer asks first.
void print_summary(const std::vector<ChangedCase>& changed) {
  std::map<std::string, std::size_t> cases;
  for (const ChangedCase& c : changed) {
    std::map<std::string, int> aspects;
    for (const CaseDifference& d : c.differences) ++aspects[d.aspect];
    for (const auto& [aspect, count] : aspects) ++cases[aspect];
  }
  fmt::print("\nchanged in\n");
  for (const auto& [aspect, count] : cases) fmt::print("  {:<12} {}\n", aspect, counted(count, "case", "cases"));
}

void print_difference(const CaseDifference& d) {
  const std::string head = fmt::format("  {:<11} {:<24}", d.aspect, d.place);
  const bool fits = head.size() + 1 + d.text.size() <= columns;
  fmt::print("{}{}{}\n", head, fits ? " " : "\n              ", d.text);
}

void print_diff(const CorpusReader& before, const CorpusReader& after, const CorpusDifference& difference) {
  fmt::print("{}\n{}\n", before.info().path, after.info().path);
  fmt::print("{} appeared, {} vanished, {} changed, {} equal\n", counted(difference.appeared.size(), "case", "cases"),
             difference.vanished.size(), difference.changed.size(), difference.equal);
  for (std::string line : difference.head) {
    if (line.size() > columns) std::replace(line.begin(), line.end(), ' ', '\n');  // a name is not broken
    fmt::print("{}\n", line);
  }
  print_slugs("appeared", difference.appeared);
  print_slugs("vanished", difference.vanished);
  if (difference.changed.empty()) return;
  print_summary(difference.changed);
  for (const ChangedCase& c : difference.changed) {
    fmt::print("\n{}\n", c.slug);
    for (const CaseDifference& d : c.differences) print_difference(d);
  }
}

int diff(const std::string& old_file, const std::string& new_file, bool as_json) {
  check_untrusted_corpus(old_file);
  check_untrusted_corpus(new_file);
  const CorpusReader before(old_file), after(new_file);
  const CorpusDifference difference = corpus_difference(before, after);
  if (as_json) {
    fmt::print("{}", diff_json(before, after, difference));
  } else {
    print_diff(before, after, difference);
  }
  return difference.none() ? 0 : 1;
}

int join(const std::vector<std::string>& files, const std::string& master, bool suites) {
  require_destination(master, FileKind::corpus, files);
  for (const std::string& file : files) check_untrusted_corpus(file);
  const JoinReport report = join_corpora(files, master, suites ? JoinOf::several_suites : JoinOf::one_suite);
  fmt::print("{}: {} in {}\ndigest {}\n", master, counted(report.cases, "case", "cases"),
             counted(files.size(), "file", "files"), report.digest);
  return 0;
}

void add_diff(CLI::App& vectors, Command& command) {
  struct Arguments {
    std::string before, after;
    bool json = false;
  };
  auto given = std::make_shared<Arguments>();
  CLI::App* const sub = vectors.add_subcommand("diff", "What a new corpus says otherwise than an old one");
  sub->add_option("OLD", given->before, "Corpus")->required();
  sub->add_option("NEW", given->after, "Corpus")->required();
  sub->add_flag("--json", given->json, "Print JSON");
  sub->footer(
      "Example: qkcts vectors diff core-0.1.h5 core.h5\n"
      "Exit code: 0 they say the same, 1 they differ, 3 one cannot be read");
  sub->callback([given, &command] { command = [given] { return diff(given->before, given->after, given->json); }; });
}

void add_join(CLI::App& vectors, Command& command) {
  struct Arguments {
    std::vector<std::string> files;
    std::string master;
    bool suites = false;
  };
  auto given = std::make_shared<Arguments>();
  CLI::App* const sub = vectors.add_subcommand("join", "One corpus out of several files, which stay where they are");
  sub->add_option("FILE", given->files, "Corpora, such as the shards of a plan, in the folder of the master")
      ->required();
  sub->add_option("-o,--output", given->master, "Master file to write: links to the cases of the others")->required();
  sub->add_flag("--suites", given->suites, "Whole corpora of several suites: one that is called core+edge");
  sub->footer(
      "Example: qkcts generate core --shard 1/2 -o core.1of2.h5\n"
      "         qkcts generate core --shard 2/2 -o core.2of2.h5\n"
      "         qkcts vectors join core.1of2.h5 core.2of2.h5 -o core.h5");
  sub->callback([given, &command] { command = [given] { return join(given->files, given->master, given->suites); }; });
}

}  // namespace

void add_vectors(CLI::App& app, Command& command) {
  CLI::App* const vectors = app.add_subcommand("vectors", "Compare and join corpora");
  vectors->require_subcommand(1);
  add_diff(*vectors, command);
  add_join(*vectors, command);
}

}  // namespace qkcts::cli
