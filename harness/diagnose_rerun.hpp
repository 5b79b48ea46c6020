// SPDX-License-Identifier: Apache-2.0
// A case that was made out of another: evaluated by the reference, run and judged.
#pragma once

#include <optional>

#include "harness/case_run.hpp"

namespace qkcts {

// The opened adapter, and how it is run.
struct Rerunner {
  AdapterRunner& runner;
  const AdapterDescription& description;
  RunOptions options;  // repeat and limits are of no matter here
};

struct Rerun {
  GoldenCase golden;  // with all rows, and the one profile
  CaseResult result;
};

// `origin` names the profile of the case that it was made from. Nothing if it cannot be evaluated, the profile judges
// too little of it, or the adapter does not take it.
std::optional<Rerun> rerun(const Rerunner& rerunner, Case part, const GoldenCase& origin, const std::string& profile);

}  // namespace qkcts
