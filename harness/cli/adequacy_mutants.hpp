// SPDX-License-Identifier: Apache-2.0
// The catalogue's mutants that a contract expresses, as `adequacy` takes them.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/adequacy_hunt.hpp"

namespace qkcts::cli {

// `mutants`: a glob of ids. `classes`: a glob of kinds ("math"), clauses ("QK-EPS-01") or clause groups ("QK-EPS").
// Empty globs match everything. Throws UsageError where nothing is left.
std::vector<AdequacyMutant> adequacy_mutants(const std::string& mutants, const std::string& classes);

}  // namespace qkcts::cli
