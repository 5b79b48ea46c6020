// SPDX-License-Identifier: Apache-2.0
// Reading a corpus: nothing is believed that was not checked. docs/vector_format.md
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vectors/case_digest.hpp"
#include "vectors/golden_case.hpp"
#include "vectors/relation.hpp"

namespace qkcts {

struct CorpusInfo {
  std::string path, suite, generator_version, digest;
  std::uint64_t seed = 0;
  int format_version = 0;
  std::string shard, plan_digest;   // "2/4" and the digest of the whole plan, in the file of a shard; else empty
  std::vector<std::string> shards;  // files of which this one is the master
};

// Names and digests of what a corpus holds, sorted by name.
struct CorpusContents {
  std::vector<DigestEntry> contracts, cases, profiles, relations;
};
std::string contents_digest(const std::string& suite, std::uint64_t seed, const CorpusContents& contents);

enum class CorpusKind { any, single };  // a master file is none that stands for itself

// One file, or a master file and those beside it. Validates class, size, layout, filters and link kind of every object
// before it reads it, sizes before it allocates, shapes against the contract, and digests. Throws InputError "FILE:
// object: reason". Calls may come from any thread. A file of unknown origin goes through check_untrusted_corpus()
// first: the HDF5 library itself can be crashed.
class CorpusReader {
 public:
  explicit CorpusReader(const std::string& path, CorpusKind kind = CorpusKind::any);
  ~CorpusReader();
  CorpusReader(CorpusReader&&) noexcept;
  CorpusReader& operator=(CorpusReader&&) noexcept;

  const CorpusInfo& info() const;
  const std::vector<std::string>& slugs() const;  // sorted
  const CorpusContents& contents() const;
  const std::vector<Relation>& relations() const;  // sorted by slug; their cases are there, and they fit them
  GoldenCase read(const std::string& slug) const;
  // What a list of cases shows, cheaply: contract, shape, format, family, profiles, statistics, and which stages exist;
  // inputs and stages hold nothing, and the digest is not checked.
  GoldenCase outline(const std::string& slug) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkcts
