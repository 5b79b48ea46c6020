// SPDX-License-Identifier: Apache-2.0
// QK-HEADS, QK-SCALE, QK-TEMP, QK-CAP, QK-BIAS.
#include <algorithm>
#include <cmath>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::QueryRow;

double inv_sqrt(double x) {
  return 1 / std::sqrt(x);
}

// A kernel whose constant differs from the contract's.
template <class Real>
struct ScaleFault : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  ScaleFault(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
             const qkcts_outputs& outputs, double factor)
      : Base(terms, shape, inputs, outputs) {
    for (double& tau : this->tau_) tau *= factor;
  }
};

template <class Real>
struct LearnedScaleAndSqrt : ScaleFault<Real> {
  LearnedScaleAndSqrt(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                      const qkcts_outputs& outputs)
      : ScaleFault<Real>(
            terms, shape, inputs, outputs,
            terms.score.scale_form == QKCTS_SCALE_LEARNED_SCALAR ? inv_sqrt(static_cast<double>(shape.head_dim)) : 1) {}
};

template <class Real>
struct ScaleTwice : scalar::Attention<Real> {
  ScaleTwice(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
             const qkcts_outputs& outputs)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    for (double& tau : this->tau_) tau *= tau;
  }
};

template <class Real>
struct ScaleInBfloat16 : scalar::Attention<Real> {
  ScaleInBfloat16(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                  const qkcts_outputs& outputs)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    for (double& tau : this->tau_) tau = scalar::from_bfloat16(scalar::to_bfloat16(static_cast<float>(tau)));
  }
};

template <class Real>
struct HeadsUnmapped : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  std::int64_t kv_head(std::int64_t h) const override { return std::min(h, this->shape_.kv_heads - 1); }
};

// Query heads are tiled by 16, and a tile looks up one key head: wrong where G > 16 is no multiple of 16.
template <class Real>
struct HeadsTiledBy16 : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  std::int64_t kv_head(std::int64_t h) const override {
    const std::int64_t group = this->shape_.q_heads / this->shape_.kv_heads;
    return group > 16 ? h / 16 * 16 / group : h / group;
  }
};

// The dot product is held in binary16 before it is scaled.
template <class Real>
struct DotInBinary16 : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void score_row(QueryRow<Real>& row) override {
    Base::score_row(row);
    const Real tau = this->tau(row);
    for (Real& s : row.scores) s = tau * scalar::from_binary16(scalar::to_binary16(static_cast<float>(s / tau)));
  }
};

// The last 16 lanes (or what is left after whole groups of 32) never enter the dot product.
template <class Real>
struct TailLanesDropped : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void score_row(QueryRow<Real>& row) override {
    const std::int64_t whole = this->shape_.head_dim / 32 * 32;
    Base::score_row(row);
    if (whole == 0) return;
    for (std::int64_t k = 0; k < this->shape_.k_len; ++k) {
      const auto x = this->query(row.b, row.h, row.t), y = this->key(row.b, this->kv_head(row.h), k);
      Real sum = 0;
      for (std::int64_t d = 0; d < whole; ++d) sum += x[d] * y[d];
      row.scores[k] = this->tau(row) * sum;
    }
  }
};

template <class Real>
struct TemperatureAfterCap : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void cap_row(QueryRow<Real>& row) override {
    if (this->terms_.score.softcap == 0) return Base::cap_row(row);
    const Real temperature =
        this->terms_.score.temperature == 0 ? 1 : static_cast<Real>(this->terms_.score.temperature);
    for (Real& s : row.scores) s *= temperature;
    Base::cap_row(row);
    for (Real& s : row.capped) s /= temperature;
    for (Real& s : row.scores) s /= temperature;
  }
};

template <class Real>
struct CapBeforeScale : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void cap_row(QueryRow<Real>& row) override {
    const Real cap = static_cast<Real>(this->terms_.score.softcap);
    Base::cap_row(row);
    if (cap == 0) return;
    for (std::size_t k = 0; k < row.scores.size(); ++k)
      row.capped[k] = this->tau(row) * cap * std::tanh(row.scores[k] / this->tau(row) / cap);
  }
};

// A hidden key gets -inf before the cap, so it comes out as -c and keeps a weight.
template <class Real>
struct CapAfterMask : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void mask_row(QueryRow<Real>& row) override {
    Base::mask_row(row);
    const Real cap = static_cast<Real>(this->terms_.score.softcap);
    if (cap == 0) return;
    for (std::size_t k = 0; k < row.visible.size(); ++k) {
      if (row.visible[k] != 0 || row.empty) continue;
      row.masked[k] = -cap;
      row.visible[k] = 1;
    }
  }
};

template <class Real>
struct BiasScaled : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void cap_row(QueryRow<Real>& row) override {
    const std::vector<Real> scores = row.scores;
    const std::uint32_t order = this->terms_.score.bias_order;
    if (order != QKCTS_BIAS_NONE) {
      for (std::int64_t k = 0; k < this->shape_.k_len; ++k) row.scores[k] += this->tau(row) * this->bias_of(row, k);
      this->terms_.score.bias_order = QKCTS_BIAS_NONE;
    }
    Base::cap_row(row);
    this->terms_.score.bias_order = order;
    row.scores = scores;
  }
};

constexpr Mutant table[] = {
    {"gqa_no_map", "QK-HEADS-01", QKCTS_STAGE_SCORES, "query head h reads key head min(h, Hkv - 1)", nullptr,
     kernel<HeadsUnmapped>},
    {"gqa_tile_boundary", "QK-HEADS-01", QKCTS_STAGE_SCORES, "16 query heads share one key head look-up", nullptr,
     kernel<HeadsTiledBy16>},
    {"scale_twice", "QK-SCALE-02", QKCTS_STAGE_SCORES, "the scale is applied to q and to the scores", nullptr,
     kernel<ScaleTwice>},
    {"scale_low_precision", "QK-SCALE-02", QKCTS_STAGE_SCORES, "the scale is rounded to bfloat16", nullptr,
     kernel<ScaleInBfloat16>},
    {"learned_scale_and_sqrt", "QK-SCALE-01", QKCTS_STAGE_SCORES, "1/sqrt(D) beside the learned scale", nullptr,
     kernel<LearnedScaleAndSqrt>},
    {"dot_fp16", "QK-SCALE-02", QKCTS_STAGE_SCORES, "the dot product is rounded to binary16 before it is scaled",
     nullptr, kernel<DotInBinary16>},
    {"tail_dims_dropped", "QK-SCALE-02", QKCTS_STAGE_SCORES,
     "lanes behind the last whole 32 are left out of the dot product", nullptr, kernel<TailLanesDropped>},
    {"temperature_after_cap", "QK-TEMP-01", QKCTS_STAGE_CAPPED, "the temperature divides the capped score", nullptr,
     kernel<TemperatureAfterCap>},
    {"softcap_before_scale", "QK-CAP-01", QKCTS_STAGE_CAPPED, "the unscaled dot product is capped", nullptr,
     kernel<CapBeforeScale>},
    {"softcap_after_mask", "QK-CAP-01", QKCTS_STAGE_MASKED,
     "the mask comes before the cap: a hidden key has the score -c", nullptr, kernel<CapAfterMask>},
    {"bias_before_scale", "QK-BIAS-01", QKCTS_STAGE_CAPPED, "the bias is scaled with the dot product", nullptr,
     kernel<BiasScaled>},
};

}  // namespace

std::span<const Mutant> score_mutants() {
  return table;
}

}  // namespace qkcts::mutants
