// SPDX-License-Identifier: Apache-2.0
#include "reference/same_vectors.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "conformance/special_values.hpp"

namespace qkcts {
namespace {

bool begins_with_one_of(std::string_view field, std::span<const std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view begin) { return field.starts_with(begin); });
}

bool is_one_of(Input input, std::span<const Input> inputs) {
  return std::find(inputs.begin(), inputs.end(), input) != inputs.end();
}

// What acts on rows of attention only.
constexpr std::array<std::string_view, 8> fields_of_rows = {
    "score.",           "mask.",           "softmax.",        "heads.",
    "rounding.product", "rounding.scores", "rounding.capped", "rounding.output"};
constexpr std::array inputs_of_rows = {Input::scale,          Input::mask,           Input::bias,
                                       Input::kv_len,         Input::alibi_slopes,   Input::sink,
                                       Input::q_document_ids, Input::k_document_ids, Input::prefix_len};

// What acts on one side only.
struct OwnClauses {
  std::array<std::string_view, 2> fields;
  std::array<Input, 2> inputs;
};
constexpr std::array<OwnClauses, 3> clauses_of_side = {{
    {{"q_norm.", "rounding.q_"}, {Input::q_gain, Input::q_bias}},
    {{"k_norm.", "rounding.k_"}, {Input::k_gain, Input::k_bias}},
    {{"v_norm.", "rounding.v_"}, {Input::v_gain, Input::v_bias}},
}};

bool have_same_input(const Case& a, const Case& b, Input input) {
  if (a.inputs.has(input) != b.inputs.has(input)) return false;
  if (!a.inputs.has(input)) return true;
  const Tensor &left = a.inputs.at(input), &right = b.inputs.at(input);
  return left.type == right.type && left.shape == right.shape && left.bytes == right.bytes;
}

// Under hidden_values other than `finite` the masks say which keys take part; the point of q times the scale reads the
// scale. Both then count like clauses of vectors. Whether probabilities have a point says in which format budgets take
// them to be stored, which is part of what is kept with the vectors.
bool rows_matter(const qkcts_contract& terms) {
  return terms.softmax.hidden_values != QKCTS_HIDDEN_FINITE || terms.rounding.scaled_q != 0;
}

// `may_differ` says of a field or an input that it does not matter.
template <class MayDiffer>
bool are_same(const Case& a, const Case& b, const MayDiffer& may_differ) {
  const qkcts_contract &left = a.contract.terms, &right = b.contract.terms;
  const bool all_matter = rows_matter(left) || rows_matter(right);
  if (has_special_values(a) || has_special_values(b)) return false;
  if (a.inputs.format != b.inputs.format) return false;
  const bool points_alike = (left.rounding.probs != 0) == (right.rounding.probs != 0);
  for (const ClauseDifference& difference : contract_differences(a.contract, b.contract)) {
    const bool of_rows =
        begins_with_one_of(difference.field, fields_of_rows) || (difference.field == "rounding.probs" && points_alike);
    if (!(of_rows && !all_matter) && !may_differ(difference.field)) return false;
  }
  for (std::size_t i = 0; i < input_count; ++i) {
    const auto input = static_cast<Input>(i);
    if (!(is_one_of(input, inputs_of_rows) && !all_matter) && !may_differ(input) && !have_same_input(a, b, input))
      return false;
  }
  return true;
}

struct NothingMayDiffer {
  bool operator()(std::string_view) const { return false; }
  bool operator()(Input) const { return false; }
};

// But for `side`.
struct OtherSidesMayDiffer {
  Side side;
  bool operator()(std::string_view field) const {
    return std::any_of(all_sides.begin(), all_sides.end(), [&](Side other) {
      return other != side && begins_with_one_of(field, clauses_of_side[static_cast<std::size_t>(other)].fields);
    });
  }
  bool operator()(Input input) const {
    return std::any_of(all_sides.begin(), all_sides.end(), [&](Side other) {
      return other != side && is_one_of(input, clauses_of_side[static_cast<std::size_t>(other)].inputs);
    });
  }
};

}  // namespace

bool have_same_vectors(const Case& a, const Case& b) {
  for (const qkcts_stage stage : {QKCTS_STAGE_Q_NORM, QKCTS_STAGE_K_NORM, QKCTS_STAGE_V_NORM})
    if (stage_shape(stage, a.shape) != stage_shape(stage, b.shape)) return false;
  return are_same(a, b, NothingMayDiffer());
}

bool have_same_side(const Case& a, const Case& b, Side side) {
  const qkcts_stage stage = norm_stage(side);
  return stage_shape(stage, a.shape) == stage_shape(stage, b.shape) && are_same(a, b, OtherSidesMayDiffer{side});
}

}  // namespace qkcts
