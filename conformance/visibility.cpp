// SPDX-License-Identifier: Apache-2.0
// The mask clauses of docs/contract.md (QK-MASK), in one place.
#include <cstdint>
#include <limits>

#include "conformance/case.hpp"
#include "conformance/seen_keys.hpp"

namespace qkcts {
namespace {

// Element (b, h, qq, kk) of a tensor [B or 1, Hq or 1, Lq, Lk].
std::size_t broadcast_index(const Tensor& tensor, std::int64_t b, std::int64_t h, std::int64_t qq, std::int64_t kk) {
  const std::int64_t b_index = tensor.shape[0] == 1 ? 0 : b;
  const std::int64_t h_index = tensor.shape[1] == 1 ? 0 : h;
  return static_cast<std::size_t>(((b_index * tensor.shape[1] + h_index) * tensor.shape[2] + qq) * tensor.shape[3] +
                                  kk);
}

std::int64_t floor_divide(std::int64_t a, std::int64_t positive) {
  return a >= 0 ? a / positive : -((-a + positive - 1) / positive);
}

}  // namespace

Visibility::Visibility(const Case& c) : case_(c) {
  const qkcts_mask& mask = c.contract.terms.mask;
  if (mask.kv_lengths != 0) kv_len_ = &c.inputs.at(Input::kv_len);
  if (mask.boolean != 0) mask_ = &c.inputs.at(Input::mask);
  if (c.contract.terms.regions.prefix != 0) prefix_ = &c.inputs.at(Input::prefix_len);
  if (c.contract.terms.regions.documents != 0) {
    q_documents_ = &c.inputs.at(Input::q_document_ids);
    k_documents_ = &c.inputs.at(Input::k_document_ids);
  }
  if (c.contract.terms.score.bias_order != QKCTS_BIAS_NONE) {
    bias_ = &c.inputs.at(Input::bias);
    minus_infinity_ = encode(c.inputs.format, -std::numeric_limits<double>::infinity());
  }
}

std::int64_t Visibility::offset(std::int64_t b) const {
  const qkcts_mask& mask = case_.contract.terms.mask;
  const qkcts_shape& shape = case_.shape;
  switch (mask.alignment) {
    case QKCTS_BOTTOM_RIGHT:
      return shape.k_len - shape.q_len;
    case QKCTS_BOTTOM_RIGHT_VALID:
      return static_cast<std::int64_t>(case_.inputs.at(Input::kv_len).value(static_cast<std::size_t>(b))) - shape.q_len;
    case QKCTS_OFFSET:
      return mask.offset;
    default:
      return 0;
  }
}

bool Visibility::visible(std::int64_t b, std::int64_t h, std::int64_t qq, std::int64_t kk) const {
  const qkcts_mask& mask = case_.contract.terms.mask;
  const std::int64_t chunk = case_.contract.terms.regions.chunk;
  if (mask.causal != 0 || mask.has_window != 0 || chunk != 0) {
    const std::int64_t position = qq + offset(b);
    if (mask.causal != 0 && kk > position) {
      const bool in_prefix =
          prefix_ != nullptr && static_cast<double>(kk) < prefix_->value(static_cast<std::size_t>(b));
      if (!in_prefix) return false;
    }
    if (chunk != 0 && floor_divide(kk, chunk) != floor_divide(position, chunk)) return false;
    if (mask.has_window != 0) {
      if (mask.window_left >= 0 && kk < position - mask.window_left) return false;
      if (mask.window_right >= 0 && kk > position + mask.window_right) return false;
    }
  }
  if (kv_len_ != nullptr && static_cast<double>(kk) >= kv_len_->value(static_cast<std::size_t>(b))) return false;
  if (q_documents_ != nullptr) {
    const auto q_token = static_cast<std::size_t>(b * case_.shape.q_len + qq);
    const auto k_token = static_cast<std::size_t>(b * case_.shape.k_len + kk);
    if (q_documents_->value(q_token) != k_documents_->value(k_token)) return false;
  }
  if (mask_ != nullptr && mask_->pattern(broadcast_index(*mask_, b, h, qq, kk)) == 0) return false;
  if (bias_ != nullptr && bias_->pattern(broadcast_index(*bias_, b, h, qq, kk)) == minus_infinity_) return false;
  return true;
}

std::vector<bool> seen_keys(const Case& c) {
  const qkcts_shape& shape = c.shape;
  const Visibility visibility(c);
  const auto seen_by_any = [&](std::int64_t b, std::int64_t key) {
    for (std::int64_t h = 0; h < shape.q_heads; ++h)
      for (std::int64_t t = 0; t < shape.q_len; ++t)
        if (visibility.visible(b, h, t, key)) return true;
    return false;
  };
  std::vector<bool> seen;
  for (std::int64_t b = 0; b < shape.batch; ++b)
    for (std::int64_t key = 0; key < shape.k_len; ++key) seen.push_back(seen_by_any(b, key));
  return seen;
}

}  // namespace qkcts
