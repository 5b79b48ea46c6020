// SPDX-License-Identifier: Apache-2.0
// The closed list of verdicts, and what each means for the exit code and for JUnit. harness/README.md prints this
// table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace qkcts {

// In rising order of gravity: of several verdicts on one case the last one here is the verdict of the case.
enum class Verdict : std::uint8_t {
  not_run,         // the device or library is not there, or the run was stopped before
  skipped,         // left out on request, or nothing in it to judge
  unsupported,     // outside what the adapter declares
  pass,            // something trusted was judged, and all of it conforms
  domain,          // an intermediate may overflow legally in every element: nothing was judged
  mistrusted,      // the budget is as large as the value: it could have failed, it does not count as a pass
  xfail,           // fails, and a known failure says so
  xpass,           // passes although a known failure says that it fails
  batch_variant,   // other bits in another batch although batch invariance is claimed
  not_repeatable,  // other bits on the second call although repeatability is claimed
  fail,            // an element has the wrong class, breaks an exact clause, or is farther off than Delta
  error_unwritten,
  error_input_modified,
  error_underrun,
  error_overrun,
  error_memory,
  error_timeout,
  error_crash,
  error_protocol,
  error_abi,
};

enum class Effect : std::uint8_t {
  conforms,  // counts towards exit code 0
  neutral,   // neither: never a pass, never a failure; if there is nothing else, exit code 5
  judged,    // was run and did not fail, but is no pass either
  violates,  // exit code 1
};

enum class JunitElement : std::uint8_t { passed, skipped, failure, error };

struct VerdictRow {
  Verdict verdict;
  std::string_view name;  // as in run.json
  Effect effect;
  JunitElement junit;
  std::string_view meaning;
};

std::span<const VerdictRow> verdict_table();
const VerdictRow& row(Verdict verdict);
std::string_view verdict_name(Verdict verdict);
std::optional<Verdict> verdict_named(std::string_view name);

inline Verdict graver(Verdict a, Verdict b) {
  return a < b ? b : a;
}
inline bool violates(Verdict verdict) {
  return row(verdict).effect == Effect::violates;
}

}  // namespace qkcts
