// SPDX-License-Identifier: Apache-2.0
// The rotary embedding as a configuration describes it: rope_theta and rope_scaling beside it, or everything in
// rope_parameters, for all layers or per kind of layer.
#pragma once

#include <cstdint>
#include <string>

#include <qkcts/contract.h>

#include "conformance/model_config_fields.hpp"

namespace qkcts {

struct RopeContext {
  const Json& family;
  std::string kind;  // of the layer
  std::int64_t layer = 0;
  std::int64_t head_dim = 0;
  std::optional<std::int64_t> length;
};

// Changes terms.rope and terms.rotation where the file says something. Throws InputError for a type of scaling, or a
// key of it, that is unknown.
void read_rope(qkcts_contract& terms, ConfigFields& fields, const RopeContext& context);

}  // namespace qkcts
