// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose_slip.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace qkcts {
namespace {

using Kind = InputSlip::Kind;

struct KnownSlip {
  const char* clause;
  Input input;
  Kind kind;
  Input other = Input::q;
};

constexpr std::array<KnownSlip, 54> known = {{
    {"QK-GAIN-02", Input::q_gain, Kind::first_head},
    {"QK-GAIN-02", Input::k_gain, Kind::first_head},
    {"QK-GAIN-02", Input::v_gain, Kind::first_head},
    {"QK-GAIN-03", Input::q_bias, Kind::first_head},
    {"QK-GAIN-03", Input::k_bias, Kind::first_head},
    {"QK-GAIN-01", Input::k_gain, Kind::other_side, Input::q_gain},
    {"QK-GAIN-01", Input::q_gain, Kind::other_side, Input::k_gain},
    {"QK-GAIN-03", Input::k_bias, Kind::other_side, Input::q_bias},
    {"QK-GAIN-03", Input::q_bias, Kind::other_side, Input::k_bias},
    {"QK-SCALE-03", Input::scale, Kind::first_head},
    {"QK-SINK-01", Input::sink, Kind::first_head},
    {"QK-ALIBI-01", Input::alibi_slopes, Kind::first_head},
    {"QK-ROPE-12", Input::cos, Kind::first_head},
    {"QK-ROPE-12", Input::sin, Kind::first_head},
    {"QK-ROPE-06", Input::q_position_ids, Kind::index},
    {"QK-ROPE-06", Input::k_position_ids, Kind::index},
    {"QK-ROPE-06", Input::q_position_ids, Kind::first_batch},
    {"QK-ROPE-06", Input::k_position_ids, Kind::first_batch},
    {"QK-ROPE-06", Input::q_position_ids, Kind::one_less},
    {"QK-ROPE-06", Input::k_position_ids, Kind::one_less},
    {"QK-ROPE-06", Input::q_position_ids, Kind::one_more},
    {"QK-ROPE-06", Input::k_position_ids, Kind::one_more},
    {"QK-ROPE-06", Input::q_position_ids, Kind::other_side, Input::k_position_ids},
    {"QK-ROPE-06", Input::k_position_ids, Kind::other_side, Input::q_position_ids},
    {"QK-ROPE-05", Input::cos, Kind::lanes_reversed},
    {"QK-ROPE-05", Input::sin, Kind::lanes_reversed},
    {"QK-ROPE-05", Input::cos, Kind::other_side, Input::sin},
    {"QK-ROPE-05", Input::sin, Kind::other_side, Input::cos},
    {"QK-HEADS-01", Input::k, Kind::first_head},
    {"QK-HEADS-01", Input::v, Kind::first_head},
    {"QK-HEADS-01", Input::k, Kind::heads_reversed},
    {"QK-HEADS-01", Input::v, Kind::heads_reversed},
    {"QK-MASK-03", Input::kv_len, Kind::one_more},
    {"QK-MASK-03", Input::kv_len, Kind::first_batch},
    {"QK-MASK-03", Input::kv_len, Kind::one_less},
    {"QK-MASK-04", Input::mask, Kind::first_batch},
    {"QK-MASK-04", Input::mask, Kind::first_head},
    {"QK-MASK-04", Input::mask, Kind::inverted},
    {"QK-BIAS-01", Input::bias, Kind::first_batch},
    {"QK-BIAS-01", Input::bias, Kind::first_head},
    {"QK-BIAS-01", Input::bias, Kind::negated},
    {"QK-SINK-01", Input::sink, Kind::negated},
    {"QK-ALIBI-01", Input::alibi_slopes, Kind::negated},
    {"QK-MASK-08", Input::q_document_ids, Kind::first_batch},
    {"QK-MASK-08", Input::k_document_ids, Kind::first_batch},
    {"QK-MASK-09", Input::prefix_len, Kind::first_batch},
    {"QK-MASK-09", Input::prefix_len, Kind::one_less},
    {"QK-MASK-09", Input::prefix_len, Kind::one_more},
    {"QK-PROJ-01", Input::k_weight, Kind::other_side, Input::q_weight},
    {"QK-PROJ-02", Input::q_weight_bias, Kind::first_head},
    {"QK-PROJ-02", Input::k_weight_bias, Kind::first_head},
    {"QK-PROJ-02", Input::k_weight_bias, Kind::other_side, Input::q_weight_bias},
    {"QK-PROJ-03", Input::k_x_gain, Kind::other_side, Input::q_x_gain},
    {"QK-PROJ-03", Input::q_x_gain, Kind::other_side, Input::k_x_gain},
}};

// How many heads the entries of an input belong to; 0 if they belong to none.
std::int64_t heads_of(const InputSlip& slip, const Case& c) {
  const qkcts_contract& terms = c.contract.terms;
  const auto by_axes = [&](std::uint32_t axes, std::int64_t heads) {
    const bool by_head = axes == QKCTS_AXES_HEAD || axes == QKCTS_AXES_HEAD_HEAD_DIM || axes == QKCTS_AXES_FULL_WIDTH;
    return by_head ? heads : 0;
  };
  switch (slip.input) {
    case Input::q_gain:
      return by_axes(terms.q_norm.gain_axes, c.shape.q_heads);
    case Input::k_gain:
      return by_axes(terms.k_norm.gain_axes, c.shape.kv_heads);
    case Input::v_gain:
      return by_axes(terms.v_norm.gain_axes, c.shape.kv_heads);
    case Input::q_bias:
      return by_axes(terms.q_norm.bias_axes, c.shape.q_heads);
    case Input::k_bias:
      return by_axes(terms.k_norm.bias_axes, c.shape.kv_heads);
    case Input::k_weight_bias:
      return c.shape.kv_heads;
    case Input::cos:
    case Input::sin:
      return terms.rotation.tables == QKCTS_TABLES_PER_HEAD ? c.shape.q_heads : 0;
    case Input::scale:
      return static_cast<std::int64_t>(c.inputs.at(slip.input).count());
    default:
      return c.shape.q_heads;
  }
}

// Of each of `groups` equal groups of `parts` equal parts: which part stands in the place of part i.
template <class Source>
void rearrange(Tensor& tensor, std::int64_t groups, std::int64_t parts, const Source& source) {
  const auto all = static_cast<std::size_t>(groups * parts);
  if (parts < 2 || tensor.bytes.size() % all != 0) return;
  const std::vector<std::byte> before = tensor.bytes;
  const std::size_t size = before.size() / all;
  for (std::size_t group = 0; group < static_cast<std::size_t>(groups); ++group)
    for (std::size_t i = 0; i < static_cast<std::size_t>(parts); ++i) {
      const std::size_t first = group * static_cast<std::size_t>(parts);
      std::copy_n(before.begin() + static_cast<std::ptrdiff_t>((first + source(i)) * size), size,
                  tensor.bytes.begin() + static_cast<std::ptrdiff_t>((first + i) * size));
    }
}

std::size_t first_part(std::size_t) {
  return 0;
}

// Heads of a tensor that has them behind the batch; else those that its entries belong to.
void rearrange_heads(const InputSlip& slip, const Case& c, Tensor& tensor) {
  const bool has_axis = tensor.shape.size() == 4;
  const std::int64_t heads = has_axis ? tensor.shape[1] : heads_of(slip, c);
  const std::int64_t groups = has_axis ? tensor.shape[0] : 1;
  if (slip.kind == Kind::first_head) return rearrange(tensor, groups, heads, first_part);
  rearrange(tensor, groups, heads, [&](std::size_t i) { return static_cast<std::size_t>(heads) - 1 - i; });
}

// NaN keeps its bits.
void negate(Tensor& tensor) {
  const std::size_t bits = element_size(tensor.type) * 8;
  for (std::size_t i = 0; i < tensor.count(); ++i)
    if (tensor.value(i) == tensor.value(i)) tensor.set_pattern(i, tensor.pattern(i) ^ (std::uint64_t{1} << (bits - 1)));
}

void change(const InputSlip& slip, const Case& c, Tensor& tensor) {
  const std::size_t count = tensor.count();
  switch (slip.kind) {
    case Kind::first_head:
    case Kind::heads_reversed:
      return rearrange_heads(slip, c, tensor);
    case Kind::first_batch:
      return rearrange(tensor, 1, tensor.shape[0], first_part);
    case Kind::lanes_reversed: {
      const std::int64_t lanes = tensor.shape.back();
      return rearrange(tensor, static_cast<std::int64_t>(count) / std::max<std::int64_t>(1, lanes), lanes,
                       [&](std::size_t i) { return static_cast<std::size_t>(lanes) - 1 - i; });
    }
    case Kind::negated:
      return negate(tensor);
    case Kind::one_more:
      for (std::size_t i = 0; i < count; ++i) tensor.set_pattern(i, tensor.pattern(i) + 1);
      return;
    case Kind::other_side:
      if (c.inputs.has(slip.other) && c.inputs.at(slip.other).shape == tensor.shape) tensor = c.inputs.at(slip.other);
      return;
    case Kind::index: {
      const auto length = static_cast<std::size_t>(tensor.shape.back());
      for (std::size_t i = 0; i < count; ++i) tensor.set_pattern(i, i % length);
      return;
    }
    case Kind::one_less:
      for (std::size_t i = 0; i < count; ++i)
        if (tensor.value(i) >= 1) tensor.set_pattern(i, tensor.pattern(i) - 1);
      return;
    case Kind::inverted:
      for (std::size_t i = 0; i < count; ++i) tensor.set_pattern(i, tensor.pattern(i) == 0 ? 1 : 0);
      return;
  }
}

}  // namespace

