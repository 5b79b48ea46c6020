// SPDX-License-Identifier: Apache-2.0
// Which kind of layer stands at an index: models mix layers with and without window, rotation or norm.
#pragma once

#include <cstdint>
#include <string>

#include "conformance/model_config_fields.hpp"

namespace qkcts {

struct ChosenLayer {
  std::int64_t index = 0;
  std::string kind;    // a key of the family's "contracts"
  std::string layers;  // one line on layers of other kinds; empty if all are alike
};

// Without a request the first layer that has a contract. Throws InputError if the layer asked for has none.
ChosenLayer choose_layer(const Json& family, ConfigFields& fields, const ModelConfigRequest& request);

}  // namespace qkcts
