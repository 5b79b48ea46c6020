// SPDX-License-Identifier: Apache-2.0
#include "harness/diagnose_slice.hpp"

#include <algorithm>
#include <numeric>

namespace qkcts {
namespace {

using Indices = std::vector<std::int64_t>;

Indices all_of(std::int64_t extent) {
  Indices indices(static_cast<std::size_t>(extent));
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return indices;
}

// Of an axis that runs over both, the second one faster.
Indices product(const Indices& slow, const Indices& fast, std::int64_t fast_extent) {
  Indices indices;
  for (const std::int64_t i : slow)
    for (const std::int64_t j : fast) indices.push_back(i * fast_extent + j);
  return indices;
}

Tensor gathered(const Tensor& from, const std::vector<Indices>& kept) {
  std::vector<std::int64_t> shape;
  for (const Indices& axis : kept) shape.push_back(static_cast<std::int64_t>(axis.size()));
  Tensor result = Tensor::zeros(from.type, shape);
  Indices at(kept.size(), 0);
  for (std::size_t i = 0; i < result.count(); ++i) {
    std::int64_t source = 0;
    for (std::size_t axis = 0; axis < kept.size(); ++axis)
      source = source * from.shape[axis] + kept[axis][static_cast<std::size_t>(at[axis])];
    result.set_pattern(i, from.pattern(static_cast<std::size_t>(source)));
    for (std::size_t axis = kept.size(); axis-- > 0;) {
      if (++at[axis] < shape[axis]) break;
      at[axis] = 0;
    }
  }
  return result;
}

class Cutter {
 public:
  Cutter(const Case& c, const Slice& slice) : c_(c), slice_(slice), q_heads_(query_heads()) {}

  Tensor cut(Input input) const {
    const Tensor& tensor = c_.inputs.at(input);
    Tensor result = gathered(tensor, kept(input, tensor.shape));
    if (input == Input::kv_len || input == Input::prefix_len) {
      const auto most = static_cast<std::int32_t>(slice_.k_len.size());
      for (std::size_t i = 0; i < result.count(); ++i)
        result.set_pattern(
            i, static_cast<std::uint64_t>(std::min<std::int32_t>(most, static_cast<std::int32_t>(result.value(i)))));
    }
    return result;
  }

  qkcts_shape shape() const {
    const auto size = [](const Indices& indices) { return static_cast<std::int64_t>(indices.size()); };
    return {size(slice_.batch), size(q_heads_),        size(slice_.kv_heads),  size(slice_.q_len),
            size(slice_.k_len), size(slice_.head_dim), size(slice_.v_head_dim)};
  }

 private:
  // In the order in which the mapping of the contract numbers them (QK-HEADS).
  Indices query_heads() const {
    const std::int64_t group = c_.shape.q_heads / c_.shape.kv_heads;
    if (c_.contract.terms.heads.mapping == QKCTS_HEADS_TILE)
      return product(slice_.group, slice_.kv_heads, c_.shape.kv_heads);
    return product(slice_.kv_heads, slice_.group, group);
  }

  Indices parameter(std::uint32_t axes, const Indices& heads, const Indices& lanes, std::int64_t lane_extent) const {
    switch (axes) {
      case QKCTS_AXES_SCALAR:
        return {0};
      case QKCTS_AXES_HEAD_DIM:
        return lanes;
      case QKCTS_AXES_HEAD:
        return heads;
      default:
        return product(heads, lanes, lane_extent);
    }
  }

  std::vector<Indices> of_parameter(std::uint32_t axes, const Indices& heads, const Indices& lanes,
                                    std::int64_t lane_extent) const {
    if (axes == QKCTS_AXES_HEAD_HEAD_DIM) return {heads, lanes};
    return {parameter(axes, heads, lanes, lane_extent)};
  }

  static std::uint32_t axes_of(Input input, const qkcts_norm& norm) {
    const bool is_gain = input == Input::q_gain || input == Input::k_gain || input == Input::v_gain;
    return is_gain ? norm.gain_axes : norm.bias_axes;
  }

  // Broadcast axes of one entry stay.
  std::vector<Indices> of_scores(const std::vector<std::int64_t>& shape) const {
    return {shape[0] == 1 ? Indices{0} : slice_.batch, shape[1] == 1 ? Indices{0} : q_heads_, slice_.q_len,
            slice_.k_len};
  }

