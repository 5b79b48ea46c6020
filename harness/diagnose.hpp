// SPDX-License-Identifier: Apache-2.0
// The failing cases of a run, one after another: run again, compared with other contracts, located, made small. The
// only part of the harness, beside cli/, that asks the reference; verdicts do not depend on it.
#pragma once

#include <functional>
#include <string>

#include "harness/run_session.hpp"

namespace qkcts {

struct DiagnoseOptions {
  int cases = 5;                // of the failing ones, different contracts first; 0: all
  std::string case_glob = "*";  // of slugs
  std::string bundle;           // folder for reproducers; empty: none is written
  unsigned threads = 2;
};

// Called after every case, in the order in which they are diagnosed.
using DiagnoseProgress = std::function<void(const CaseDiagnosis&, std::size_t done, std::size_t all)>;

// Of `record` the failing cases are taken; `request` says how the adapter is run, and names the corpus, which was
// checked. Ctrl-C ends it early. Throws InputError, AdapterError, WriteError.
Diagnosis diagnose(const RunRequest& request, const RunRecord& record, const DiagnoseOptions& options,
                   const DiagnoseProgress& progress = {});

// One case, of which the adapter's outputs are known; without reproducer and divergence.
CaseDiagnosis diagnose_outputs(const GoldenCase& golden, const CaseResult& result, const StageBytes& outputs,
                               unsigned threads);

}  // namespace qkcts
