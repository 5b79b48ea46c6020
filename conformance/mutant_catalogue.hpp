// SPDX-License-Identifier: Apache-2.0
// The wrong kernels that the suite has to tell from right ones, as data: conformance/mutants/*.json, compiled in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract.hpp"

namespace qkcts {

enum class MutantKind : std::uint8_t { math, round, layout, order, harness };
std::string_view mutant_kind_name(MutantKind kind);

// One field of the contract and what a wrong kernel has there; conformance/mutants/README.md describes the words.
struct MutantChange {
  enum class Form : std::uint8_t { literal, other, field, shape, times, over, plus, power, rounded };
  std::string path;  // "q_norm.eps"; "qk_norm.eps": of q and of k, each for itself
  Form form = Form::literal;
  std::string value;  // JSON of a literal; else a number, a path, a length of the shape or a format
};

// Under which contracts or shapes the mutant is meant.
struct MutantCondition {
  std::string path;                 // as above, or "shape"
  bool negated = false;             // none of `values`
  std::vector<std::string> values;  // JSON texts
};

struct CatalogueMutant {
  std::string id;
  std::string clause;  // the clause that it violates; empty: of the checker, or awaiting a clause
  std::string word;    // how the catalogue of issues calls that clause; empty for our own
  MutantKind kind = MutantKind::math;
  std::optional<qkcts_stage> stage;  // the first one in which it shows (of q and k: the one of q)
  std::string contract, mutant;      // the right formula and the wrong one
  std::string visible, invisible;    // on which inputs; may be empty
  std::vector<std::string> sources;  // threads; "own" where there is none
  std::string suite;                 // that has to kill it; empty: that of its clause
  // Exactly one of the following is there.
  std::vector<MutantChange> fields;  // with conditions
  std::vector<MutantCondition> when;
  std::string fault;   // id in adapters/mutants
  std::string check;   // the test of ours that detects the broken checker
  std::string awaits;  // what has to come first
};

// In the order of the files and of their entries.
std::span<const CatalogueMutant> mutant_catalogue();
// nullptr if there is none.
const CatalogueMutant* find_catalogue_mutant(std::string_view id);

// The contract that the mutant computes where `asked` is asked for, normalised. Nothing if it has no `fields`, if its
// conditions do not hold, if it would be no valid contract, if it equals `asked`, or if it depends on a shape and
// `shape` is null.
std::optional<qkcts_contract> contract_of(const CatalogueMutant& mutant, const qkcts_contract& asked,
                                          const qkcts_shape* shape = nullptr);

// Reads one file of the catalogue; throws InputError.
std::vector<CatalogueMutant> mutants_from_json(std::string_view text, std::string_view origin);

}  // namespace qkcts
