// SPDX-License-Identifier: Apache-2.0
// What lies outside of the corpora: can a mutant that nothing in them kills be killed at all?
#pragma once

#include <cstdint>
#include <vector>

#include "harness/cli/adequacy_hunt.hpp"

namespace qkcts::cli {

// Other corpora: raises `beyond` of the cells that are not killed.
void look_beyond(std::vector<AdequacyRow>& rows, const AdequacyCases& others,
                 const std::vector<AdequacyMutant>& mutants, unsigned jobs);

// The search of `generate --separate`, so many steps for each cell that is not killed, from the contract, the family
// and the shape of the case that comes nearest to a kill.
void search_beyond(std::vector<AdequacyRow>& rows, const AdequacyCases& cases,
                   const std::vector<AdequacyMutant>& mutants, std::uint32_t steps, unsigned jobs);

}  // namespace qkcts::cli
