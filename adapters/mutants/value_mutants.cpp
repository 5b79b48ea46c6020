// SPDX-License-Identifier: Apache-2.0
// QK-VNORM.
#include <algorithm>
#include <cmath>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::QueryRow;
using scalar::Side;

// The mean divides by the width of a key.
template <class Real>
struct WidthOfKeys : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  Real divisor_of(Side side, std::span<const Real> group, Real mean) const override {
    const qkcts_norm& norm = this->norm_of(side);
    if (side != Side::value || norm.statistic != QKCTS_MEAN_SQUARE) return Base::divisor_of(side, group, mean);
    const Real share = static_cast<Real>(this->shape_.v_head_dim) / static_cast<Real>(this->shape_.head_dim);
    return scalar::root(norm.root, scalar::statistic(norm, group, mean) * share, static_cast<Real>(norm.eps));
  }
};

// The memory of the gain of k in the shape of that of v, from its start again where it is too short.
template <class Real>
struct GainOfKeys : scalar::Attention<Real> {
  GainOfKeys(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
             const qkcts_outputs& outputs)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    const std::vector<Real>& k = this->gain_[Side::key].values;
    std::vector<Real>& v = this->gain_[Side::value].values;
    for (std::size_t i = 0; i < v.size() && !k.empty(); ++i) v[i] = k[i % k.size()];
  }
};

// The factor of v is applied to the output as well.
template <class Real>
struct MultiplierOnOutput : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    Base::output_row(row);
    const Real multiplier = static_cast<Real>(this->terms_.v_range.multiplier);
    if (multiplier == 0) return;
    for (Real& o : row.output) o *= multiplier;
  }
};

// The stage is right, but the sum runs over v itself.
template <class Real>
struct RawValues : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    Base::output_row(row);
    if (row.empty) return;
    std::fill(row.output.begin(), row.output.end(), Real{0});
    for (std::int64_t k = 0; k < this->shape_.k_len; ++k) {
      if (row.visible[k] == 0) continue;
      for (std::size_t d = 0; d < row.output.size(); ++d)
        row.output[d] += row.probs[k] * this->raw(Side::value, row.b, this->kv_head(row.h), k, d);
    }
  }
};

// Of keys the mapping is right.
template <class Real>
struct ValuesOfOtherHeads : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    of_values_ = true;
    Base::output_row(row);
    of_values_ = false;
  }
  std::int64_t kv_head(std::int64_t h) const override {
    if (!of_values_) return Base::kv_head(h);
    const std::int64_t heads = this->shape_.kv_heads;
    return this->terms_.heads.mapping == QKCTS_HEADS_TILE ? h / (this->shape_.q_heads / heads) : h % heads;
  }
  bool of_values_ = false;
};

constexpr Mutant table[] = {
    {.id = "v_norm_not_used",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_OUTPUT,
     .wrong = "the output is the weighted sum of v as it came in",
     .attention = kernel<RawValues>},
    {.id = "v_norm_width_of_k",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "the mean divides by D for Dv",
     .attention = kernel<WidthOfKeys>,
     .invisible = "Dv = D"},
    {.id = "k_gain_on_v",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "v is multiplied by the gain of k",
     .attention = kernel<GainOfKeys>,
     .invisible = "equal gains"},
    {.id = "v_multiplier_on_output_too",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_OUTPUT,
     .wrong = "the factor of v is applied once more after the softmax",
     .attention = kernel<MultiplierOnOutput>},
    {.id = "gqa_values_of_other_heads",
     .clause = "QK-HEADS-01",
     .stage = QKCTS_STAGE_OUTPUT,
     .wrong = "values are read by the other mapping of heads",
     .attention = kernel<ValuesOfOtherHeads>,
     .invisible = "as many key heads as query heads, or one"},
};

}  // namespace

std::span<const Mutant> value_mutants() {
  return table;
}

}  // namespace qkcts::mutants
