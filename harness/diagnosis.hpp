// SPDX-License-Identifier: Apache-2.0
// What a failing kernel really computes, as data: which other contract its outputs match, where they first diverge, and
// the smallest case that still fails. docs/diagnosis.md. Nothing here is computed; that is diagnose_*.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/json.hpp"
#include "harness/json_at.hpp"
#include "harness/judgement.hpp"

namespace qkcts {

struct RunRecord;

// An entry of the catalogue of mutants.
struct KnownMistake {
  std::string id, clause;
  std::string text;  // the wrong formula
};

// One way to compute something else than the contract asks for.
struct Suspect {
  std::string name;                       // "norm.root=outside_root"; of two: joined by " and "
  std::vector<ClauseDifference> changes;  // asked for (left), computed (right)
  std::vector<KnownMistake> known_as;     // entries that compute the same contract, or the wrong kernel itself
  bool by_kernel = false;                 // its values are those of a wrong kernel, its budgets are not proven
  std::uint64_t judged = 0;               // elements that it fixes within a budget, or exactly
  std::uint64_t explained = 0;            // of these, within it
  std::uint64_t valueless = 0;            // of these, where it has no value (0/0) and no number was written
  double worst = 0;                       // largest |got - its value| / its Delta; infinite where classes differ
  int further_cases = 0;                  // failing cases of the run, beside this one, that it matches too
  std::uint64_t values = 0;               // a digest of its values on the stored rows
  bool same_values = false;               // as the first match, bit for bit
};

// The clauses that it is about, each once.
std::vector<std::string> clauses_named(const Suspect& suspect);

enum class Finding : std::uint8_t {
  matched,    // exactly one suspect explains every element
  ambiguous,  // several do: the case cannot tell them apart
  unmatched,  // none does
  no_values,  // the failure is no wrong value: a crash, a timeout, an unwritten element
  passes,     // run again, the case did not fail
};
std::string_view finding_name(Finding finding);

// Where outputs first leave the contract.
struct Divergence {
  std::optional<qkcts_stage> stage;  // the first failing one, or the first that may be it; nothing: not located
  std::string detail;                // how it was found
};

// The smallest case found that still fails; its expected values were evaluated anew.
struct Reproducer {
  qkcts_shape shape{};
  int tries = 0;
  std::string bundle;   // folder; empty: none was asked for
  std::string command;  // that runs it again; empty without a bundle
};

struct CaseDiagnosis {
  std::string slug, contract;
  Finding finding = Finding::unmatched;
  std::string detail;  // one line, where there is something to add
  Divergence divergence;
  std::uint64_t failing = 0, judged = 0;  // elements, by the contract that was asked for
  int tried = 0;                          // contracts evaluated, pairs included
  bool cut = false;                       // time ran out before all were
  std::vector<Suspect> matches;           // most likely first
  std::vector<Suspect> nearest;           // without a match: what explains most
  std::optional<Reproducer> reproducer;
  double seconds = 0;
};

struct Diagnosis {
  std::vector<CaseDiagnosis> cases;
  int failing_cases = 0;  // of the run; those beyond `cases` were left out or only served to tell matches apart
  std::vector<std::string> warnings;
};

// In the words of conformance/schemas/run.schema.json.
Json diagnosis_json(const Diagnosis& diagnosis);
Diagnosis diagnosis_from_json(const JsonAt& at);

// How many of the failing cases were diagnosed, and what they agree on: one line.
std::string diagnosis_extent(const Diagnosis& diagnosis);

// A terminal of 80 columns.
std::string diagnosis_text(const Diagnosis& diagnosis);
std::string diagnosis_text(const CaseDiagnosis& diagnosis);

// "matches: q_norm.root inside_root -> outside_root (QK-EPS-02)", for a line elsewhere; empty if nothing matches.
std::string diagnosis_line(const CaseDiagnosis& diagnosis);

// Of that case; null if it was not diagnosed.
const CaseDiagnosis* diagnosis_of(const RunRecord& record, const std::string& slug);

}  // namespace qkcts
