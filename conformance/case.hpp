// SPDX-License-Identifier: Apache-2.0
// One case: a contract, a shape and the input bits.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/contract.hpp"
#include "conformance/tensor.hpp"

namespace qkcts {

// Order and names are those of qkcts_inputs.
enum class Input : std::uint32_t {
  q,
  k,
  v,
  q_gain,
  k_gain,
  q_bias,
  k_bias,
  cos,
  sin,
  q_position_ids,
  k_position_ids,
  scale,
  mask,
  bias,
  kv_len,
  alibi_slopes,
  sink,
  q_document_ids,
  k_document_ids,
  prefix_len,
  v_gain,
  v_bias,
  q_x,
  k_x,
  q_weight,
  k_weight,
  q_weight_bias,
  k_weight_bias,
  q_x_gain,
  q_x_bias,
  k_x_gain,
  k_x_bias,
};
constexpr std::size_t input_count = 32;
std::string_view input_name(Input input);
std::optional<Input> input_named(std::string_view name);

struct CaseInputs {
  Format format = Format::binary32;
  std::array<std::optional<Tensor>, input_count> tensors;

  const Tensor& at(Input input) const { return tensors[static_cast<std::size_t>(input)].value(); }
  bool has(Input input) const { return tensors[static_cast<std::size_t>(input)].has_value(); }
  void set(Input input, Tensor tensor) { tensors[static_cast<std::size_t>(input)] = std::move(tensor); }
};

struct Case {
  std::string slug;
  Contract contract;
  qkcts_shape shape{};
  CaseInputs inputs;
};

// Which inputs the contract needs, with element type and shape. An extent of -1 means "1 or the full extent" is allowed
// and stands only for the broadcast axes (B, Hq) of mask and bias; -2 means any extent: P of the tables, E of what is
// projected.
struct InputRequirement {
  Input input;
  ElementType type;
  std::vector<std::int64_t> shape;
};
std::vector<InputRequirement> required_inputs(const qkcts_contract& terms, const qkcts_shape& shape, Format format);

// First contradiction between inputs, shape and contract (missing tensor, wrong extents, position id outside the table,
// kv_len outside [0, Lk], an infinite sink, ...), as one line; empty if none. NaN and infinities may stand where
// special_value_fault() says.
std::string case_fault(const Case& c);

// The key/value head that query head h reads (QK-HEADS).
std::int64_t kv_head_of(const qkcts_contract& terms, const qkcts_shape& shape, std::int64_t h);

// c must outlive the object and have no case_fault().
// Is key kk visible to query row (b, h, qq)? The one home of the mask clauses (and of -inf in an additive bias).
class Visibility {
 public:
  explicit Visibility(const Case& c);
  bool visible(std::int64_t b, std::int64_t h, std::int64_t qq, std::int64_t kk) const;
  std::int64_t offset(std::int64_t b) const;  // q' = q + offset: where query 0 stands among the keys

 private:
  const Case& case_;
  const Tensor* kv_len_ = nullptr;
  const Tensor* mask_ = nullptr;
  const Tensor* bias_ = nullptr;
  const Tensor* prefix_ = nullptr;
  const Tensor *q_documents_ = nullptr, *k_documents_ = nullptr;
  std::uint64_t minus_infinity_ = 0;  // as it stands in bias
};

}  // namespace qkcts
