// SPDX-License-Identifier: Apache-2.0
// Runs the wrong kernels of the catalogue, and right ones, and has the diagnosis look at their outputs alone.
#pragma once

#include <string>

#include "harness/cli/adequacy_cases.hpp"
#include "harness/diagnosis_study.hpp"

namespace qkcts::cli {

// Mutants whose id matches `of_id` and whose kind, clause or group of clauses `of_class`, in binary32 and bfloat16:
// contract fields and code alike. Throws AdapterError where bundled adapters are not there, UsageError where no mutant
// matches.
DiagnosisStudy study_diagnosis(const AdequacyCases& cases, const std::string& of_id, const std::string& of_class,
                               unsigned threads);

}  // namespace qkcts::cli
