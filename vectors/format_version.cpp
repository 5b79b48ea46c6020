// SPDX-License-Identifier: Apache-2.0
#include "vectors/format_version.hpp"

#include <algorithm>
#include <string_view>

#include "conformance/contract_field.hpp"
#include "vectors/schema.hpp"

namespace qkcts {
namespace {

// Did this value of a clause come with ABI 1.2? Of what is not at its default and not of ABI 1.0.
bool is_of_abi_1_2(const FieldValue& value) {
  constexpr std::string_view sections[] = {"v_norm.", "projection.", "q_input_norm.", "k_input_norm.", "rounding."};
  if (value.path == "rope.tables") return true;
  if (value.path == "score.query_temperature") return value.json == "\"log_ratio\"";
  if (value.path == "softmax.hidden_values") return value.json == "\"propagated\"";
  return std::any_of(std::begin(sections), std::end(sections),
                     [&](std::string_view section) { return value.path.compare(0, section.size(), section) == 0; });
}

}  // namespace

std::uint32_t format_version_of(const qkcts_contract& terms) {
  std::uint32_t version = schema::first_version;
  for (const FieldValue& value : contract_field_values(terms))
    if (value.by_claim) version = std::max(version, is_of_abi_1_2(value) ? std::uint32_t{3} : std::uint32_t{2});
  return version;
}

}  // namespace qkcts
