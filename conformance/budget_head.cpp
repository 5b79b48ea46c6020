// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_head.hpp"

#include "conformance/seen_keys.hpp"

namespace qkcts {
namespace {

// What stands where nobody looks may be anything; it is neither read nor judged.
VectorError unseen_key(std::int64_t head_dim) {
  VectorError vector;
  vector.magnitude.resize(static_cast<std::size_t>(head_dim));
  vector.error.resize(static_cast<std::size_t>(head_dim));
  vector.domain = true;
  return vector;
}

}  // namespace

SeenTokens::SeenTokens(const Case& c) : k_len_(c.shape.k_len) {
  if (c.contract.terms.softmax.hidden_values == QKCTS_HIDDEN_EXCLUDED) {
    seen_ = seen_keys(c);
  }
}

HeadData head_data(const Case& c, std::int64_t b, std::int64_t kv_head, OperandBudget& k, const SeenTokens& tokens,
                   const BudgetArithmetic& arithmetic) {
  const qkcts_shape& shape = c.shape;
  HeadData data(shape.head_dim, shape.k_len);
  for (std::int64_t key = 0; key < shape.k_len; ++key) {
    data.keys.set(key, tokens.seen(b, key) ? k.row(b, kv_head, key).product : unseen_key(shape.head_dim));
  }
  const Tensor& v = c.inputs.at(Input::v);
  const std::int64_t elements = shape.k_len * shape.v_head_dim;
  const std::int64_t first = (b * shape.kv_heads + kv_head) * elements;
  bool exact = true;
  for (std::int64_t i = 0; i < elements; ++i) {
    const bool seen = tokens.seen(b, i / shape.v_head_dim);
    data.v.push_back(seen ? v.value(static_cast<std::size_t>(first + i)) : 0.0);
    data.v_error.push_back(seen ? arithmetic.operand_error(data.v.back(), c.inputs.format) : 0.0);
    exact = exact && data.v_error.back() == 0;
  }
  data.v.resize(data.v.size() + static_cast<std::size_t>(shape.v_head_dim));
  data.v_error.resize(data.v.size());
  if (exact) {
    data.v_error.clear();
  }
  return data;
}

}  // namespace qkcts
