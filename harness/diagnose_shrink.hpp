// SPDX-License-Identifier: Apache-2.0
// A failing case made small: batch, heads, tokens and lanes are left out as long as the rest still fails in the same
// way. Greedy: each single step was tried in vain on what is returned, a smaller one may exist all the same.
#pragma once

#include <chrono>
#include <optional>

#include "harness/diagnose_rerun.hpp"

namespace qkcts {

struct ShrinkLimits {
  int tries = 120;
  std::chrono::milliseconds time{2500};
};

struct Shrunk {
  Rerun smallest;
  int tries = 0;
};

// Nothing if no evaluation of the whole case on its own fails as `failed` says.
std::optional<Shrunk> shrink(const Rerunner& rerunner, const GoldenCase& golden, const CaseResult& failed,
                             const ShrinkLimits& limits);

}  // namespace qkcts
