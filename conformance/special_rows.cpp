// SPDX-License-Identifier: Apache-2.0
#include "conformance/special_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/special_vectors.hpp"

namespace qkcts {
namespace {

std::vector<bool> special_among(const std::vector<Outcomes>& vectors, std::int64_t width) {
  std::vector<bool> special(vectors.size() / static_cast<std::size_t>(width));
  for (std::size_t i = 0; i < vectors.size(); ++i)
    if (!is_number(vectors[i])) special[i / static_cast<std::size_t>(width)] = true;
  return special;
}

// exp, of a score less the largest one, is 0 or more.
constexpr Outcomes weight = outcome::zero | outcome::positive;
constexpr Outcomes weight_or_nan = weight | outcome::nan;

std::size_t bias_index(const Tensor& bias, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t key) {
  const std::int64_t plane = (bias.shape[0] == 1 ? 0 : b) * bias.shape[1] + (bias.shape[1] == 1 ? 0 : h);
  return static_cast<std::size_t>((plane * bias.shape[2] + t) * bias.shape[3] + key);
}

}  // namespace

bool hides_everywhere(const Case& c, const Visibility& visibility, std::size_t i) {
  const Tensor& bias = c.inputs.at(Input::bias);
  const auto key = static_cast<std::int64_t>(i) % c.shape.k_len;
  const auto t = static_cast<std::int64_t>(i) / c.shape.k_len % c.shape.q_len;
  for (std::int64_t b = 0; b < c.shape.batch; ++b)
    for (std::int64_t h = 0; h < c.shape.q_heads; ++h)
      if (bias_index(bias, b, h, t, key) == i && visibility.visible(b, h, t, key)) return false;
  return true;
}

// What is known of the row at hand.
struct SpecialRows::Row {
  std::int64_t b = 0, h = 0, t = 0, index = 0;
  bool special_q = false;
  bool nan = false;   // some weight is NaN or +inf for sure, so that all of them are NaN
  bool open = false;  // some weight is a number here and NaN there
  bool empty = true;
  bool infinite = true;  // of a row that is NaN: each reason may be +inf
};

SpecialRows::SpecialRows(const Case& c, const std::vector<Outcomes>& q, const std::vector<Outcomes>& k,
                         const std::vector<Outcomes>& v)
    : c_(c),
      terms_(c.contract.terms),
      q_(q),
      k_(k),
      v_(v),
      special_k_(special_among(k, c.shape.head_dim)),
      special_v_(special_among(v, c.shape.v_head_dim)),
      visibility_(c) {
  qkcts_contract without_bias = terms_;
  without_bias.score.bias_order = QKCTS_BIAS_NONE;
  only_added_ = terms_.score.bias_order == QKCTS_BIAS_AFTER_SOFTCAP && !hides_keys(without_bias);
  const bool learned = terms_.score.scale_form == QKCTS_SCALE_LEARNED_SCALAR && terms_.logits.scale_exp_cap == 0;
  for (std::int64_t h = 0; h < c.shape.q_heads; ++h) {
    if (!learned) {
      scale_.push_back(outcome::positive | outcome::zero);
      continue;
    }
    const Tensor& scale = c.inputs.at(Input::scale);
    scale_.push_back(input_outcomes(scale.value(scale.count() == 1 ? 0 : static_cast<std::size_t>(h))));
  }
}

void SpecialRows::evaluate() {
  const qkcts_shape& s = c_.shape;
  const auto rows = static_cast<std::size_t>(s.batch * s.q_heads * s.q_len);
  const auto entries = rows * static_cast<std::size_t>(s.k_len);
  for (std::vector<Outcomes>* stage : {&scores, &capped, &masked, &probs}) stage->assign(entries, outcome::number);
  lse.assign(rows, outcome::number);
  output.assign(rows * static_cast<std::size_t>(s.v_head_dim), outcome::number);
  hidden.assign(entries, false);
  special.assign(rows, false);
  const std::vector<bool> special_q = special_among(q_, s.head_dim);
  Row row;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.q_heads; ++h)
      for (std::int64_t t = 0; t < s.q_len; ++t) {
        const std::int64_t index = (b * s.q_heads + h) * s.q_len + t;
        row = Row{b, h, t, index, special_q[static_cast<std::size_t>(index)]};
        evaluate_row(row);
      }
}

