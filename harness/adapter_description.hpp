// SPDX-License-Identifier: Apache-2.0
// What an adapter says about itself, and whether a case lies inside of it. docs/adapter_abi.md, section describe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/case.hpp"
#include "harness/tensor_layout.hpp"

namespace qkcts {

struct ShapeLimit {
  std::optional<std::int64_t> min, max, multiple_of;
};

enum class Claim : std::uint8_t { not_made, made };

struct AdapterDescription {
  std::string name, version, build, device;
  std::vector<Format> formats;
  StageSet stages = 0;                                       // that run() can write
  std::map<Format, std::string> profile;                     // by which it wants to be judged
  std::map<std::string, std::vector<std::string>> supports;  // contract field path -> canonical JSON of the values
  std::map<std::string, ShapeLimit> limits;                  // field of qkcts_shape -> limits
  std::size_t alignment = 1;
  std::vector<TensorLayout> layouts;  // that run() takes beside the dense one
  Claim bitwise_repeatable = Claim::not_made;
  Claim batch_invariant = Claim::not_made;
  Claim data_dependent_order = Claim::not_made;  // then relations do not bind the bits
  std::string text;                              // canonical JSON of the whole description
};

// Throws InputError naming `origin` and the JSON pointer of the first fault.
AdapterDescription description_from_json(std::string_view text, std::string_view origin);

// The same for the text that the adapter `given` returned: its faults are AdapterError, since no file of the user's is
// bad.
AdapterDescription description_from_adapter(std::string_view text, const std::string& given);

// Why the case lies outside of the description, as one line ("k_len 257 is more than 256"); empty if it lies inside.
std::string unsupported_reason(const AdapterDescription& description, const Case& c);

}  // namespace qkcts
