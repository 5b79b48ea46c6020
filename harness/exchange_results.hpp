// SPDX-License-Identifier: Apache-2.0
// Result files: what a kernel made of the cases of a request file.
#pragma once

#include <string>
#include <vector>

#include "harness/exchange_file.hpp"
#include "harness/execution.hpp"

namespace qkcts {

enum class Strictness : std::uint8_t {
  what_matters,  // unknown members and keys are passed over
  everything,    // they are faults
};

class ResultWriter {
 public:
  // The description is describe() as JSON. Throws WriteError, as all calls do.
  ResultWriter(const std::string& path, const std::string& shown, const std::string& corpus_digest,
               const std::string& description);
  // Stages that the execution holds, or how it ended.
  void add(const Case& asked, const Execution& execution);
  void close();

 private:
  Hdf5Output file_;
  GroupMaker groups_;
};

// Nothing is believed that was not checked. Throws InputError. A file of unknown origin goes through look_in_child()
// first.
class ResultReader {
 public:
  ResultReader(const std::string& path, Strictness strictness);
  const std::vector<std::string>& slugs() const { return slugs_; }  // sorted
  // Throws InputError where it is missing.
  std::string corpus_digest() const { return file_.read_text("", "corpus_digest"); }
  std::string description() const { return file_.read_text("", "description"); }

  // What there is for `asked` under this slug, which is one of slugs(). A faulty answer is a violation of the
  // execution: error(unwritten) where stages are missing, else error(protocol). Never throws InputError.
  Execution read(const std::string& slug, const Case& asked, StageSet stages) const;

 private:
  Execution read_case(const std::string& slug, const Case& asked, StageSet stages) const;

  Hdf5Input file_;
  Strictness strictness_;
  std::vector<std::string> slugs_;
};

}  // namespace qkcts
