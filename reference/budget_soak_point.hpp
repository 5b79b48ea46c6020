// SPDX-License-Identifier: Apache-2.0
// Contracts with rounding points at random, for the soak of budgets.
#pragma once

#include "reference/budget_soak.hpp"

namespace qkcts {

// Points of the contract, each at random in a random format, where the contract has the number that they round.
void vary_points(SoakRandom& random, qkcts_contract& terms);

Contract random_contract_with_points(SoakRandom& random);

}  // namespace qkcts
