// SPDX-License-Identifier: Apache-2.0
// What can be wrong with the `fields` of a mutant before any contract is asked for.
#pragma once

#include <string>

#include "conformance/mutant_catalogue.hpp"

namespace qkcts {

// A path, a word or a value that does not exist; empty if all do, else one line.
std::string mutant_fields_fault(const CatalogueMutant& mutant);

}  // namespace qkcts