std::vector<InputSlip> input_slips(const Case& c) {
  std::vector<InputSlip> slips;
  for (const KnownSlip& one : known) {
    const InputSlip slip{one.clause, one.input, one.kind, one.other};
    if (Case changed = c; apply(slip, c, changed)) slips.push_back(slip);
  }
  return slips;
}

bool apply(const InputSlip& slip, const Case& c, Case& changed) {
  if (!c.inputs.has(slip.input)) return false;
  Tensor tensor = c.inputs.at(slip.input);
  change(slip, c, tensor);
  if (tensor.bytes == c.inputs.at(slip.input).bytes) return false;
  changed.inputs.set(slip.input, std::move(tensor));
  return true;
}

std::string slip_text(const InputSlip& slip) {
  switch (slip.kind) {
    case Kind::first_head:
      return "that of head 0";
    case Kind::first_batch:
      return "that of batch entry 0";
    case Kind::other_side:
      return fmt::format("{} in its place", input_name(slip.other));
    case Kind::index:
      return "the index of the token";
    case Kind::one_less:
      return "one less";
    case Kind::one_more:
      return "one more";
    case Kind::inverted:
      return "inverted";
    case Kind::negated:
      return "negated";
    case Kind::heads_reversed:
      return "heads in reverse";
    case Kind::lanes_reversed:
      return "lanes in reverse";
  }
  return {};
}

std::string slip_name(const InputSlip& slip) {
  return fmt::format("input {}: {}", input_name(slip.input), slip_text(slip));
}

}  // namespace qkcts
