// SPDX-License-Identifier: Apache-2.0
// One key of a configuration, one clause of the contract: the effects that the table of families may name.
#pragma once

#include <string>

#include "conformance/model_config_fields.hpp"
#include "conformance/model_config_layers.hpp"

namespace qkcts {

// `effect` is the right side of a family's "reads" (or "norms", for its "gates"). A missing key has no effect, except
// that a gate has its default. Throws InputError for a value that is not understood.
void apply_config_effect(const std::string& key, const std::string& effect, const Json& family, ConfigFields& fields,
                         const ChosenLayer& layer, Contract& contract);

}  // namespace qkcts
