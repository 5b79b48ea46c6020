// SPDX-License-Identifier: Apache-2.0
// Which calls a case is worth: the plain ones, and those that show whether a claim of the adapter holds.
// docs/adapter_abi.md, "What the host does around a call".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "conformance/case.hpp"
#include "harness/guarded_buffer.hpp"
#include "harness/tensor_layout.hpp"

namespace qkcts {

struct AdapterDescription;

enum class Variant : std::uint8_t {
  plain,
  bshd,
  padded,
  strided,
  byte_offset,
  output_alone,      // no stage but the output is asked for
  entries_alone,     // each entry of the batch in a call of its own
  entries_reversed,  // the last entry first
  batch_of_33,       // the entries again and again, until there are 33
};
inline constexpr Variant last_variant = Variant::batch_of_33;

// As reports say it: "layout bshd", "output alone".
std::string_view variant_name(Variant variant);
std::optional<Variant> variant_named(std::string_view name);
TensorLayout layout_of(Variant variant);
// The claim batch_invariant speaks of these, bitwise_repeatable of the others that are no layout.
bool changes_batch(Variant variant);
bool changes_strides(Variant variant);

struct Call {
  Variant variant = Variant::plain;
  Placement placement = Placement::end_aligned;
  std::vector<std::uint32_t> entries = {};  // of the case that make up the batch of this call; empty: all, as they are
};

// The stages that a call is asked for, of those asked for in the case.
StageSet stages_of_call(const Call& call, StageSet asked);

enum class Variants : std::uint8_t { none, all };

// `repeat` rounds of plain calls, end-aligned and start-aligned in turn; then what the description allows of the rest.
std::vector<Call> plan_calls(const AdapterDescription& description, const Case& c, StageSet asked, int repeat,
                             Variants variants);

}  // namespace qkcts
