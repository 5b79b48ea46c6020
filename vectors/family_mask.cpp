// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "vectors/family_draft.hpp"
#include "vectors/family_list.hpp"

namespace qkcts {
namespace {

// ---- padded -------------------------------------------------------------------------------------------------------

double poison_size(Format format) {
  return format == Format::binary16 ? 0x1p13 : 0x1p40;
}

std::string padded_fault(const Draft& draft) {
  return draft.contract.terms.mask.kv_lengths == 0 ? "needs key lengths" : std::string();
}

void draw_padded(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  const RandomStream lengths = draft.stream(Draw::kv_len);
  const RandomStream poison = draft.stream(Draw::poison);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    std::int64_t length =
        s.k_len / 2 + static_cast<std::int64_t>(lengths.below(static_cast<std::uint64_t>(b), (s.k_len + 3) / 4));
    if (s.batch > 1 && b == 0) length = 0;
    if (b == 1) length = s.k_len;
    draft.kv_len[static_cast<std::size_t>(b)] = static_cast<std::int32_t>(length);
    for (std::int64_t h = 0; h < s.kv_heads; ++h)
      for (std::int64_t t = length; t < s.k_len; ++t) {
        const auto index = static_cast<std::uint64_t>((b * s.kv_heads + h) * s.k_len + t);
        for (std::int64_t d = 0; d < s.head_dim; ++d)
          draft.row(DraftSide::key, b, h, t)[d] = poison_size(draft.format) *
                                                  poison.sign(index * 65536 + static_cast<std::uint64_t>(d)) *
                                                  poison.uniform(index * 65536 + static_cast<std::uint64_t>(d), 1, 2);
        for (std::int64_t d = 0; d < s.v_head_dim; ++d)
          draft.v_row(b, h, t)[d] = poison_size(draft.format) * (d % 2 == 0 ? 1 : -1);
      }
  }
}

std::string padded_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  const std::vector<double> lengths = c.inputs.at(Input::kv_len).values();
  const auto keys = static_cast<double>(c.shape.k_len);
  if (lengths.size() > 1 && (lengths[0] != 0 || lengths[1] != keys)) return "lengths do not begin with 0 and full";
  if (lengths.size() == 1 && lengths[0] >= keys && keys > 1) return "no key is hidden";
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    if (lengths[b] >= keys) continue;
    const std::int64_t row =
        static_cast<std::int64_t>(b) * c.shape.kv_heads * c.shape.k_len + static_cast<std::int64_t>(lengths[b]);
    for (const DraftSide side : {DraftSide::key, DraftSide::value})
      for (const double x : row_of(rows_of(c, side), row))
        if (std::abs(x) < poison_size(c.inputs.format) || !std::isfinite(x)) return "a hidden entry is no poison";
  }
  return {};
}

// ---- random_mask --------------------------------------------------------------------------------------------------

constexpr std::int64_t tile = 16;

std::string random_mask_fault(const Draft& draft) {
  const bool any = draft.contract.terms.mask.boolean != 0 || draft.contract.terms.score.bias_order != QKCTS_BIAS_NONE;
  return any ? std::string() : "needs a boolean mask or an additive bias";
}

bool is_blank_row(std::int64_t t, std::int64_t rows) {
  return t == 0 || t == rows / 2 || t == rows - 1;
}

// Half of the keys are hidden at random; rows at the head, in the middle and at the end see none, and every third row
// does not see the first tile.
bool is_hidden(const RandomStream& stream, std::uint64_t index, std::int64_t t, std::int64_t j, const qkcts_shape& s) {
  if (is_blank_row(t, s.q_len)) return true;
  if (t % 3 == 1 && j < tile && s.k_len > tile) return true;
  return (stream.bits(index) & 1U) != 0;
}

void draw_random_mask(Draft& draft) {
  const qkcts_shape& s = draft.shape;
  const bool boolean = draft.contract.terms.mask.boolean != 0;
  const bool additive = draft.contract.terms.score.bias_order != QKCTS_BIAS_NONE;
  const RandomStream stream = draft.stream(Draw::mask);
  for (std::int64_t b = 0; b < draft.broadcast_batch; ++b)
    for (std::int64_t h = 0; h < draft.broadcast_heads; ++h)
      for (std::int64_t t = 0; t < s.q_len; ++t)
        for (std::int64_t j = 0; j < s.k_len; ++j) {
          const std::size_t index = draft.mask_index(b, h, t, j);
          const bool hidden = is_hidden(stream, index, t, j, s);
          if (boolean) draft.mask[index] = hidden ? 0 : 1;
          if (additive && !boolean && hidden) draft.bias[index] = -std::numeric_limits<double>::infinity();
        }
}