const Outcomes* SpecialRows::key_row(const Row& row, std::int64_t key) const {
  const std::int64_t head = kv_head_of(terms_, c_.shape, row.h);
  const std::int64_t at = (row.b * c_.shape.kv_heads + head) * c_.shape.k_len + key;
  return special_k_[static_cast<std::size_t>(at)] ? k_.data() + at * c_.shape.head_dim : nullptr;
}

const Outcomes* SpecialRows::value_row(const Row& row, std::int64_t key) const {
  const std::int64_t head = kv_head_of(terms_, c_.shape, row.h);
  const std::int64_t at = (row.b * c_.shape.kv_heads + head) * c_.shape.k_len + key;
  return special_v_[static_cast<std::size_t>(at)] ? v_.data() + at * c_.shape.v_head_dim : nullptr;
}

Outcomes SpecialRows::score(const Row& row, std::int64_t key) const {
  const std::int64_t head = kv_head_of(terms_, c_.shape, row.h), width = c_.shape.head_dim;
  if (!row.special_q && key_row(row, key) == nullptr) return outcome::number;
  const Outcomes* const q = q_.data() + row.index * width;
  const Outcomes* const k = k_.data() + ((row.b * c_.shape.kv_heads + head) * c_.shape.k_len + key) * width;
  const Outcomes scale = scale_[static_cast<std::size_t>(row.h)];
  Outcomes total = outcome::zero;
  for (std::int64_t d = 0; d < width; ++d) {
    const Outcomes scaled = at_point(terms_, terms_.rounding.scaled_q, product(q[d], scale));
    // The scale stands before or after the sum.
    total = sum(total, product(scaled, k[d]) | product(product(q[d], k[d]), scale));
  }
  const Outcomes at_product = at_point(terms_, terms_.rounding.product, summed(total));
  return at_point(terms_, terms_.rounding.scores, at_product);
}

Outcomes SpecialRows::bias(const Row& row, std::int64_t key) const {
  const Tensor& bias = c_.inputs.at(Input::bias);
  return input_outcomes(bias.value(bias_index(bias, row.b, row.h, row.t, key)));
}

// The cap makes the number +-c of an infinity, but sums that may end in one may end in NaN.
Outcomes SpecialRows::after_cap(const Row& row, std::int64_t key, Outcomes value) const {
  if (terms_.score.bias_order == QKCTS_BIAS_BEFORE_SOFTCAP) value = sum(value, bias(row, key));
  if (terms_.score.softcap != 0 && (value & outcome::infinite) != 0) value = outcome::number_or_nan;
  if (terms_.score.bias_order == QKCTS_BIAS_AFTER_SOFTCAP) value = sum(value, bias(row, key));
  return at_point(terms_, terms_.rounding.capped, value);
}

// A key that the row does not see. A special value in q is no hidden value: beside it a mask may be added or put in the
// place of the score, so what is made of the row stays open. Of one in k the contract says what becomes of it.
void SpecialRows::mask_key(Row& row, std::int64_t key) {
  const auto at = static_cast<std::size_t>(row.index * c_.shape.k_len + key);
  hidden[at] = true;
  const bool has_bias = terms_.score.bias_order != QKCTS_BIAS_NONE;
  const bool added = has_bias && bias(row, key) == outcome::minus_infinity;
  if (is_number(scores[at]) && (!has_bias || added || is_number(bias(row, key)))) {
    capped[at] = outcome::number;  // or what -inf makes of a number: not judged
    return;
  }
  const std::uint32_t policy = terms_.softmax.hidden_values;
  if (policy == QKCTS_HIDDEN_EXCLUDED && !row.special_q) return;
  if (policy == QKCTS_HIDDEN_PROPAGATED && !added && !row.special_q) return;
  if (policy == QKCTS_HIDDEN_PROPAGATED && added && only_added_) {
    masked[at] = capped[at];
    return take_part(row, capped[at]);
  }
  masked[at] = outcome::minus_infinity | outcome::number_or_nan;
  row.open = true;
}

void SpecialRows::take_part(Row& row, Outcomes value) {
  if (is_number(value) || value == outcome::minus_infinity) return;
  const bool rises = (value & ~(outcome::plus_infinity | outcome::nan)) == 0;
  if (!rises) {
    row.open = true;
    return;
  }
  row.nan = true;
  row.infinite = row.infinite && (value & outcome::plus_infinity) != 0;
}

