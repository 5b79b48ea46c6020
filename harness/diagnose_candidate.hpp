// SPDX-License-Identifier: Apache-2.0
// What a wrong kernel may compute instead: other contracts, and the same contract with inputs that are misread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conformance/case.hpp"
#include "conformance/mutant_catalogue.hpp"

namespace qkcts {

// An input that is read wrongly. The clause says how it has to be read.
struct InputSlip {
  enum class Kind : std::uint8_t {
    first_head,   // every head reads the entry of head 0
    first_batch,  // every batch entry reads that of entry 0
    other_side,   // the tensor `other` in its place
    index,        // 0, 1, 2, ... along the last axis
    one_less,     // every entry is one too small
    one_more,     // or too large
    inverted,     // true for false
    negated,
    heads_reversed,  // the last head's entry for the first, and so on
    lanes_reversed,  // of tables
  };
  std::string clause;
  Input input = Input::q;
  Kind kind = Kind::first_head;
  Input other = Input::q;
};

struct Candidate {
  std::string name;  // "norm.root=outside_root", "input sink: that of head 0"
  qkcts_contract terms{};
  std::vector<InputSlip> slips;
  const CatalogueMutant* fault = nullptr;  // a wrong kernel instead of the right one
};

// The neighbours of the contract, further numbers that kernels have by mistake, the catalogue of mutants as far as it
// changes a clause, misread inputs, and known faults of kernels; each once, none that equals the contract itself. Those
// that the case has no inputs for are among them.
std::vector<Candidate> candidates(const Case& c);

// Both at once; nothing where they change the same field or input, or the result is no valid contract.
std::optional<Candidate> joined(const qkcts_contract& own, const Candidate& a, const Candidate& b);

// The case as the candidate computes it; nothing if it needs an input that is not there, or changes nothing.
std::optional<Case> case_of(const Case& c, const Candidate& candidate);

// Entries of the catalogue that compute what the candidate says.
std::vector<const CatalogueMutant*> entries_of(const Case& c, const Candidate& candidate);

// Clause by clause: what was asked for, and what the candidate does.
std::vector<ClauseDifference> changes_of(const Contract& own, const Candidate& candidate);

}  // namespace qkcts
