// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_head.hpp"

namespace qkcts {
namespace {

bool any_query_sees(const Visibility& visibility, const qkcts_shape& shape, std::int64_t b, std::int64_t key) {
  for (std::int64_t h = 0; h < shape.q_heads; ++h) {
    for (std::int64_t t = 0; t < shape.q_len; ++t) {
      if (visibility.visible(b, h, t, key)) {
        return true;
      }
    }
  }
  return false;
}

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
  if (c.contract.terms.softmax.hidden_values != QKCTS_HIDDEN_EXCLUDED) {
    return;
  }
  const Visibility visibility(c);
  for (std::int64_t b = 0; b < c.shape.batch; ++b) {
    for (std::int64_t key = 0; key < k_len_; ++key) {
      seen_.push_back(any_query_sees(visibility, c.shape, b, key));
    }
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
