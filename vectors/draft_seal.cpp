// SPDX-License-Identifier: Apache-2.0
// The end of a draft: every number is rounded to its format, and becomes an input of a case.
#include <algorithm>

#include "vectors/family_draft.hpp"

namespace qkcts {
namespace {

Tensor encoded(Format format, std::vector<std::int64_t> shape, const std::vector<double>& values) {
  Tensor tensor = Tensor::zeros(element_type(format), std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set_pattern(i, encode(format, values[i]));
  return tensor;
}

Tensor integers(std::vector<std::int64_t> shape, const std::vector<std::int32_t>& values, std::int32_t added = 0) {
  Tensor tensor = Tensor::zeros(ElementType::int32, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set_pattern(i, static_cast<std::uint32_t>(values[i] + added));
  return tensor;
}

Tensor booleans(std::vector<std::int64_t> shape, const std::vector<std::uint8_t>& values) {
  Tensor tensor = Tensor::zeros(ElementType::boolean, std::move(shape));
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set_pattern(i, values[i]);
  return tensor;
}

// As the contract says: the factors, or what is added to 1.
std::vector<double> stored_gain(const qkcts_norm& norm, std::vector<double> factors) {
  if (norm.gain == QKCTS_GAIN_ONE_PLUS_W)
    for (double& factor : factors) factor -= 1;
  return factors;
}

Tensor input_of(const Draft& draft, const InputRequirement& need) {
  const std::vector<std::int64_t> broadcast = {draft.broadcast_batch, draft.broadcast_heads, draft.shape.q_len,
                                               draft.shape.k_len};
  const auto stored = [&](const std::vector<double>& values) { return encoded(draft.format, need.shape, values); };
  const std::int32_t first = draft.has_tables() ? 0 : static_cast<std::int32_t>(draft.first_position);
  switch (need.input) {
    case Input::q:
      return stored(draft.q);
    case Input::k:
      return stored(draft.k);
    case Input::v:
      return stored(draft.v);
    case Input::q_gain:
      return stored(stored_gain(draft.norm(DraftSide::query), draft.q_gain));
    case Input::k_gain:
      return stored(stored_gain(draft.norm(DraftSide::key), draft.k_gain));
    case Input::v_gain:
      return stored(stored_gain(draft.norm(DraftSide::value), draft.v_gain));
    case Input::q_bias:
      return stored(draft.q_bias);
    case Input::k_bias:
      return stored(draft.k_bias);
    case Input::v_bias:
      return stored(draft.v_bias);
    case Input::scale:
      return stored(draft.scale);
    case Input::sink:
      return stored(draft.sink);
    case Input::alibi_slopes:
      return encoded(accumulator_format(draft.format), need.shape, draft.alibi_slopes);
    case Input::bias:
      return encoded(draft.format, broadcast, draft.bias);
    case Input::mask:
      return booleans(broadcast, draft.mask);
    case Input::kv_len:
      return integers(need.shape, draft.kv_len);
    case Input::prefix_len:
      return integers(need.shape, draft.prefix_len);
    case Input::q_document_ids:
      return integers(need.shape, draft.q_document_ids);
    case Input::k_document_ids:
      return integers(need.shape, draft.k_document_ids);
    case Input::q_position_ids:
      return integers(need.shape, draft.q_position_ids, first);
    case Input::k_position_ids:
      return integers(need.shape, draft.k_position_ids, first);
    default:
      return {};  // the tables are the caller's, and what is projected comes below
  }
}

void set_projection(const Draft& draft, DraftSide side, CaseInputs& inputs) {
  const bool query = side == DraftSide::query;
  const DraftProjection p = draft.planted ? planted_projection(draft, side) : draft.projection(side);
  const std::int64_t columns = draft.heads(side) * draft.shape.head_dim;
  const qkcts_norm& norm = input_norm_of(draft.contract.terms, side);
  const auto set = [&](Input of_query, Input of_key, std::vector<std::int64_t> shape,
                       const std::vector<double>& values) {
    if (!values.empty()) inputs.set(query ? of_query : of_key, encoded(draft.format, std::move(shape), values));
  };
  set(Input::q_x, Input::k_x, {draft.shape.batch, draft.tokens(side), p.width}, p.x);
  set(Input::q_weight, Input::k_weight, {p.width, columns}, p.weight);
  set(Input::q_weight_bias, Input::k_weight_bias, {columns}, p.bias);
  set(Input::q_x_gain, Input::k_x_gain, {std::ssize(p.gain)}, stored_gain(norm, p.gain));
  set(Input::q_x_bias, Input::k_x_bias, {std::ssize(p.x_bias)}, p.x_bias);
}

// Those that input_of() does not make.
bool made_elsewhere(Input input) {
  const bool table = input == Input::cos || input == Input::sin;
  return table || input >= Input::q_x;
}

}  // namespace

DrawnCase sealed(const Draft& draft) {
  DrawnCase drawn;
  drawn.c.contract = draft.contract;
  drawn.c.shape = draft.shape;
  drawn.c.inputs.format = draft.format;
  for (const InputRequirement& need : required_inputs(draft.contract.terms, draft.shape, draft.format))
    if (!made_elsewhere(need.input)) drawn.c.inputs.set(need.input, input_of(draft, need));
  if (draft.projects())
    for (const DraftSide side : {DraftSide::query, DraftSide::key}) set_projection(draft, side, drawn.c.inputs);
  for (const Draft::Poison& poison : draft.poison)
    drawn.c.inputs.tensors[static_cast<std::size_t>(poison.input)]->set_pattern(poison.index, poison.pattern);
  if (draft.has_tables()) {
    drawn.first_position = draft.first_position;
    for (const auto* ids : {&draft.q_position_ids, &draft.k_position_ids})
      for (const std::int32_t id : *ids) drawn.table_rows = std::max<std::int64_t>(drawn.table_rows, id + 1);
  }
  return drawn;
}

}  // namespace qkcts
