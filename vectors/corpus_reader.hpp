// SPDX-License-Identifier: Apache-2.0
// Reading a corpus: nothing is believed that was not checked. docs/vector_format.md
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vectors/golden_case.hpp"

namespace qkcts {

struct CorpusInfo {
  std::string path, suite, generator_version, digest;
  std::uint64_t seed = 0;
  int format_version = 0;
};

// Validates class, size, layout, filters and link kind of every object before it reads it, sizes before it allocates,
// shapes against the contract, and digests. Throws InputError "FILE: object: reason". Calls may come from any thread.
// A file of unknown origin goes through check_untrusted_corpus() first: the HDF5 library itself can be crashed.
class CorpusReader {
 public:
  explicit CorpusReader(const std::string& path);
  ~CorpusReader();
  CorpusReader(CorpusReader&&) noexcept;
  CorpusReader& operator=(CorpusReader&&) noexcept;

  const CorpusInfo& info() const;
  const std::vector<std::string>& slugs() const;  // sorted
  GoldenCase read(const std::string& slug) const;
  // What a list of cases shows, cheaply: contract, shape, format, family, profiles, statistics, and which stages exist;
  // inputs and stages hold nothing, and the digest is not checked.
  GoldenCase outline(const std::string& slug) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkcts
