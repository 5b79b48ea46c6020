// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "conformance/seen_keys.hpp"
#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {
namespace {

// ---- poisoned -----------------------------------------------------------------------------------------------------

constexpr std::int32_t nobodys_document = -1000001;  // no query of a draft has it

// Keys that no query of their batch entry sees, by batch entry.
std::vector<std::vector<std::int64_t>> unseen_keys(const Case& c) {
  const qkcts_shape& s = c.shape;
  const std::vector<bool> seen = seen_keys(c);
  std::vector<std::vector<std::int64_t>> unseen(static_cast<std::size_t>(s.batch));
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t j = 0; j < s.k_len; ++j)
      if (!seen[static_cast<std::size_t>(b * s.k_len + j)]) unseen[static_cast<std::size_t>(b)].push_back(j);
  return unseen;
}

// Everything that is no ordinary number: quiet and signalling NaNs of either sign with payloads, infinities, the ends
// of the range.
std::vector<std::uint64_t> poisons(Format format) {
  const FormatParameters& p = parameters(format);
  const std::uint64_t sign = std::uint64_t{1} << static_cast<unsigned>(p.bits - 1);
  const std::uint64_t quiet = std::uint64_t{1} << static_cast<unsigned>(p.precision - 2);
  const std::uint64_t infinity = encode(format, HUGE_VAL);
  const std::uint64_t largest = infinity - 1;
  return {infinity | quiet,     infinity | sign, infinity | 1,          largest,       sign | infinity | quiet | 5,
          infinity | quiet | 3, infinity,        sign | infinity | 0x2, largest | sign};
}

std::string poisoned_fault(const Draft& draft) {
  const qkcts_contract& terms = draft.contract.terms;
  if (terms.softmax.hidden_values != QKCTS_HIDDEN_EXCLUDED) return "needs hidden values that are excluded";
  if (terms.mask.kv_lengths == 0 && terms.mask.boolean == 0 && terms.regions.documents == 0)
    return "needs key lengths, a boolean mask or documents, to hide a key from every query";
  return draft.shape.k_len < 3 ? "needs at least 3 keys" : std::string();
}

// Key 1 is hidden from every query where a mask or documents can do that; lengths hide the last third of entry 0.
void hide_a_key(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  for (std::int64_t b = 0; b < s.batch; ++b)
    if (!draft.k_document_ids.empty())
      draft.k_document_ids[static_cast<std::size_t>(b * s.k_len + 1)] = nobodys_document;
  for (std::size_t i = 0; i < draft.mask.size(); ++i)
    if (static_cast<std::int64_t>(i) % s.k_len == 1) draft.mask[i] = 0;
}

void draw_poisoned(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  hide_a_key(draft);
  const std::vector<std::uint64_t> patterns = poisons(draft.format);
  const std::vector<std::vector<std::int64_t>> unseen = unseen_keys(sealed(draft).c);
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (const std::int64_t key : unseen[static_cast<std::size_t>(b)])
      for (const Input input : {draft.projects() ? Input::k_x : Input::k, Input::v}) {
        const std::int64_t heads = input == Input::k_x ? 1 : s.kv_heads;
        const std::int64_t lanes = input == Input::v     ? s.v_head_dim
                                   : input == Input::k_x ? draft.k_projection.width
                                                         : s.head_dim;
        for (std::int64_t h = 0; h < heads; ++h) {
          const auto first = static_cast<std::size_t>(((b * heads + h) * s.k_len + key) * lanes);
          for (std::size_t d = 0; d < static_cast<std::size_t>(lanes); ++d)
            draft.poison.push_back(
                {input, first + d, patterns[(d + static_cast<std::size_t>(key + h)) % patterns.size()]});
        }
      }
}

std::string poisoned_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  const std::vector<std::vector<std::int64_t>> unseen = unseen_keys(c);
  if (unseen[0].empty()) return "every key of the first batch entry is seen";
  for (std::size_t b = 0; b < unseen.size(); ++b)
    for (const std::int64_t key : unseen[b])
      for (const Input input : {c.inputs.has(Input::k_x) ? Input::k_x : Input::k, Input::v}) {
        const std::int64_t heads = input == Input::k_x ? 1 : c.shape.kv_heads;
        const std::int64_t row = static_cast<std::int64_t>(b) * heads * c.shape.k_len + key;
        const std::vector<double> values = row_of(c.inputs.at(input), row);
        if (std::none_of(values.begin(), values.end(), [](double x) { return !std::isfinite(x); }))
          return fmt::format("batch entry {}: nobody sees key {}, but its {} is finite", b, key, input_name(input));
      }
  return {};
}

constexpr InputFamily list[] = {
    {"poisoned", "NaNs with payloads and infinities in keys that no query sees: 0 times NaN must not happen",
     "QK-HIDDEN",
     "the first batch entry has a key that no query sees; every such key holds NaN or infinity in k (k_x under a "
     "projection) and v",
     poisoned_fault, draw_poisoned, poisoned_broken},
};

}  // namespace

std::span<const InputFamily> hidden_families() {
  return list;
}

}  // namespace qkcts
