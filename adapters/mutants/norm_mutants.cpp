// SPDX-License-Identifier: Apache-2.0
// QK-NORM, QK-EPS, QK-GAIN, QK-VAR.
#include <cmath>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::from_bfloat16;
using scalar::from_binary16;
using scalar::root;
using scalar::Side;
using scalar::statistic;
using scalar::to_bfloat16;
using scalar::to_binary16;

template <class Real>
Real round_to_binary16(Real x) {
  return from_binary16(to_binary16(static_cast<float>(x)));
}

template <class Real>
struct NormTwice : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  void normalise_token(Side side, std::span<Real> token) override {
    scalar::Attention<Real>::normalise_token(side, token);
    scalar::Attention<Real>::normalise_token(side, token);
  }
};

template <class Real>
struct KeysUseQueryGain : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void normalise_token(Side side, std::span<Real> token) override {
    const bool fits =
        this->gain_[0].axes == this->gain_[1].axes && this->gain_[0].values.size() == this->gain_[1].values.size();
    if (fits) this->gain_[1] = this->gain_[0];
    Base::normalise_token(side, token);
  }
};

template <class Real>
struct GainOfFirstHead : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void normalise_token(Side side, std::span<Real> token) override {
    for (auto& gain : this->gain_) {
      if (gain.axes == QKCTS_AXES_HEAD) gain.axes = QKCTS_AXES_SCALAR;
      if (gain.axes == QKCTS_AXES_HEAD_HEAD_DIM || gain.axes == QKCTS_AXES_FULL_WIDTH) gain.axes = QKCTS_AXES_HEAD_DIM;
    }
    Base::normalise_token(side, token);
  }
};

// Where 1 + w is formed by a converter and then once more at run time.
template <class Real>
struct GainOffsetTwice : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  GainOffsetTwice(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                  const qkcts_outputs& outputs)
      : Base(terms, shape, inputs, outputs) {
    for (const Side side : {Side::query, Side::key}) {
      if (this->norm_of(side).gain != QKCTS_GAIN_ONE_PLUS_W) continue;
      for (Real& w : this->gain_[static_cast<std::size_t>(side)].values) w += 1;
    }
  }
};

template <class Real>
struct GainOffsetInBfloat16 : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  GainOffsetInBfloat16(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                       const qkcts_outputs& outputs)
      : Base(terms, shape, inputs, outputs) {
    for (const Side side : {Side::query, Side::key}) {
      if (this->norm_of(side).gain != QKCTS_GAIN_ONE_PLUS_W) continue;
      for (Real& w : this->gain_[static_cast<std::size_t>(side)].values)
        w = from_bfloat16(to_bfloat16(static_cast<float>(1 + w))) - Real{1};
    }
  }
};

// The statistic as another kernel would form it: t times a factor that the width decides.
template <class Real>
struct VarianceUnbiased : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  Real divisor_of(Side side, std::span<const Real> group, Real mean) const override {
    const qkcts_norm& norm = this->norm_of(side);
    Real t = statistic(norm, group, mean);
    const Real n = static_cast<Real>(group.size());
    if (norm.center != 0 && norm.statistic == QKCTS_MEAN_SQUARE && n > 1) t *= n / (n - 1);
    return root(norm.root, t, static_cast<Real>(norm.eps));
  }
};

template <class Real>
struct WidthPadded : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  Real divisor_of(Side side, std::span<const Real> group, Real mean) const override {
    const qkcts_norm& norm = this->norm_of(side);
    Real t = statistic(norm, group, mean);
    std::size_t padded = 1;
    while (padded < group.size()) padded *= 2;
    if (norm.statistic == QKCTS_MEAN_SQUARE) t *= static_cast<Real>(group.size()) / static_cast<Real>(padded);
    return root(norm.root, t, static_cast<Real>(norm.eps));
  }
};

