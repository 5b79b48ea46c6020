// SPDX-License-Identifier: Apache-2.0
// What became of each case and relation in a few words, as every report of a test server needs it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "harness/run_record.hpp"

namespace qkcts {

struct Outcome {
  std::string name;   // slug
  std::string group;  // contract, or "relations"
  Verdict verdict = Verdict::not_run;
  JunitElement kind = JunitElement::passed;  // as the table of verdicts says; a pass over an own limit is a failure
  double seconds = 0;
  std::string message;  // one line; empty for a pass
  std::string text;     // failure_text() and its like; empty unless it is a failure or an error
};

// Cases in the order of the record, then relations, then one for each demand that the run does not fulfil. `result` is
// that of a case, else null.
using TakeOutcome = std::function<void(const Outcome& outcome, const CaseResult* result)>;
void for_each_outcome(const RunRecord& record, const TakeOutcome& take);
std::size_t number_of_outcomes(const RunRecord& record);

// Is it a failure or an error?
bool is_failing(const Outcome& outcome);

// "Conforming", "Not conforming", ...
std::string_view run_word(const RunRecord& record);

// "200 cases: 3 fail, 197 pass", gravest first; without relations.
std::string case_counts_line(const RunRecord& record);

// At most `length` bytes, with a mark where it was cut; well-formed UTF-8 stays so.
std::string cut_text(const std::string& text, std::size_t length);

}  // namespace qkcts