void SpecialRows::evaluate_row(Row& row) {
  const std::int64_t keys = c_.shape.k_len;
  for (std::int64_t key = 0; key < keys; ++key) {
    const auto at = static_cast<std::size_t>(row.index * keys + key);
    scores[at] = score(row, key);
    capped[at] = after_cap(row, key, scores[at]);
    if (!visibility_.visible(row.b, row.h, row.t, key)) {
      mask_key(row, key);
      continue;
    }
    row.empty = false;
    masked[at] = capped[at];
    if (capped[at] == outcome::minus_infinity)
      row.open = true;
    else
      take_part(row, capped[at]);
  }
  row.empty = row.empty && terms_.softmax.sink != QKCTS_SINK_COLUMN;
  row.empty ? empty_row(row) : weigh(row);
  add_values(row);
}

// With NaN or +inf among the visible scores, exp(inf - inf) or exp(NaN) makes the sum of the weights NaN, and with it
// every weight. Hidden keys may be left out of that.
void SpecialRows::weigh(Row& row) {
  if (!row.nan && !row.open) return;
  special[static_cast<std::size_t>(row.index)] = true;
  const std::int64_t keys = c_.shape.k_len;
  for (std::int64_t key = 0; key < keys; ++key) {
    const auto at = static_cast<std::size_t>(row.index * keys + key);
    probs[at] = row.nan && !hidden[at] ? outcome::nan : weight_or_nan;
    probs[at] = at_point(terms_, terms_.rounding.probs, probs[at]);
  }
  Outcomes& sum = lse[static_cast<std::size_t>(row.index)];
  sum = !row.nan ? outcome::anything : row.infinite ? outcome::nan | outcome::plus_infinity : outcome::nan;
}

// Nothing is seen: what the contract says stands, unless a mask that is added to NaN makes a row of it.
void SpecialRows::empty_row(Row& row) {
  if (!row.open || terms_.mask.empty_row == QKCTS_EMPTY_NAN) return;
  special[static_cast<std::size_t>(row.index)] = true;
  const std::int64_t keys = c_.shape.k_len;
  std::fill_n(probs.begin() + row.index * keys, keys, weight_or_nan);
  lse[static_cast<std::size_t>(row.index)] = outcome::anything;
}

void SpecialRows::add_values(const Row& row) {
  const std::int64_t keys = c_.shape.k_len, width = c_.shape.v_head_dim;
  const bool is_special = special[static_cast<std::size_t>(row.index)];
  const std::uint32_t policy = terms_.softmax.hidden_values;
  if (row.empty && terms_.mask.empty_row == QKCTS_EMPTY_NAN) return;
  const bool uniform = row.empty && terms_.mask.empty_row == QKCTS_EMPTY_UNIFORM;
  Outcomes* const out = output.data() + row.index * width;
  // A saturating point may have made numbers of the weights, however large.
  const bool saturates = terms_.rounding.probs != 0 && terms_.rounding.saturate != 0;
  const Outcomes of_weights = saturates ? outcome::anything : row.nan ? outcome::nan : outcome::number_or_nan;
  if (is_special) std::fill_n(out, width, of_weights);
  for (std::int64_t key = 0; key < keys; ++key) {
    const Outcomes* const v = value_row(row, key);
    if (v == nullptr) continue;
    const auto at = static_cast<std::size_t>(row.index * keys + key);
    const bool takes_part = !hidden[at] || uniform || policy == QKCTS_HIDDEN_PROPAGATED;
    if (!takes_part && policy == QKCTS_HIDDEN_EXCLUDED) continue;
    Outcomes p = hidden[at] && !uniform ? outcome::zero : weight;
    if (is_special) p = saturates ? outcome::anything : probs[at];
    for (std::int64_t d = 0; d < width; ++d) {
      if (is_number(v[d])) continue;
      const Outcomes term = product(p, v[d]);
      out[d] = summed(sum(out[d], takes_part ? term : static_cast<Outcomes>(term | outcome::number)));
    }
  }
  for (std::int64_t d = 0; d < width; ++d) out[d] = at_point(terms_, terms_.rounding.output, out[d]);
}

}  // namespace qkcts