template <class Real>
struct StatisticInBinary16 : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  Real divisor_of(Side side, std::span<const Real> group, Real mean) const override {
    const qkcts_norm& norm = this->norm_of(side);
    Real sum = 0;
    for (const Real x : group) sum = round_to_binary16(sum + round_to_binary16((x - mean) * (x - mean)));
    const Real t = norm.statistic == QKCTS_SUM_SQUARE ? sum : sum / static_cast<Real>(group.size());
    return root(norm.root, t, static_cast<Real>(norm.eps));
  }
};

template <class Real>
struct RootInBfloat16 : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  Real divisor_of(Side side, std::span<const Real> group, Real mean) const override {
    return from_bfloat16(to_bfloat16(static_cast<float>(Base::divisor_of(side, group, mean))));
  }
};

// A full-width statistic formed by two devices, each over the heads that it holds.
template <class Real>
struct StatisticOfShard : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void normalise_token(Side side, std::span<Real> token) override {
    const std::size_t half = token.size() / static_cast<std::size_t>(this->width_of(side)) / 2 *
                             static_cast<std::size_t>(this->width_of(side));
    if (this->norm_of(side).axis != QKCTS_AXIS_FULL_WIDTH || half == 0) return Base::normalise_token(side, token);
    const std::vector<Real> before(token.begin(), token.end());
    const auto local = [&](std::size_t first, std::size_t last) {
      const auto divisor = [&](std::span<const Real>, Real mean) {
        return this->divisor_of(side, std::span<const Real>(before).subspan(first, last - first), mean);
      };
      std::vector<Real> shard = before;
      const auto unit = [&](Real centred, Real d) { return this->unit_of(side, centred, d); };
      scalar::normalise<Real>(this->norm_of(side), this->gain_[side], this->bias_[side], this->width_of(side), divisor,
                              unit, shard);
      std::copy(shard.begin() + static_cast<std::ptrdiff_t>(first), shard.begin() + static_cast<std::ptrdiff_t>(last),
                token.begin() + static_cast<std::ptrdiff_t>(first));
    };
    local(0, half);
    local(half, token.size());
  }
};

constexpr Mutant table[] = {
    {"norm_twice", "QK-NORM-01", QKCTS_STAGE_Q_NORM, "the norm is applied to its own result", nullptr,
     kernel<NormTwice>},
    {"tp_local_statistic", "QK-NORM-04", QKCTS_STAGE_Q_NORM, "a full-width statistic over half of the heads", nullptr,
     kernel<StatisticOfShard>},
    {"tail_dims_divisor", "QK-NORM-03", QKCTS_STAGE_Q_NORM, "the mean divides by the next power of two", nullptr,
     kernel<WidthPadded>},
    {"ss_fp16", "QK-NORM-03", QKCTS_STAGE_Q_NORM, "squares and their sum are held in binary16", nullptr,
     kernel<StatisticInBinary16>},
    {"root_bf16", "QK-NORM-03", QKCTS_STAGE_Q_NORM, "the divisor is rounded to bfloat16", nullptr,
     kernel<RootInBfloat16>},
    {"gain_offset_twice", "QK-GAIN-01", QKCTS_STAGE_Q_NORM, "2 + w for 1 + w", nullptr, kernel<GainOffsetTwice>},
    {"gain_offset_low_precision", "QK-GAIN-01", QKCTS_STAGE_Q_NORM, "1 + w is rounded to bfloat16", nullptr,
     kernel<GainOffsetInBfloat16>},
    {"q_gain_on_k", "QK-GAIN-01", QKCTS_STAGE_K_NORM, "k is multiplied by the gain of q", nullptr,
     kernel<KeysUseQueryGain>},
    {"gain_shared_across_heads", "QK-GAIN-02", QKCTS_STAGE_Q_NORM, "every head uses the gain of head 0", nullptr,
     kernel<GainOfFirstHead>},
    {"variance_unbiased", "QK-VAR-01", QKCTS_STAGE_Q_NORM, "the variance divides by n - 1", nullptr,
     kernel<VarianceUnbiased>},
};

}  // namespace

std::span<const Mutant> norm_mutants() {
  return table;
}

}  // namespace qkcts::mutants
