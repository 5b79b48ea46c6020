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

template <auto member, std::uint32_t from, std::uint32_t to>
void replace(qkcts_contract& terms, const qkcts_shape&) {
  if (terms.v_norm.applied != 0 && terms.v_norm.*member == from) terms.v_norm.*member = to;
}

constexpr Mutant table[] = {
    {.id = "v_norm_missing",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "v is not normalised",
     .edit = [](qkcts_contract& terms, const qkcts_shape&) { terms.v_norm.applied = 0; },
     .source = "ROCm/aiter#5027",
     .invisible = "v of unit rms"},
    {.id = "v_norm_not_used",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_OUTPUT,
     .wrong = "the output is the weighted sum of v as it came in",
     .attention = kernel<RawValues>},
    {.id = "v_norm_eps_dropped",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "epsilon is 0",
     .edit = [](qkcts_contract& terms, const qkcts_shape&) { terms.v_norm.eps = 0; },
     .invisible = "mean square far above epsilon"},
    {.id = "v_norm_eps_of_k",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "epsilon is that of the norm of k",
     .edit =
         [](qkcts_contract& terms, const qkcts_shape&) {
           if (terms.k_norm.applied != 0) terms.v_norm.eps = terms.k_norm.eps;
         },
     .invisible = "mean square far above both"},
    {.id = "v_norm_eps_outside",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "sqrt(t) + eps for sqrt(t + eps)",
     .edit = replace<&qkcts_norm::root, QKCTS_INSIDE_ROOT, QKCTS_OUTSIDE_ROOT>,
     .source = "openvinotoolkit/openvino#12077",
     .invisible = "sqrt(t) far above sqrt(eps)"},
    {.id = "v_norm_eps_inside",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "sqrt(t + eps) for sqrt(t) + eps",
     .edit = replace<&qkcts_norm::root, QKCTS_OUTSIDE_ROOT, QKCTS_INSIDE_ROOT>},
    {.id = "v_norm_centred",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "the mean is subtracted",
     .edit = replace<&qkcts_norm::center, 0, 1>,
     .invisible = "v of mean 0"},
    {.id = "v_norm_uncentred",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "the mean is not subtracted",
     .edit = replace<&qkcts_norm::center, 1, 0>},
    {.id = "v_norm_full_width_for_per_head",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "the statistic runs over all heads of the token",
     .edit = replace<&qkcts_norm::axis, QKCTS_AXIS_HEAD, QKCTS_AXIS_FULL_WIDTH>,
     .invisible = "one key head"},
    {.id = "v_norm_per_head_for_full_width",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "the statistic runs over one head",
     .edit = replace<&qkcts_norm::axis, QKCTS_AXIS_FULL_WIDTH, QKCTS_AXIS_HEAD>,
     .invisible = "one key head"},
    {.id = "v_norm_width_of_k",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "the mean divides by D for Dv",
     .attention = kernel<WidthOfKeys>,
     .invisible = "Dv = D"},
    {.id = "v_gain_missing",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "the gain of v is left out",
     .edit = [](qkcts_contract& terms, const qkcts_shape&) { terms.v_norm.gain = QKCTS_GAIN_NONE; }},
    {.id = "v_gain_offset_missing",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "w for 1 + w",
     .edit = replace<&qkcts_norm::gain, QKCTS_GAIN_ONE_PLUS_W, QKCTS_GAIN_W>},
    {.id = "k_gain_on_v",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "v is multiplied by the gain of k",
     .attention = kernel<GainOfKeys>,
     .invisible = "equal gains"},
    {.id = "v_bias_missing",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "the bias after the gain is left out",
     .edit = [](qkcts_contract& terms, const qkcts_shape&) { terms.v_norm.bias_axes = QKCTS_AXES_NONE; }},
    {.id = "v_multiplier_missing",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "v has no constant factor",
     .edit = [](qkcts_contract& terms, const qkcts_shape&) { terms.v_range.multiplier = 0; }},
    {.id = "v_multiplier_squared",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "the factor of v is applied twice",
     .edit = [](qkcts_contract& terms, const qkcts_shape&) { terms.v_range.multiplier *= terms.v_range.multiplier; }},
    {.id = "v_multiplier_on_output_too",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_OUTPUT,
     .wrong = "the factor of v is applied once more after the softmax",
     .attention = kernel<MultiplierOnOutput>},
    {.id = "v_clip_before_missing",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "no clamp of v before the norm",
     .edit = [](qkcts_contract& terms, const qkcts_shape&) { terms.v_range.clip_before = 0; },
     .invisible = "all of v within the bound"},
    {.id = "v_clip_after_missing",
     .clause = "QK-VNORM-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "no clamp of v after the norm",
     .edit = [](qkcts_contract& terms, const qkcts_shape&) { terms.v_range.clip_after = 0; },
     .invisible = "all of v within the bound"},
};

}  // namespace

std::span<const Mutant> value_mutants() {
  return table;
}

}  // namespace qkcts::mutants
