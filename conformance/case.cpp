// SPDX-License-Identifier: Apache-2.0
#include "conformance/case.hpp"

#include <cmath>

#include <fmt/format.h>

#include "conformance/special_values.hpp"

namespace qkcts {
namespace {

constexpr std::array<std::string_view, input_count> names = {"q",
                                                             "k",
                                                             "v",
                                                             "q_gain",
                                                             "k_gain",
                                                             "q_bias",
                                                             "k_bias",
                                                             "cos",
                                                             "sin",
                                                             "q_position_ids",
                                                             "k_position_ids",
                                                             "scale",
                                                             "mask",
                                                             "bias",
                                                             "kv_len",
                                                             "alibi_slopes",
                                                             "sink",
                                                             "q_document_ids",
                                                             "k_document_ids",
                                                             "prefix_len",
                                                             "v_gain",
                                                             "v_bias",
                                                             "q_x",
                                                             "k_x",
                                                             "q_weight",
                                                             "k_weight",
                                                             "q_weight_bias",
                                                             "k_weight_bias",
                                                             "q_x_gain",
                                                             "q_x_bias",
                                                             "k_x_gain",
                                                             "k_x_bias"};

constexpr std::int64_t any_extent = -2;

std::vector<std::int64_t> parameter_shape(std::uint32_t axes, std::int64_t heads, std::int64_t head_dim) {
  switch (axes) {
    case QKCTS_AXES_SCALAR:
      return {1};
    case QKCTS_AXES_HEAD_DIM:
      return {head_dim};
    case QKCTS_AXES_HEAD:
      return {heads};
    case QKCTS_AXES_HEAD_HEAD_DIM:
      return {heads, head_dim};
    default:
      return {heads * head_dim};
  }
}

bool extent_allowed(std::int64_t required, std::int64_t full, std::int64_t got) {
  if (required == -1) return got == 1 || got == full;
  if (required == any_extent) return got >= 1;
  return got == required;
}

std::string requirement_text(const InputRequirement& requirement) {
  std::string text = "[";
  for (const std::int64_t extent : requirement.shape) {
    if (text.size() > 1) text += ", ";
    text += extent == -1 ? "1 or full" : extent == any_extent ? "any" : std::to_string(extent);
  }
  return text + "]";
}

std::string tensor_fault(const InputRequirement& need, const Tensor& tensor, const qkcts_shape& shape) {
  const std::string_view name = input_name(need.input);
  if (tensor.type != need.type)
    return fmt::format("input {}: element type {}, must be {}", name, element_type_name(tensor.type),
                       element_type_name(need.type));
  bool fits = tensor.shape.size() == need.shape.size();
  for (std::size_t axis = 0; fits && axis < need.shape.size(); ++axis)
    fits = extent_allowed(need.shape[axis], axis == 0 ? shape.batch : shape.q_heads, tensor.shape[axis]);
  if (!fits)
    return fmt::format("input {}: shape {}, must be {}", name, shape_text(tensor.shape), requirement_text(need));
  if (tensor.bytes.size() != tensor.count() * element_size(tensor.type))
    return fmt::format("input {}: {} bytes do not fill shape {}", name, tensor.bytes.size(), shape_text(tensor.shape));
  return {};
}

// What is projected has one width: that of its rows, of its matrix and of the parameters of its norm.
std::string width_fault(const CaseInputs& inputs, const std::vector<InputRequirement>& needs) {
  const struct {
    Input rows, matrix, gain, bias;
  } sides[] = {{Input::q_x, Input::q_weight, Input::q_x_gain, Input::q_x_bias},
               {Input::k_x, Input::k_weight, Input::k_x_gain, Input::k_x_bias}};
  for (const auto& side : sides) {
    if (!inputs.has(side.rows)) continue;
    const std::int64_t width = inputs.at(side.rows).shape.back();
    for (const InputRequirement& need : needs) {
      const bool of_side = need.input == side.matrix || need.input == side.gain || need.input == side.bias;
      if (!of_side || need.shape[0] != any_extent) continue;
      const std::int64_t extent = inputs.at(need.input).shape[0];
      if (extent != width)
        return fmt::format("input {}: {} rows, but {} has width {}", input_name(need.input), extent,
                           input_name(side.rows), width);
    }
  }
  return {};
}

// Of the others only where NaN and infinities may stand is ruled, by special_value_fault().
bool has_value_rule(Input input) {
  switch (input) {
    case Input::q_position_ids:
    case Input::k_position_ids:
    case Input::kv_len:
    case Input::prefix_len:
    case Input::mask:
    case Input::cos:
    case Input::sin:
    case Input::scale:
    case Input::alibi_slopes:
    case Input::sink:
      return true;
    default:
      return false;
  }
}

// Values that an input may hold. `rows` is the number of rows of the rotary tables, -1 if there are none; `k_len` the
// largest key length.
std::string value_fault(Input input, const Tensor& tensor, std::int64_t rows, std::int64_t k_len) {
  if (!has_value_rule(input)) return {};
  const std::string_view name = input_name(input);
  const std::size_t count = tensor.count();
  for (std::size_t i = 0; i < count; ++i) {
    const double value = tensor.value(i);
    switch (input) {
      case Input::q_position_ids:
      case Input::k_position_ids:
        if (rows < 0 && value < 0) return fmt::format("input {}[{}]: position {} is negative", name, i, value);
        if (rows >= 0 && (value < 0 || value >= static_cast<double>(rows)))
          return fmt::format("input {}[{}]: position {} lies outside the {} rows of cos and sin", name, i, value, rows);
        break;
      case Input::kv_len:
      case Input::prefix_len:
        if (value < 0 || value > static_cast<double>(k_len))
          return fmt::format("input {}[{}]: length {} lies outside 0..{}", name, i, value, k_len);
        break;
      case Input::mask:
        if (value > 1) return fmt::format("input {}[{}]: byte {} is neither 0 nor 1", name, i, value);
        break;
      case Input::cos:
      case Input::sin:
      case Input::scale:
      case Input::alibi_slopes:
      case Input::sink:
        if (!std::isfinite(value)) return fmt::format("input {}[{}]: {} is not finite", name, i, value);
        break;
      default:
        break;
    }
  }
  return {};
}

}  // namespace

std::string_view input_name(Input input) {
  return names[static_cast<std::size_t>(input)];
}

std::optional<Input> input_named(std::string_view name) {
  for (std::size_t i = 0; i < input_count; ++i)
    if (names[i] == name) return static_cast<Input>(i);
  return std::nullopt;
}

std::vector<InputRequirement> required_inputs(const qkcts_contract& terms, const qkcts_shape& s, Format format) {
  const ElementType storage = element_type(format);
  const ElementType table = element_type(accumulator_format(format));
  std::vector<InputRequirement> list;
  const auto add = [&list](Input input, ElementType type, std::vector<std::int64_t> shape) {
    list.push_back({input, type, std::move(shape)});
  };
  const bool projects = terms.projection.form != QKCTS_PROJECTION_NONE;
  if (!projects) {
    add(Input::q, storage, {s.batch, s.q_heads, s.q_len, s.head_dim});
    add(Input::k, storage, {s.batch, s.kv_heads, s.k_len, s.head_dim});
  }
  add(Input::v, storage, {s.batch, s.kv_heads, s.k_len, s.v_head_dim});
  const qkcts_norm& q = terms.q_norm;
  const qkcts_norm& k = terms.k_norm;
  if (q.applied != 0 && q.gain != QKCTS_GAIN_NONE)
    add(Input::q_gain, storage, parameter_shape(q.gain_axes, s.q_heads, s.head_dim));
  if (k.applied != 0 && k.gain != QKCTS_GAIN_NONE)
    add(Input::k_gain, storage, parameter_shape(k.gain_axes, s.kv_heads, s.head_dim));
  if (q.applied != 0 && q.bias_axes != QKCTS_AXES_NONE)
    add(Input::q_bias, storage, parameter_shape(q.bias_axes, s.q_heads, s.head_dim));
  if (k.applied != 0 && k.bias_axes != QKCTS_AXES_NONE)
    add(Input::k_bias, storage, parameter_shape(k.bias_axes, s.kv_heads, s.head_dim));
  const qkcts_norm& v = terms.v_norm;
  if (v.applied != 0 && v.gain != QKCTS_GAIN_NONE)
    add(Input::v_gain, storage, parameter_shape(v.gain_axes, s.kv_heads, s.v_head_dim));
  if (v.applied != 0 && v.bias_axes != QKCTS_AXES_NONE)
    add(Input::v_bias, storage, parameter_shape(v.bias_axes, s.kv_heads, s.v_head_dim));
  if (projects) {
    add(Input::q_x, storage, {s.batch, s.q_len, any_extent});
    add(Input::k_x, storage, {s.batch, s.k_len, any_extent});
    add(Input::q_weight, storage, {any_extent, s.q_heads * s.head_dim});
    add(Input::k_weight, storage, {any_extent, s.kv_heads * s.head_dim});
    if (terms.projection.bias != 0) {
      add(Input::q_weight_bias, storage, {s.q_heads * s.head_dim});
      add(Input::k_weight_bias, storage, {s.kv_heads * s.head_dim});
    }
    const auto add_row_parameter = [&](Input input, std::uint32_t axes) {
      if (axes != QKCTS_AXES_NONE) add(input, storage, {axes == QKCTS_AXES_SCALAR ? 1 : any_extent});
    };
    const qkcts_norm& q_input = terms.projection.q_input;
    const qkcts_norm& k_input = terms.projection.k_input;
    if (q_input.applied != 0) {
      add_row_parameter(Input::q_x_gain, q_input.gain_axes);
      add_row_parameter(Input::q_x_bias, q_input.bias_axes);
    }
    if (k_input.applied != 0) {
      add_row_parameter(Input::k_x_gain, k_input.gain_axes);
      add_row_parameter(Input::k_x_bias, k_input.bias_axes);
    }
  }
  const bool rotates = terms.rope.order != QKCTS_ROPE_NONE;
  if (rotates && terms.rotation.angles == QKCTS_ANGLES_TABLE) {
    const std::int64_t rotated = terms.rope.rotated == 0 ? s.head_dim : terms.rope.rotated;
    std::vector<std::int64_t> extents = {any_extent, rotated / 2};
    if (terms.rotation.tables == QKCTS_TABLES_PER_HEAD) extents.insert(extents.begin(), s.q_heads);
    add(Input::cos, table, extents);
    add(Input::sin, table, extents);
  }
  if (rotates || terms.logits.query_temperature != QKCTS_QUERY_TEMPERATURE_NONE)
    add(Input::q_position_ids, ElementType::int32, {s.batch, s.q_len});
  if (rotates) add(Input::k_position_ids, ElementType::int32, {s.batch, s.k_len});
  if (terms.score.scale_form == QKCTS_SCALE_LEARNED_SCALAR)
    add(Input::scale, storage, {terms.logits.scale_axes == QKCTS_SCALE_PER_HEAD ? s.q_heads : 1});
  if (terms.mask.boolean != 0) add(Input::mask, ElementType::boolean, {-1, -1, s.q_len, s.k_len});
  if (terms.score.bias_order != QKCTS_BIAS_NONE) add(Input::bias, storage, {-1, -1, s.q_len, s.k_len});
  if (terms.mask.kv_lengths != 0) add(Input::kv_len, ElementType::int32, {s.batch});
  if (terms.logits.alibi != QKCTS_ALIBI_NONE) add(Input::alibi_slopes, table, {s.q_heads});
  if (terms.softmax.sink != QKCTS_SINK_NONE) add(Input::sink, storage, {s.q_heads});
  if (terms.regions.documents != 0) {
    add(Input::q_document_ids, ElementType::int32, {s.batch, s.q_len});
    add(Input::k_document_ids, ElementType::int32, {s.batch, s.k_len});
  }
  if (terms.regions.prefix != 0) add(Input::prefix_len, ElementType::int32, {s.batch});
  return list;
}

std::string case_fault(const Case& c) {
  const qkcts_contract& terms = c.contract.terms;
  if (std::string fault = contract_fault(terms); !fault.empty()) return fault;
  if (std::string fault = shape_fault(terms, c.shape); !fault.empty()) return fault;
  const std::vector<InputRequirement> needs = required_inputs(terms, c.shape, c.inputs.format);
  std::array<bool, input_count> needed{};
  for (const InputRequirement& need : needs) {
    needed[static_cast<std::size_t>(need.input)] = true;
    if (!c.inputs.has(need.input))
      return fmt::format("input {} is missing: the contract needs it", input_name(need.input));
    if (std::string fault = tensor_fault(need, c.inputs.at(need.input), c.shape); !fault.empty()) return fault;
  }
  for (std::size_t i = 0; i < input_count; ++i)
    if (!needed[i] && c.inputs.has(static_cast<Input>(i)))
      return fmt::format("input {} is given, but the contract has no use for it", names[i]);
  std::int64_t rows = -1;
  if (c.inputs.has(Input::cos)) {
    const std::size_t axis = c.inputs.at(Input::cos).shape.size() - 2;
    rows = c.inputs.at(Input::cos).shape[axis];
    if (c.inputs.at(Input::sin).shape[axis] != rows)
      return fmt::format("input sin has {} rows, cos has {}", c.inputs.at(Input::sin).shape[axis], rows);
  }
  if (std::string fault = width_fault(c.inputs, needs); !fault.empty()) return fault;
  for (const InputRequirement& need : needs) {
    std::string fault = value_fault(need.input, c.inputs.at(need.input), rows, c.shape.k_len);
    if (!fault.empty()) return fault;
  }
  return special_value_fault(c);
}

std::int64_t kv_head_of(const qkcts_contract& terms, const qkcts_shape& shape, std::int64_t h) {
  return terms.heads.mapping == QKCTS_HEADS_TILE ? h % shape.kv_heads : h / (shape.q_heads / shape.kv_heads);
}

}  // namespace qkcts