  std::vector<Indices> of_tables(const std::vector<std::int64_t>& shape) const {
    std::vector<Indices> kept;
    if (shape.size() == 3) kept.push_back(q_heads_);
    kept.push_back(all_of(shape[shape.size() - 2]));
    const bool whole_head = c_.contract.terms.rope.rotated == 0;
    kept.push_back(all_of(whole_head ? static_cast<std::int64_t>(slice_.head_dim.size() / 2) : shape.back()));
    return kept;
  }

  std::vector<Indices> kept(Input input, const std::vector<std::int64_t>& shape) const {
    const Slice& s = slice_;
    const qkcts_contract& terms = c_.contract.terms;
    const std::int64_t d = c_.shape.head_dim, dv = c_.shape.v_head_dim;
    switch (input) {
      case Input::q:
        return {s.batch, q_heads_, s.q_len, s.head_dim};
      case Input::k:
        return {s.batch, s.kv_heads, s.k_len, s.head_dim};
      case Input::v:
        return {s.batch, s.kv_heads, s.k_len, s.v_head_dim};
      case Input::q_gain:
      case Input::q_bias:
        return of_parameter(axes_of(input, terms.q_norm), q_heads_, s.head_dim, d);
      case Input::k_gain:
      case Input::k_bias:
        return of_parameter(axes_of(input, terms.k_norm), s.kv_heads, s.head_dim, d);
      case Input::v_gain:
      case Input::v_bias:
        return of_parameter(axes_of(input, terms.v_norm), s.kv_heads, s.v_head_dim, dv);
      case Input::cos:
      case Input::sin:
        return of_tables(shape);
      case Input::q_position_ids:
      case Input::q_document_ids:
        return {s.batch, s.q_len};
      case Input::k_position_ids:
      case Input::k_document_ids:
        return {s.batch, s.k_len};
      case Input::scale:
        return {terms.logits.scale_axes == QKCTS_SCALE_PER_HEAD ? q_heads_ : Indices{0}};
      case Input::mask:
      case Input::bias:
        return of_scores(shape);
      case Input::kv_len:
      case Input::prefix_len:
        return {s.batch};
      case Input::alibi_slopes:
      case Input::sink:
        return {q_heads_};
      case Input::q_x:
        return {s.batch, s.q_len, all_of(shape[2])};
      case Input::k_x:
        return {s.batch, s.k_len, all_of(shape[2])};
      case Input::q_weight:
        return {all_of(shape[0]), product(q_heads_, s.head_dim, d)};
      case Input::k_weight:
        return {all_of(shape[0]), product(s.kv_heads, s.head_dim, d)};
      case Input::q_weight_bias:
        return {product(q_heads_, s.head_dim, d)};
      case Input::k_weight_bias:
        return {product(s.kv_heads, s.head_dim, d)};
      case Input::q_x_gain:
      case Input::q_x_bias:
      case Input::k_x_gain:
      case Input::k_x_bias:
        break;
    }
    return {all_of(shape[0])};
  }

  const Case& c_;
  const Slice& slice_;
  Indices q_heads_;
};

}  // namespace

Slice whole_slice(const qkcts_shape& shape) {
  return {all_of(shape.batch),     all_of(shape.kv_heads), all_of(shape.q_heads / shape.kv_heads),
          all_of(shape.q_len),     all_of(shape.k_len),    all_of(shape.head_dim),
          all_of(shape.v_head_dim)};
}

std::optional<Case> sliced(const Case& c, const Slice& slice) {
  const Cutter cutter(c, slice);
  Case part;
  part.slug = c.slug;
  part.contract = c.contract;
  part.shape = cutter.shape();
  part.inputs.format = c.inputs.format;
  const bool whole_head = c.contract.terms.rope.order != QKCTS_ROPE_NONE && c.contract.terms.rope.rotated == 0;
  if (whole_head && part.shape.head_dim % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < input_count; ++i) {
    const auto input = static_cast<Input>(i);
    if (c.inputs.has(input)) part.inputs.set(input, cutter.cut(input));
  }
  if (!case_fault(part).empty()) return std::nullopt;
  return part;
}

}  // namespace qkcts
