// SPDX-License-Identifier: Apache-2.0
#include "harness/verdict.hpp"

#include <algorithm>
#include <array>

namespace qkcts {
namespace {

using enum Verdict;

constexpr std::array table = {
    VerdictRow{
        not_run, "not_run", Effect::neutral, JunitElement::skipped,
        "the device or library is not there, the run was stopped before, or results hold no answer; beside passed "
        "cases the exit code is 1"},
    VerdictRow{skipped, "skipped", Effect::neutral, JunitElement::skipped,
               "left out on request, or nothing in it to judge"},
    VerdictRow{unsupported, "unsupported", Effect::neutral, JunitElement::skipped, "outside what describe() declares"},
    VerdictRow{pass, "pass", Effect::conforms, JunitElement::passed,
               "something trusted was judged, and all of it conforms"},
    VerdictRow{domain, "domain", Effect::judged, JunitElement::skipped,
               "an intermediate may overflow legally: nothing was judged"},
    VerdictRow{mistrusted, "mistrusted", Effect::judged, JunitElement::skipped,
               "the budget reaches the value itself: it can fail, it is never a pass"},
    VerdictRow{xfail, "xfail", Effect::judged, JunitElement::skipped, "fails as the list of known failures says"},
    VerdictRow{xpass, "xpass", Effect::violates, JunitElement::failure,
               "passes although the list of known failures says that it fails"},
    VerdictRow{batch_variant, "batch_variant", Effect::violates, JunitElement::failure,
               "other bits in another batch, against the claim batch_invariant"},
    VerdictRow{not_repeatable, "not_repeatable", Effect::violates, JunitElement::failure,
               "other bits on another call, against the claim bitwise_repeatable"},
    VerdictRow{fail, "fail", Effect::violates, JunitElement::failure,
               "wrong class, broken exact clause, or farther off than Delta"},
    VerdictRow{error_unwritten, "error(unwritten)", Effect::violates, JunitElement::error,
               "an output element still holds the poison"},
    VerdictRow{error_input_modified, "error(input_modified)", Effect::violates, JunitElement::error,
               "an input, the contract or a descriptor was written to"},
    VerdictRow{error_underrun, "error(underrun)", Effect::violates, JunitElement::error,
               "memory before the start of a buffer was touched"},
    VerdictRow{error_overrun, "error(overrun)", Effect::violates, JunitElement::error,
               "memory behind the end of a buffer was touched"},
    VerdictRow{error_memory, "error(memory)", Effect::violates, JunitElement::error,
               "out of memory, by status, by limit or by the kernel"},
    VerdictRow{error_timeout, "error(timeout)", Effect::violates, JunitElement::error,
               "no answer in time; the process group was killed"},
    VerdictRow{error_crash, "error(crash)", Effect::violates, JunitElement::error,
               "the worker died by a signal or by an exit of its own"},
    VerdictRow{error_protocol, "error(protocol)", Effect::violates, JunitElement::error,
               "a status that contradicts describe(), or QKCTS_INTERNAL, or QKCTS_INVALID"},
    VerdictRow{error_abi, "error(abi)", Effect::violates, JunitElement::error,
               "the library does not speak this version of the ABI"},
};

}  // namespace

std::span<const VerdictRow> verdict_table() {
  return table;
}

const VerdictRow& row(Verdict verdict) {
  return table[static_cast<std::size_t>(verdict)];
}

std::string_view verdict_name(Verdict verdict) {
  return row(verdict).name;
}

std::optional<Verdict> verdict_named(std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const VerdictRow& r) { return r.name == name; });
  if (found == table.end()) return std::nullopt;
  return found->verdict;
}

}  // namespace qkcts
