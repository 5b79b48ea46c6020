// SPDX-License-Identifier: Apache-2.0
#include "harness/cli/certificate_corpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "conformance/digest.hpp"
#include "conformance/file.hpp"
#include "harness/cli/fresh_corpus.hpp"
#include "harness/cli/released_corpus.hpp"
#include "vectors/corpus_join.hpp"
#include "vectors/untrusted_file.hpp"

namespace qkcts::cli {
namespace {

namespace fs = std::filesystem;

bool has_digest(const std::string& path, const std::string& digest) {
  std::error_code error;
  if (path.empty() || !fs::exists(path, error)) return false;
  check_untrusted_corpus(path);
  return CorpusReader(path).info().digest == digest;
}

void take_in(CertificateCorpus& corpus, const std::string& name) {
  const CorpusReader reader(corpus.file(name));
  corpus.corpora.push_back({name, reader.info().digest, reader.slugs().size()});
  for (const std::string& slug : reader.slugs()) corpus.suites[slug] = name;
}

}  // namespace

void place_file(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::remove(to, error);
  fs::create_hard_link(fs::canonical(from, error), to, error);
  if (error) fs::copy_file(from, to, error);
  if (error) throw WriteError(fmt::format("{}: cannot be written: {}", to, error.message()));
}

void require_of_suites(const std::vector<std::string>& files, const std::vector<ReleasedSuite>& suites) {
  std::string needed;
  for (const ReleasedSuite& suite : suites)
    needed += fmt::format("{}{} ({})", needed.empty() ? "" : ", ", suite.name, suite.digest.substr(0, 12));
  for (const std::string& file : files)
    if (std::none_of(suites.begin(), suites.end(),
                     [&](const ReleasedSuite& suite) { return has_digest(file, suite.digest); }))
      throw InputError(
          fmt::format("--corpus {}: is no corpus of these suites; they are, with their digests: {}", file, needed));
}

void place_released(CertificateCorpus& corpus, const ReleasedSuite& suite, const std::vector<std::string>& given) {
  const std::string path = corpus.file(suite.name);
  if (!has_digest(path, suite.digest)) {
    std::string source;
    for (const std::string& file : given)
      if (has_digest(file, suite.digest)) source = file;
    if (source.empty())
      if (const std::string released = released_corpus_path(suite); has_digest(released, suite.digest))
        source = released;
    if (!source.empty()) {
      place_file(source, path);
    } else if (can_generate()) {
      fmt::print(stderr, "{}: generating the suite; --corpus FILE takes one that is there\n", path);
      generate_suite(suite, path);
    } else {
      throw InputError(
          fmt::format("{0}: no corpus of this suite (digest {1}) is there; --corpus FILE names one, and the "
                      "full build generates it",
                      suite.name, suite.digest.substr(0, 12)));
    }
  }
  take_in(corpus, suite.name);
}

std::vector<std::string> chosen_for_fresh(const CertificateCorpus& corpus, const CertificateTerms& terms,
                                          const AdapterDescription& description) {
  std::vector<std::pair<std::string, std::string>> drawn;  // a lot that nobody can choose, and the case
  for (const CertifiedCorpus& one : corpus.corpora) {
    const CorpusReader reader(corpus.file(one.suite));
    for (const std::string& slug : reader.slugs())
      if (in_scope(terms, description, reader.outline(slug)))
        drawn.emplace_back(sha256_hex(fmt::format("{} {}", terms.seed, slug)), slug);
  }
  std::sort(drawn.begin(), drawn.end());
  drawn.resize(std::min(drawn.size(), std::clamp<std::size_t>(drawn.size() / 8, 4, 64)));
  std::vector<std::string> slugs;
  for (const auto& [lot, slug] : drawn) slugs.push_back(slug);
  return slugs;
}

void join_all(CertificateCorpus& corpus, const CertificateTerms& terms, const AdapterDescription& description) {
  take_in(corpus, fresh_suite);
  std::vector<std::string> files;
  for (const CertifiedCorpus& one : corpus.corpora) files.push_back(corpus.file(one.suite));
  corpus.joined_digest = join_corpora(files, corpus.joined(), JoinOf::several_suites).digest;
  const CorpusReader joined(corpus.joined());
  for (const std::string& slug : joined.slugs())
    if (in_scope(terms, description, joined.outline(slug))) corpus.in_scope.insert(slug);
}

}  // namespace qkcts::cli
