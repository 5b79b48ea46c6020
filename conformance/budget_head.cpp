// SPDX-License-Identifier: Apache-2.0
#include "conformance/budget_head.hpp"

#include <algorithm>

#include "conformance/seen_keys.hpp"
#include "conformance/tensor_row.hpp"

namespace qkcts {
namespace {

constexpr std::size_t keys_at_once = 8;

// What stands where nobody looks may be anything; it is neither read nor judged.
VectorError unseen_key(std::int64_t head_dim) {
  VectorError vector;
  vector.magnitude.resize(static_cast<std::size_t>(head_dim));
  vector.error.resize(static_cast<std::size_t>(head_dim));
  vector.domain = true;
  return vector;
}

void add_read_row(const Case& c, std::int64_t b, std::int64_t kv_head, std::int64_t key, bool as_they_are,
                  const BudgetArithmetic& arithmetic, HeadData& data) {
  const std::int64_t row = (b * c.shape.kv_heads + kv_head) * c.shape.k_len + key;
  const std::vector<double> values = row_values(c.inputs.at(Input::v), row, c.shape.v_head_dim);
  data.v.insert(data.v.end(), values.begin(), values.end());
  for (std::size_t i = 0; !as_they_are && i < values.size(); ++i) {
    const double value = values[i];
    data.v_error.push_back(arithmetic.value_error(value, arithmetic.operand_error(value, c.inputs.format)));
  }
}

// What a norm has made of a row of v. Its errors, the common factor of the row included, are those of its key alone, so
// the output counts them like errors of reading.
void add_computed_row(const Case& c, std::int64_t b, std::int64_t kv_head, std::int64_t key, const ValueNorm& v_norm,
                      const BudgetArithmetic& arithmetic, HeadData& data) {
  const VectorError row = v_norm.budget->product(b, kv_head, key);
  data.v_domain = data.v_domain || row.domain;
  const std::int64_t first = ((b * c.shape.kv_heads + kv_head) * c.shape.k_len + key) * c.shape.v_head_dim;
  for (std::int64_t d = 0; d < c.shape.v_head_dim; ++d) {
    const double value = (*v_norm.exact)[static_cast<std::size_t>(first + d)];
    const double error = row.domain ? 0 : sum_upper(row.total(static_cast<std::size_t>(d)), 16);
    data.v.push_back(value);
    data.v_error.push_back(arithmetic.value_error(value, arithmetic.norm_made(error)));
  }
}

}  // namespace

SeenTokens::SeenTokens(const Case& c) : k_len_(c.shape.k_len) {
  if (c.contract.terms.softmax.hidden_values == QKCTS_HIDDEN_EXCLUDED) {
    seen_ = seen_keys(c);
  }
}

HeadData head_data(const Case& c, std::int64_t b, std::int64_t kv_head, OperandBudget& k, const ValueNorm& v_norm,
                   const SeenTokens& tokens, const BudgetArithmetic& arithmetic) {
  const qkcts_shape& shape = c.shape;
  HeadData data(shape.head_dim, shape.k_len);
  std::vector<VectorError> neighbours;
  for (std::int64_t key = 0; key < shape.k_len; ++key) {
    neighbours.push_back(tokens.seen(b, key) ? k.product(b, kv_head, key) : unseen_key(shape.head_dim));
    if (neighbours.size() == keys_at_once || key + 1 == shape.k_len) {
      data.keys.set(key + 1 - static_cast<std::int64_t>(neighbours.size()), neighbours);
      neighbours.clear();
    }
  }
  data.v_computed = v_norm.budget != nullptr;
  const bool as_they_are =
      !data.v_computed && arithmetic.reads_exactly(c.inputs.format) && arithmetic.reads_values_whole();
  data.v.reserve(static_cast<std::size_t>((shape.k_len + 1) * shape.v_head_dim));
  data.v_error.reserve(as_they_are ? 0 : data.v.capacity());
  for (std::int64_t key = 0; key < shape.k_len; ++key) {
    if (!tokens.seen(b, key)) {
      data.v.resize(data.v.size() + static_cast<std::size_t>(shape.v_head_dim));
      data.v_error.resize(as_they_are ? 0 : data.v.size());
    } else if (data.v_computed) {
      add_computed_row(c, b, kv_head, key, v_norm, arithmetic, data);
    } else {
      add_read_row(c, b, kv_head, key, as_they_are, arithmetic, data);
    }
  }
  data.v.resize(data.v.size() + static_cast<std::size_t>(shape.v_head_dim));
  data.v_error.resize(as_they_are ? 0 : data.v.size());
  if (std::all_of(data.v_error.begin(), data.v_error.end(), [](double error) { return error == 0; })) {
    data.v_error.clear();
  }
  return data;
}

}  // namespace qkcts
