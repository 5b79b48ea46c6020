// SPDX-License-Identifier: Apache-2.0
// Runs wrong and valid kernels and has the rules of other suites judge them.
#pragma once

#include <vector>

#include "harness/cli/adequacy_hunt.hpp"
#include "harness/peer_study.hpp"

namespace qkcts::cli {

// `rows`: the kill matrix of `mutants` over `cases`. Besides these, every fault of the mutants adapter that `of_id`
// matches and that a case of the corpora detects. Throws AdapterError where bundled adapters are not there.
PeerStudy study_peers(const AdequacyCases& cases, const std::vector<AdequacyMutant>& mutants,
                      const std::vector<AdequacyRow>& rows, const std::string& of_id);

}  // namespace qkcts::cli
