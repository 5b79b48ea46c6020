// SPDX-License-Identifier: Apache-2.0
// What a run shows while it goes on: failures as they come, and on a terminal a bar with the time left.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "harness/run_record.hpp"
#include "vectors/progress_line.hpp"

namespace qkcts::cli {

class RunDisplay {
 public:
  void start(std::size_t cases);
  void after_case(const RunRecord& record, const CaseResult& result);
  void after_relation(const RunRecord& record, const RelationResult& result);
  // Takes the bar away, so that something else may be printed.
  void clear();

 private:
  // Nothing for an empty text.
  void print_failure(const std::string& text, const std::string& slug, Verdict verdict);

  std::size_t cases_ = 0;
  int failures_ = 0;
  std::optional<ProgressLine> bar_;  // of a terminal alone
};

}  // namespace qkcts::cli
