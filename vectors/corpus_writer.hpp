// SPDX-License-Identifier: Apache-2.0
// Writing a corpus: the file appears whole under its name, or not at all.
#pragma once

#include <memory>
#include <string>

#include "vectors/golden_case.hpp"
#include "vectors/relation.hpp"

namespace qkcts {

struct CorpusHeader {
  std::string suite;
  std::string generator_version;
  std::uint64_t seed = 0;
  std::string shard = {};        // "2/4" if the cases are those of one shard, else empty
  std::string plan_digest = {};  // beside `shard`: of the whole plan
};

// Cases go to a temporary name in the same folder; finish() gives the file its name. Equal calls in equal order give
// equal bytes for one HDF5 and zlib build. Throws WriteError, then the old file is untouched and the temporary gone.
class CorpusWriter {
 public:
  // `temporary`, if not empty, is the temporary name, in the same file system.
  CorpusWriter(const std::string& path, const CorpusHeader& header, const std::string& temporary = {});
  ~CorpusWriter();  // without finish(): removes the temporary file
  CorpusWriter(const CorpusWriter&) = delete;
  CorpusWriter& operator=(const CorpusWriter&) = delete;

  // Fills golden.digest. Slugs are new and valid; two contracts of one name are equal (else InputError).
  void add(GoldenCase& golden);
  // Its cases are added before finish(), and it fits them (else InputError).
  void add(const Relation& relation);
  // fsync, rename; returns the digest of the corpus.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkcts
