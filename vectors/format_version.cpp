// SPDX-License-Identifier: Apache-2.0
#include "vectors/format_version.hpp"

#include <algorithm>

#include "conformance/contract_field.hpp"
#include "vectors/schema.hpp"

namespace qkcts {

std::uint32_t format_version_of(const qkcts_contract& terms) {
  const std::vector<FieldValue> values = contract_field_values(terms);
  const bool later = std::any_of(values.begin(), values.end(), [](const FieldValue& value) { return value.by_claim; });
  return later ? schema::latest_version : schema::first_version;
}

}  // namespace qkcts
