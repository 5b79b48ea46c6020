// SPDX-License-Identifier: Apache-2.0
// P8, P10 and P11: who an entry, a query head and a query row do not depend on.
#include <algorithm>
#include <array>
#include <cmath>

#include "vectors/relation_recipe.hpp"

namespace qkcts {
namespace {

// ---- P8: the last entry of the batch, alone and where it is.

std::string batch_fault(const qkcts_contract&, const qkcts_shape& shape, Format) {
  return shape.batch < 2 ? "the batch has one entry" : "";
}

void one_entry(qkcts_shape& shape, Part part) {
  if (part == Part::first) shape.batch = 1;
}

bool has_a_batch_axis(Input input, const Tensor& tensor, const qkcts_shape& shape) {
  switch (input) {
    case Input::q:
    case Input::k:
    case Input::v:
    case Input::q_x:
    case Input::k_x:
    case Input::q_position_ids:
    case Input::k_position_ids:
    case Input::q_document_ids:
    case Input::k_document_ids:
    case Input::kv_len:
    case Input::prefix_len:
      return true;
    case Input::mask:
    case Input::bias:
      return tensor.shape[0] == shape.batch;  // else one for all entries
    default:
      return false;
  }
}

void last_entry(Case& c, Part part) {
  if (part == Part::second) return;
  for (std::size_t i = 0; i < input_count; ++i) {
    const auto input = static_cast<Input>(i);
    if (!c.inputs.has(input) || !has_a_batch_axis(input, c.inputs.at(input), c.shape)) continue;
    Tensor tensor = c.inputs.at(input);
    const auto length = static_cast<std::ptrdiff_t>(tensor.bytes.size() / static_cast<std::size_t>(c.shape.batch));
    tensor.bytes.erase(tensor.bytes.begin(), tensor.bytes.end() - length);
    tensor.shape[0] = 1;
    c.inputs.set(input, std::move(tensor));
  }
}

// ---- P10: every query head gets a key head of its own with the numbers of the one that it read.

bool spans_heads(const qkcts_norm& norm) {
  return norm.applied != 0 && norm.axis == QKCTS_AXIS_FULL_WIDTH;
}

std::string heads_fault(const qkcts_contract& terms, const qkcts_shape& shape, Format) {
  if (std::string fault = projection_fault(terms); !fault.empty()) return fault;
  if (shape.q_heads == shape.kv_heads) return "every query head has a key head of its own";
  return spans_heads(terms.k_norm) || spans_heads(terms.v_norm) ? "a norm runs over all key heads" : "";
}

void as_many_heads(qkcts_shape& shape, Part part) {
  if (part == Part::second) shape.kv_heads = shape.q_heads;
}

// `outer` blocks of Hkv heads become as many blocks of Hq heads.
void repeat_heads(Case& c, Input input, std::int64_t outer, std::size_t head_axis) {
  const Tensor& few = c.inputs.at(input);
  const std::int64_t q_heads = c.shape.q_heads, kv_heads = c.shape.kv_heads;
  std::vector<std::int64_t> extents = few.shape;
  extents[head_axis] = extents[head_axis] / kv_heads * q_heads;
  Tensor many = Tensor::zeros(few.type, extents);
  const auto length = static_cast<std::int64_t>(few.count()) / outer / kv_heads;
  for (std::int64_t block = 0; block < outer; ++block)
    for (std::int64_t h = 0; h < q_heads; ++h)
      for (std::int64_t i = 0; i < length; ++i)
        many.set_pattern(static_cast<std::size_t>((block * q_heads + h) * length + i),
                         few.pattern(static_cast<std::size_t>(
                             (block * kv_heads + kv_head_of(c.contract.terms, c.shape, h)) * length + i)));
  c.inputs.set(input, std::move(many));
}

bool is_per_head(std::uint32_t axes) {
  return axes == QKCTS_AXES_HEAD || axes == QKCTS_AXES_HEAD_HEAD_DIM || axes == QKCTS_AXES_FULL_WIDTH;
}

void repeat_keys(Case& c, Part part) {
  if (part == Part::first) return;
  const qkcts_contract& terms = c.contract.terms;
  repeat_heads(c, Input::k, c.shape.batch, 1);
  repeat_heads(c, Input::v, c.shape.batch, 1);
  struct Parameter {
    Input input;
    std::uint32_t axes;
  };
  for (const Parameter& parameter :
       {Parameter{Input::k_gain, terms.k_norm.gain_axes}, Parameter{Input::k_bias, terms.k_norm.bias_axes},
        Parameter{Input::v_gain, terms.v_norm.gain_axes}, Parameter{Input::v_bias, terms.v_norm.bias_axes}})
    if (c.inputs.has(parameter.input) && is_per_head(parameter.axes)) repeat_heads(c, parameter.input, 1, 0);
}

// ---- P11: keys and values from t on become others; rows that see none of them stay.

// Of each row of [B, Hq, Lq] one behind the last key that it sees; 0 if it sees none.
std::vector<std::int64_t> ends_of_rows(const Case& c) {
  const qkcts_shape& s = c.shape;
  const Visibility visibility(c);
  std::vector<std::int64_t> ends(static_cast<std::size_t>(s.batch * s.q_heads * s.q_len), 0);
  for (std::int64_t row = 0; row < s.batch * s.q_heads * s.q_len; ++row)
    for (std::int64_t key = 0; key < s.k_len; ++key)
      if (visibility.visible(row / s.q_len / s.q_heads, row / s.q_len % s.q_heads, row % s.q_len, key))
        ends[static_cast<std::size_t>(row)] = key + 1;
  return ends;
}

// Behind the keys that the median row sees, but before the last key.
std::int64_t first_replaced(const Case& c) {
  std::vector<std::int64_t> ends;
  for (const std::int64_t end : ends_of_rows(c))
    if (end > 0 && end < c.shape.k_len) ends.push_back(end);
  if (ends.empty()) throw RelationInapplicable("every row sees the last key");
  std::sort(ends.begin(), ends.end());
  return ends[ends.size() / 2];
}

std::string prefix_fault(const qkcts_contract& terms, const qkcts_shape& shape, Format) {
  if (std::string fault = projection_fault(terms); !fault.empty()) return fault;
  if (!hides_keys(terms)) return "every query sees every key";
  return shape.k_len < 2 ? "there is one key" : "";
}

void replace_later(Case& c, Part part) {
  if (part == Part::first) return;
  const std::int64_t from = first_replaced(c);
  for (const Input input : {Input::k, Input::v}) {
    const std::int64_t length = input == Input::k ? c.shape.head_dim : c.shape.v_head_dim;
    const double factor = input == Input::k ? -1 : -2;
    std::int64_t i = 0;
    change_input(c, input, [&](double x) {
      const std::int64_t key = i++ / length % c.shape.k_len;
      return key < from ? x : factor * x;
    });
  }
}

// Rows that see a key, and none from t on: what a row without keys gives may be the mean of all values.
void say_rows(Relation& relation, const Case& first) {
  relation.from_key = first_replaced(first);
  const std::vector<std::int64_t> ends = ends_of_rows(first);
  for (std::size_t row = 0; row < ends.size(); ++row)
    if (ends[row] > 0 && ends[row] <= relation.from_key) relation.rows.push_back(static_cast<std::uint32_t>(row));
}

constexpr RelationRecipe recipes[] = {
    {RelationKind::batch_position, batch_fault, nullptr, one_entry, last_entry, nullptr, true},
    {RelationKind::repeated_heads, heads_fault, nullptr, as_many_heads, repeat_keys},
    {RelationKind::prefix, prefix_fault, nullptr, nullptr, replace_later, say_rows},
};

}  // namespace

std::span<const RelationRecipe> layout_recipes() {
  return recipes;
}

}  // namespace qkcts
