// SPDX-License-Identifier: Apache-2.0
// The search for what a kernel computes: every candidate on a few telling rows, what survives on all stored rows, and
// pairs where no single one does.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "harness/diagnose_candidate.hpp"
#include "harness/diagnose_observation.hpp"
#include "harness/diagnosis.hpp"

namespace qkcts {

struct SearchLimits {
  unsigned threads = 2;
  std::chrono::milliseconds time{6000};  // what is not evaluated by then is left out, and said
};

struct FoundSuspect {
  Suspect suspect;
  std::vector<std::string> parts;  // names of candidates(): one, or two of a pair
};

struct FoundSuspects {
  std::vector<FoundSuspect> matches;  // explain every judged element of every observed stage
  std::vector<FoundSuspect> nearest;  // without a match: explain more than the contract that was asked for
  std::vector<FoundSuspect> wider;    // fit too, by a larger budget around the same values: no match
  int tried = 0;
  bool cut = false;
};

FoundSuspects search_suspects(const Observation& observation, const SearchLimits& limits);

// Another failing case: which of these it has too, and which of those explain it.
enum class Agreement : std::uint8_t { absent, matches, contradicted };
std::vector<Agreement> agreement(const Observation& observation, const std::vector<FoundSuspect>& suspects);

}  // namespace qkcts
