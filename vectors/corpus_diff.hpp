// SPDX-License-Identifier: Apache-2.0
// What a new corpus says otherwise than an old one: for whoever reviews the change.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "vectors/corpus_reader.hpp"

namespace qkcts {

struct CaseDifference {
  std::string aspect;        // contract, description, inputs, rows, rule, expected, value, profiles, budget, trust, ...
  std::string place;         // field, input, or stage; of budgets "STAGE PROFILE"
  std::size_t elements = 0;  // that differ; 0: not a matter of elements
  // expected, value: distance in ulp, the largest last; budget, separation: new / old. Infinite where one of them is
  // not finite, or 0.
  double least = 0, most = 0;
  std::string text;  // the same for people, in one short line
};

struct ChangedCase {
  std::string slug;
  std::vector<CaseDifference> differences;  // never empty
};

struct CorpusDifference {
  std::vector<std::string> head;  // "suite: smoke, now core", "relation p2/... is new"
  std::vector<std::string> appeared, vanished;
  std::vector<ChangedCase> changed;
  std::size_t equal = 0;  // cases
  bool none() const { return head.empty() && appeared.empty() && vanished.empty() && changed.empty(); }
};

// Cases with equal digests are equal; the others are read. Throws InputError.
CorpusDifference corpus_difference(const CorpusReader& old_corpus, const CorpusReader& new_corpus);
std::vector<CaseDifference> case_differences(const GoldenCase& old_case, const GoldenCase& new_case);

}  // namespace qkcts
