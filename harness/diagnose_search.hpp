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

// What is not evaluated by then is left out, and said. One evaluation, of some rows, is not interrupted.
//
// The ten seconds of a case in shares: six here, 1.5 for further cases (diagnose_case.cpp), 2.5 to make it small
// (diagnose_shrink.hpp). Measured in the study of docs/diagnosis.md on two cores: of 531 wrong kernels the median needs
// 0.5 s, and the search of two ends by the clock.
struct SearchLimits {
  unsigned threads = 2;
  std::chrono::milliseconds time{4500};    // for singles and pairs on telling rows
  std::chrono::milliseconds longer{1500};  // and more for what survives, on all stored rows
};

struct FoundSuspect {
  Suspect suspect;
  double off = 0;                  // how far what fails lies from its values, in units of the budget asked for
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
std::vector<Agreement> agreement(const Observation& observation, const std::vector<FoundSuspect>& suspects,
                                 std::chrono::steady_clock::time_point end);

}  // namespace qkcts