std::string random_mask_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  const qkcts_shape& s = c.shape;
  const Visibility mask(c);
  double visible = 0, all = 0;
  for (std::int64_t t = 0; t < s.q_len; ++t) {
    std::int64_t seen = 0;
    for (std::int64_t j = 0; j < s.k_len; ++j) seen += mask.visible(0, 0, t, j) ? 1 : 0;
    if (is_blank_row(t, s.q_len) != (seen == 0) && is_blank_row(t, s.q_len))
      return fmt::format("row {} sees {} keys instead of none", t, seen);
    if (is_blank_row(t, s.q_len)) continue;
    visible += static_cast<double>(seen);
    all += static_cast<double>(s.k_len);
  }
  if (all > 100 && (visible < 0.05 * all || visible > 0.65 * all))
    return fmt::format("{} of {} keys are visible in other rows", visible, all);
  return {};
}

// ---- scattered_documents ------------------------------------------------------------------------------------------

std::string scattered_documents_fault(const Draft& draft) {
  if (draft.contract.terms.regions.documents == 0) return "needs documents";
  return draft.shape.k_len < 4 ? "needs at least 4 keys" : std::string();
}

constexpr std::int32_t strangers_document = 77;  // no key has it

std::int64_t stranger(std::int64_t queries) {
  return queries / 2;
}

// Documents whose keys lie among those of others, with the ends of the range as ids; one query belongs to none of them.
void draw_scattered_documents(Draft& draft) {
  constexpr std::int32_t ids[] = {std::numeric_limits<std::int32_t>::max(), -1,
                                  std::numeric_limits<std::int32_t>::min()};
  const qkcts_shape& s = draft.shape;
  const RandomStream stream = draft.stream(Draw::document);
  for (std::size_t i = 0; i < draft.k_document_ids.size(); ++i) {
    const std::size_t t = i % static_cast<std::size_t>(s.k_len);
    draft.k_document_ids[i] = ids[t < 4 ? t % 3 : stream.below(i, 3)];
  }
  for (std::size_t i = 0; i < draft.q_document_ids.size(); ++i)
    draft.q_document_ids[i] = static_cast<std::int64_t>(i) % s.q_len == stranger(s.q_len)
                                  ? strangers_document
                                  : ids[stream.below(i + (std::uint64_t{1} << 32U), 3)];
}

std::string scattered_documents_broken(const GoldenCase& golden) {
  const Case& c = golden.input;
  const std::vector<double> ids = c.inputs.at(Input::k_document_ids).values();
  if (ids[0] != ids[3] || ids[0] == ids[1] || ids[1] == ids[2]) return "the first documents do not alternate";
  const Visibility visibility(c);
  for (std::int64_t j = 0; j < c.shape.k_len; ++j)
    if (visibility.visible(0, 0, stranger(c.shape.q_len), j))
      return fmt::format("the query of no document sees key {}", j);
  return {};
}

// ---- prefix_ends --------------------------------------------------------------------------------------------------

std::string prefix_ends_fault(const Draft& draft) {
  return draft.contract.terms.regions.prefix == 0 ? "needs a prefix" : std::string();
}

std::int64_t prefix_end(std::int64_t b, std::int64_t keys) {
  const std::int64_t ends[] = {keys, 0, keys - 1, 1};
  return ends[b % std::ssize(ends)];
}

void draw_prefix_ends(Draft& draft) {
  for (std::size_t b = 0; b < draft.prefix_len.size(); ++b)
    draft.prefix_len[b] = static_cast<std::int32_t>(prefix_end(static_cast<std::int64_t>(b), draft.shape.k_len));
}

std::string prefix_ends_broken(const GoldenCase& golden) {
  const std::vector<double> lengths = golden.input.inputs.at(Input::prefix_len).values();
  for (std::size_t b = 0; b < lengths.size(); ++b)
    if (lengths[b] != static_cast<double>(prefix_end(static_cast<std::int64_t>(b), golden.input.shape.k_len)))
      return fmt::format("batch entry {} has a prefix of {}", b, lengths[b]);
  return {};
}

constexpr InputFamily list[] = {
    {"padded", "key lengths of 0, full and between; what is hidden holds large finite values", "QK-MASK",
     "batch entries 0 and 1 have length 0 and Lk; every hidden entry of k and v is at least 2^40 (2^13 in binary16)",
     padded_fault, draw_padded, padded_broken, true},
    {"random_mask", "scattered keys, rows without any key at the head, in the middle and at the end", "QK-MASK",
     "those rows see no key, the others between a twentieth and two thirds", random_mask_fault, draw_random_mask,
     random_mask_broken},
    {"scattered_documents", "documents in pieces among each other, in no order, and a query that belongs to none",
     "QK-MASK", "keys 0 and 3 are of one document, 1 and 2 of others; the middle query sees no key",
     scattered_documents_fault, draw_scattered_documents, scattered_documents_broken},
    {"prefix_ends", "prefixes of every key, of none, of all but one and of one", "QK-MASK",
     "prefix lengths are Lk, 0, Lk - 1, 1 in turn", prefix_ends_fault, draw_prefix_ends, prefix_ends_broken},
};

}  // namespace

std::span<const InputFamily> mask_families() {
  return list;
}

}  // namespace qkcts
