// SPDX-License-Identifier: Apache-2.0
// What the diagnosis says of every wrong kernel of the catalogue, from outputs alone, and of right ones;
// docs/diagnosis.md.
#pragma once

#include <string>
#include <vector>

#include "harness/adequacy.hpp"
#include "harness/diagnosis.hpp"

namespace qkcts {

enum class NamedFirst : std::uint8_t {
  clause,       // what is named first is about the clause of the mutant
  same_values,  // something else is, which computes the same values there, bit for bit; the mutant is named too
  behind,       // something else is; the mutant is named behind it
  other,        // something else is, and the mutant is not named
  nothing,      // nothing matches
};

// A wrong kernel of the catalogue on the first case that it fails in a format.
struct DiagnosedMutant {
  std::string id, clause;
  bool is_contract = false;  // the scalar adapter under a wrong contract; else an adapter with a fault
  Format format = Format::binary32;
  std::string slug;  // empty: no case fails in output or lse
  NamedFirst named = NamedFirst::nothing;
  std::string first;        // what is named first, in words
  std::size_t matches = 0;  // in all
  bool cut = false;         // the clock ended the search
  double seconds = 0;
};
NamedFirst named_first(const CaseDiagnosis& diagnosis, const std::string& id, const std::string& clause);

struct DiagnosisStudy {
  std::vector<AdequacyCorpus> corpora;
  std::vector<DiagnosedMutant> mutants;
  std::size_t valid_runs = 0;        // of right kernels
  std::vector<std::string> accused;  // "scalar on SLUG": of which a diagnosis found something wrong
};

struct DiagnosisTally {
  std::size_t diagnosed = 0, right = 0, same_values = 0, without_case = 0, cut = 0;
  double median_seconds = 0, max_seconds = 0;
};
DiagnosisTally tally(const DiagnosisStudy& study, Format format);

// No right kernel is accused, and of the wrong ones that fail somewhere the clause of 95 % in binary32 and of 80 % in
// bfloat16 is named first.
bool keeps_promise(const DiagnosisStudy& study);

std::string diagnosis_study_text(const DiagnosisStudy& study);
std::string diagnosis_study_markdown(const DiagnosisStudy& study);
// One line per mutant and format, with a head.
std::string diagnosis_study_csv(const DiagnosisStudy& study);
Json diagnosis_study_json(const DiagnosisStudy& study);

}  // namespace qkcts
