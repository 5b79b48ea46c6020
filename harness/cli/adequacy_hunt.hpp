// SPDX-License-Identifier: Apache-2.0
// Of each mutant and profile, the case that separates it most: stored separations where the mutant is a neighbouring
// contract, evaluation of the likeliest cases where it is not.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/adequacy.hpp"
#include "harness/cli/adequacy_cases.hpp"

namespace qkcts::cli {

struct AdequacyMutant {
  std::string id, clause, kind, right, wrong, invisible;
  // The wrong contract that a kernel with this fault computes when it is asked for that one, on that shape; nothing
  // where the fault makes no difference, or no contract.
  std::function<std::optional<qkcts_contract>(const qkcts_contract&, const qkcts_shape&)> contract;
};

// Of a cell (a mutant under a profile), when it is enough.
enum class HuntEffort : std::uint8_t {
  first,   // at a kill
  likely,  // at a kill that the likeliest cases do not raise, or when every case was compared
  all,     // when every case was compared
};

// Rows in the order of the mutants.
std::vector<AdequacyRow> hunt(const AdequacyCases& cases, const std::vector<AdequacyMutant>& mutants, HuntEffort effort,
                              unsigned jobs);

}  // namespace qkcts::cli
