// SPDX-License-Identifier: Apache-2.0
// The door to valijson (draft-07), and the schemas that are compiled in.
#pragma once

#include <string>
#include <string_view>

#include "conformance/json.hpp"

namespace qkcts {

// Patterns are searched recursively: only a schema without any may admit strings of any length.
enum class LongStrings { refused, admitted };

// Throws InputError "ORIGIN: /json/pointer: what is wrong and what is allowed". Strings longer than 4096 bytes are
// refused before anything else is looked at. `schema` is the name of a file of conformance/schemas without
// ".schema.json"; an unknown name is a std::logic_error.
void require_schema(const Json& document, std::string_view schema, std::string_view origin,
                    LongStrings strings = LongStrings::refused);

// The same for a part of a document, which stands at the JSON pointer `place` in it and is one of the schema's
// definitions.
void require_definition(const Json& document, std::string_view schema, std::string_view definition,
                        std::string_view origin, const std::string& place, LongStrings strings);

// The text of such a schema, e.g. for `contract` or `profile`.
std::string_view schema_text(std::string_view schema);

}  // namespace qkcts
