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

constexpr std::array<KnownSlip, 35> known = {{
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
    {"QK-MASK-03", Input::kv_len, Kind::first_batch},
    {"QK-MASK-03", Input::kv_len, Kind::one_less},
    {"QK-MASK-04", Input::mask, Kind::first_batch},
    {"QK-MASK-04", Input::mask, Kind::inverted},
    {"QK-BIAS-01", Input::bias, Kind::first_batch},
    {"QK-MASK-08", Input::q_document_ids, Kind::first_batch},
    {"QK-MASK-08", Input::k_document_ids, Kind::first_batch},
    {"QK-MASK-09", Input::prefix_len, Kind::first_batch},
    {"QK-MASK-09", Input::prefix_len, Kind::one_less},
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

// The first of `parts` equal parts in the place of each.
void repeat_first(Tensor& tensor, std::int64_t parts) {
  if (parts < 2 || tensor.bytes.size() % static_cast<std::size_t>(parts) != 0) return;
  const std::size_t size = tensor.bytes.size() / static_cast<std::size_t>(parts);
  for (std::size_t at = size; at < tensor.bytes.size(); at += size)
    std::copy_n(tensor.bytes.begin(), size, tensor.bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

void change(const InputSlip& slip, const Case& c, Tensor& tensor) {
  const std::size_t count = tensor.count();
  switch (slip.kind) {
    case Kind::first_head:
      return repeat_first(tensor, heads_of(slip, c));
    case Kind::first_batch:
      return repeat_first(tensor, tensor.shape[0]);
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
    if (Case changed = c; apply(slip, changed)) slips.push_back(slip);
  }
  return slips;
}

bool apply(const InputSlip& slip, Case& c) {
  if (!c.inputs.has(slip.input)) return false;
  Tensor tensor = c.inputs.at(slip.input);
  change(slip, c, tensor);
  if (tensor.bytes == c.inputs.at(slip.input).bytes) return false;
  c.inputs.set(slip.input, std::move(tensor));
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
    case Kind::inverted:
      return "inverted";
  }
  return {};
}

std::string slip_name(const InputSlip& slip) {
  return fmt::format("input {}: {}", input_name(slip.input), slip_text(slip));
}

}  // namespace qkcts
