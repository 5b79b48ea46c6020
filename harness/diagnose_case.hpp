// SPDX-License-Identifier: Apache-2.0
// One failing case: what its outputs match, and which of that further failing cases contradict.
#pragma once

#include <functional>
#include <optional>

#include "harness/diagnose_search.hpp"

namespace qkcts {

struct Diagnosed {
  CaseDiagnosis diagnosis;
  std::vector<FoundSuspect> matches;  // those of the diagnosis, as they were found
};

// Without reproducer and divergence. `verdict` is that of the case, for the words of one that passes.
Diagnosed diagnosed_outputs(const Observation& observation, Verdict verdict, unsigned threads);

// A further case that the adapter fails, with what it wrote.
struct FailedCase {
  GoldenCase golden;
  std::size_t profile = 0;  // index into golden.profiles
  StageBytes outputs;
};
using NextFailedCase = std::function<std::optional<FailedCase>()>;  // nothing: there are no more

// What further cases contradict is dropped, unless they contradict all. Stops after some cases, or when time is out.
void tell_apart(Diagnosed& made, const NextFailedCase& next);

}  // namespace qkcts
