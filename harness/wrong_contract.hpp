// SPDX-License-Identifier: Apache-2.0
// A right kernel that is handed a wrong contract, as an adapter: how the entries of the catalogue of mutants that are
// contract fields are run. `mutants?mutant=ID` knows the ids of the catalogue, whatever an entry is made of.
#pragma once

#include <memory>
#include <string>

#include "harness/adapter_runner.hpp"

namespace qkcts {

// The option of the bundled adapter `mutants` that runs an entry of the catalogue: its fault by its own id, no mutant
// where the contract is what is wrong; then `wrong_contract` is set. Other options stay as they are.
void choose_mutant(AdapterSpec& spec);

// The runner, each of whose orders asks for what the mutant `id` computes. Where the mutant does not apply, or needs an
// input that the case does not have, the order stays as it is.
std::unique_ptr<AdapterRunner> with_wrong_contract(std::unique_ptr<AdapterRunner> runner, const std::string& id);

}  // namespace qkcts
