// SPDX-License-Identifier: Apache-2.0
// The table of families, and which of its entries a configuration file belongs to.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "conformance/json.hpp"

namespace qkcts {

// All documents of conformance/model_families in one object: "families"; "wrappers", files of several models;
// "irrelevant", keys that say nothing about any attention; "harmless", keys that say nothing with this value.
const Json& model_families();

struct FoundFamily {
  const Json* family = nullptr;  // into model_families()
  const Json* object = nullptr;  // the part of the file that it reads
  std::string place;             // of that part, as a JSON pointer
  std::string model_type;
  std::string part;  // a key of its contracts, if --section named one: "cross"; empty: the usual one
};

// `section` names an object of the file or a part of the family; one that is neither is refused. Throws InputError
// naming the field.
FoundFamily find_family(const Json& file, const std::string& section, std::string_view origin);

}  // namespace qkcts
