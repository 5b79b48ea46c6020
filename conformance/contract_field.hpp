// SPDX-License-Identifier: Apache-2.0
// Every clause of a contract that is data: where it stands in JSON and in the C struct, and its texts.
// This table is the only home of enumerator texts; parsing, canonical text, differences and declarations read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <qkcts/contract.h>

namespace qkcts {

enum class FieldType : std::uint32_t {
  enumeration,       // uint32_t; JSON: one of `texts`, text i stands for value i
  flag,              // uint32_t 0 or 1; JSON: true or false
  lanes,             // uint32_t; JSON: integer, or null for 0
  number,            // double; 0 stands for `standard`
  optional_number,   // double; JSON: number, or null for 0
  integer,           // int64_t
  optional_integer,  // int64_t; JSON: integer, or null for 0
};

// Fields of ABI 1.0 are always written. A later one is left out of the canonical text at its default, so that the
// digest of a contract that does not use it stays, and an adapter has it only by saying so. Constants of such a clause,
// which have a meaning only beside it, are written with it.
enum class Presence : std::uint32_t { always, beside_default };

struct ContractField {
  std::string_view clause;   // id in clause.hpp
  std::string_view section;  // "q_norm"
  std::string_view key;      // "root"
  FieldType type;
  std::uint32_t offset;                     // into qkcts_contract
  std::span<const std::string_view> texts;  // of an enumeration
  bool (*meant)(const qkcts_contract&);     // false: the field has no meaning under these terms and is ignored
  Presence presence = Presence::always;
  double standard = 0;  // default of a number that 0 stands for (multiplier: 1)

  std::string path() const { return std::string(section) + "." + std::string(key); }
};

// The member as it stands in C; Value is uint32_t, double or int64_t by the type of the field.
template <typename Value>
Value field_value(const qkcts_contract& terms, const ContractField& field) {
  Value value;
  std::memcpy(&value, reinterpret_cast<const char*>(&terms) + field.offset, sizeof value);
  return value;
}

template <typename Value>
void set_field_value(qkcts_contract& terms, const ContractField& field, Value value) {
  std::memcpy(reinterpret_cast<char*>(&terms) + field.offset, &value, sizeof value);
}

// In the order of <qkcts/contract.h>. Left out: `kind` of each norm, which names a combination of `applied`, `center`
// and `statistic`, and mask.window, an object or null.
std::span<const ContractField> contract_field_table();

// The sections of a contract that hold a norm, and with it a `kind`.
struct NormSection {
  std::string_view clause;  // of `kind`
  std::string_view name;    // "q_norm"
  std::uint32_t offset;     // of its qkcts_norm in qkcts_contract
  Presence presence;
  bool (*meant)(const qkcts_contract&);    // as of a field
  bool (*written)(const qkcts_contract&);  // false: the canonical text has no such section

  std::string path() const { return std::string(name) + ".kind"; }
};
std::span<const NormSection> norm_sections();
const qkcts_norm& norm_of(const qkcts_contract& terms, const NormSection& section);
qkcts_norm& norm_of(qkcts_contract& terms, const NormSection& section);

// Names of the usual combinations of center and statistic; the fourth has no usual name. Index: see norm_kind().
std::span<const std::string_view> norm_kind_texts();
// "none" if the norm is not applied.
std::string_view norm_kind(const qkcts_norm& norm);

// One clause as it stands in canonical JSON.
struct FieldValue {
  std::string path;         // "q_norm.root", "q_norm.kind", "mask.window"
  std::string_view clause;  // "QK-EPS-02"
  std::string json;         // "\"inside_root\"", "1e-06", "null", "{\"left\":15,\"right\":0}"
  bool by_claim = false;    // not at its default, and no adapter has it without naming it
};

// Every clause that has a meaning under these terms; a declaration "field path -> allowed values" is checked against
// it.
std::vector<FieldValue> contract_field_values(const qkcts_contract& terms);

// All paths that contract_field_values() can ever return.
std::vector<std::string> contract_field_paths();

// Ignored fields set to zero, struct_size and version filled in: equal contracts become equal bytes.
qkcts_contract normalised(const qkcts_contract& terms);

}  // namespace qkcts
