// SPDX-License-Identifier: Apache-2.0
// Request files: cases to be computed, with everything a kernel is given and nothing of what is expected of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "conformance/case.hpp"
#include "harness/exchange_file.hpp"

namespace qkcts {

struct KernelRequest {
  Case input;
  StageSet stages = 0;  // asked for
};

class RequestWriter {
 public:
  // `shown` names the file in messages. An empty `corpus_digest` is left out. Throws WriteError, as all calls do.
  RequestWriter(const std::string& path, const std::string& shown, const std::string& corpus_digest);
  void add(const KernelRequest& request);
  void close();

 private:
  void write_contract(const Contract& contract);

  Hdf5Output file_;
  GroupMaker groups_;
  std::vector<std::string> contracts_;
};

// Checked like a corpus: types, shapes, values, digests. Throws InputError. A file of unknown origin goes through
// check_untrusted_requests() first.
class RequestReader {
 public:
  explicit RequestReader(const std::string& path);
  const std::string& corpus_digest() const { return corpus_digest_; }
  const std::vector<std::string>& slugs() const { return slugs_; }
  KernelRequest read(const std::string& slug) const;

 private:
  Hdf5Input file_;
  std::string corpus_digest_;
  std::vector<std::string> slugs_;
};

void check_untrusted_requests(const std::string& path);

}  // namespace qkcts
