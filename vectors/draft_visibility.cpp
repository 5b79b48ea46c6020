// SPDX-License-Identifier: Apache-2.0
// Which keys an ordinary draft hides: lengths, boolean mask, documents, prefix.
#include <algorithm>

#include "vectors/family_draft.hpp"

namespace qkcts {
namespace {

// Different lengths in different batch entries, and a first entry that is not full.
std::vector<std::int32_t> ordinary_lengths(const Draft& draft) {
  const RandomStream stream = draft.stream(Draw::kv_len);
  const std::int64_t keys = draft.shape.k_len;
  std::vector<std::int32_t> lengths;
  for (std::int64_t b = 0; b < draft.shape.batch; ++b) {
    std::int64_t length = (2 * keys + 2) / 3;
    if (b == 1) length = keys;
    if (b > 1) length = 1 + static_cast<std::int64_t>(stream.below(static_cast<std::uint64_t>(b), draft.shape.k_len));
    lengths.push_back(static_cast<std::int32_t>(length));
  }
  return lengths;
}

// A quarter of the keys is hidden, but never key 0 nor the one that stands where the query stands.
void draw_ordinary_mask(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  const RandomStream stream = draft.stream(Draw::mask);
  draft.mask.assign(extent_product({draft.broadcast_batch, draft.broadcast_heads, s.q_len, s.k_len}), 1);
  for (std::size_t i = 0; i < draft.mask.size(); ++i) {
    const auto key = static_cast<std::int64_t>(i) % s.k_len;
    const auto query = static_cast<std::int64_t>(i) / s.k_len % s.q_len;
    const bool kept = key == 0 || key == query || key == query + s.k_len - s.q_len;
    if (!kept && stream.below(i, 4) == 0) draft.mask[i] = 0;
  }
}

// An order of its own for every batch entry.
std::vector<std::uint32_t> order_of(const Draft& draft, Draw draw, std::int64_t b, std::int64_t count) {
  const RandomStream stream(draft.seed + static_cast<std::uint64_t>(b), static_cast<std::uint32_t>(draw));
  return stream.permutation(static_cast<std::uint32_t>(count));
}

// Two or three documents one after the other, with ids in no order; a query belongs to the document of the key
// beside which it stands.
void draw_ordinary_documents(Draft& draft) {
  constexpr std::int32_t unsorted_ids[] = {42, -7, 1000003};
  const qkcts_shape& s = draft.shape;
  const std::int64_t offset = draft.contract.terms.mask.alignment == QKCTS_TOP_LEFT ? 0 : s.k_len - s.q_len;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    std::vector<std::uint32_t> cuts = order_of(draft, Draw::document, b, std::max<std::int64_t>(1, s.k_len - 1));
    cuts.resize(std::min<std::size_t>(cuts.size(), 1 + static_cast<std::size_t>(b + 1) % 2));
    std::sort(cuts.begin(), cuts.end());
    const auto id_of = [&](std::int64_t key) {  // key t lies behind cut c if c < t
      const auto passed = std::count_if(cuts.begin(), cuts.end(), [&](std::uint32_t cut) { return cut < key; });
      return unsorted_ids[passed] + static_cast<std::int32_t>(b);
    };
    for (std::int64_t t = 0; t < s.k_len; ++t) draft.k_document_ids.push_back(id_of(t));
    for (std::int64_t t = 0; t < s.q_len; ++t)
      draft.q_document_ids.push_back(id_of(std::clamp<std::int64_t>(t + offset, 0, s.k_len - 1)));
  }
}

// Different lengths in different batch entries, in 1 .. Lk - 1, and beyond what the first query sees without them where
// there is room.
void draw_ordinary_prefix(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  const std::int64_t last = std::max<std::int64_t>(1, s.k_len - 1);
  const std::int64_t offset = draft.contract.terms.mask.alignment == QKCTS_TOP_LEFT ? 0 : s.k_len - s.q_len;
  const std::int64_t first = offset + 2 <= last ? std::max<std::int64_t>(1, offset + 2) : 1;
  const std::vector<std::uint32_t> order = order_of(draft, Draw::prefix, 0, last - first + 1);
  for (std::int64_t b = 0; b < s.batch; ++b)
    draft.prefix_len.push_back(static_cast<std::int32_t>(first + order[static_cast<std::size_t>(b) % order.size()]));
}

}  // namespace

void draw_ordinary_visibility(Draft& draft) {
  const qkcts_contract& terms = draft.contract.terms;
  if (terms.mask.boolean != 0) draw_ordinary_mask(draft);
  if (terms.mask.kv_lengths != 0) draft.kv_len = ordinary_lengths(draft);
  if (terms.regions.documents != 0) draw_ordinary_documents(draft);
  if (terms.regions.prefix != 0) draw_ordinary_prefix(draft);
}

}  // namespace qkcts
