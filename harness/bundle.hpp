// SPDX-License-Identifier: Apache-2.0
// A failing case as a folder that stands for itself: corpus of one case, contract, and how to run it again.
#pragma once

#include <string>

#include "harness/diagnosis.hpp"
#include "harness/run_record.hpp"

namespace qkcts {

struct WrittenBundle {
  std::string folder;
  std::string command;
};

// DIR/SLUG, slashes of the slug as points, with case.h5, contract.json and README.md; what lies there under these names
// is replaced. `golden` is the small case, `result` what the adapter made of it, `diagnosis` that of the case that it
// was made from. Throws WriteError.
WrittenBundle write_bundle(const std::string& dir, GoldenCase golden, const CaseResult& result,
                           const CaseDiagnosis& diagnosis, const RunRecord& record);

}  // namespace qkcts
