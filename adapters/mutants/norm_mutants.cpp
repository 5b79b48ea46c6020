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

template <class Edit>
void each_norm(qkcts_contract& terms, Edit edit) {
  if (terms.q_norm.applied != 0) edit(terms.q_norm);
  if (terms.k_norm.applied != 0) edit(terms.k_norm);
}

double width(const qkcts_norm& norm, const qkcts_contract& terms, const qkcts_shape& shape) {
  const std::int64_t heads = &norm == &terms.q_norm ? shape.q_heads : shape.kv_heads;
  return static_cast<double>(norm.axis == QKCTS_AXIS_FULL_WIDTH ? heads * shape.head_dim : shape.head_dim);
}

template <class Real>
struct NormSkipped : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  void normalise_token(Side, std::span<Real>) override {}
};

template <class Real>
struct NormTwice : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  void normalise_token(Side side, std::span<Real> token) override {
    scalar::Attention<Real>::normalise_token(side, token);
    scalar::Attention<Real>::normalise_token(side, token);
  }
};

template <class Real>
struct NormOfKeysSkipped : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  void normalise_token(Side side, std::span<Real> token) override {
    if (side != Side::key) scalar::Attention<Real>::normalise_token(side, token);
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
    {"norm_skipped", "QK-NORM-01", QKCTS_STAGE_Q_NORM, "q and k are not normalised", nullptr, kernel<NormSkipped>},
    {"norm_of_keys_skipped", "QK-NORM-01", QKCTS_STAGE_K_NORM, "only q is normalised", nullptr,
     kernel<NormOfKeysSkipped>},
    {"norm_twice", "QK-NORM-01", QKCTS_STAGE_Q_NORM, "the norm is applied to its own result", nullptr,
     kernel<NormTwice>},
    {"layernorm_for_rms", "QK-NORM-02", QKCTS_STAGE_Q_NORM, "the mean is subtracted",
     [](qkcts_contract& terms, const qkcts_shape&) { each_norm(terms, [](qkcts_norm& norm) { norm.center = 1; }); }},
    {"rms_for_layernorm", "QK-NORM-02", QKCTS_STAGE_Q_NORM, "the mean is not subtracted",
     [](qkcts_contract& terms, const qkcts_shape&) { each_norm(terms, [](qkcts_norm& norm) { norm.center = 0; }); }},
    {"l2_for_rms", "QK-NORM-03", QKCTS_STAGE_Q_NORM, "sum for mean of squares, epsilon alike: sqrt(D) is missing",
     [](qkcts_contract& terms, const qkcts_shape& shape) {
       each_norm(terms, [&](qkcts_norm& norm) {
         if (norm.statistic == QKCTS_MEAN_SQUARE) norm.eps *= width(norm, terms, shape);
         norm.statistic = QKCTS_SUM_SQUARE;
       });
     }},
    {"rms_for_l2", "QK-NORM-03", QKCTS_STAGE_Q_NORM, "mean for sum of squares",
     [](qkcts_contract& terms, const qkcts_shape&) {
       each_norm(terms, [](qkcts_norm& norm) { norm.statistic = QKCTS_MEAN_SQUARE; });
     }},
    {"full_width_for_per_head", "QK-NORM-04", QKCTS_STAGE_Q_NORM, "the statistic runs over all heads of the token",
     [](qkcts_contract& terms, const qkcts_shape&) {
       each_norm(terms, [](qkcts_norm& norm) { norm.axis = QKCTS_AXIS_FULL_WIDTH; });
     }},
    {"per_head_for_full_width", "QK-NORM-04", QKCTS_STAGE_Q_NORM, "the statistic runs over one head",
     [](qkcts_contract& terms, const qkcts_shape&) {
       each_norm(terms, [](qkcts_norm& norm) { norm.axis = QKCTS_AXIS_HEAD; });
     }},
    {"tp_local_statistic", "QK-NORM-04", QKCTS_STAGE_Q_NORM, "a full-width statistic over half of the heads", nullptr,
     kernel<StatisticOfShard>},
    {"tail_dims_divisor", "QK-NORM-03", QKCTS_STAGE_Q_NORM, "the mean divides by the next power of two", nullptr,
     kernel<WidthPadded>},
    {"ss_fp16", "QK-NORM-03", QKCTS_STAGE_Q_NORM, "squares and their sum are held in binary16", nullptr,
     kernel<StatisticInBinary16>},
    {"root_bf16", "QK-NORM-03", QKCTS_STAGE_Q_NORM, "the divisor is rounded to bfloat16", nullptr,
     kernel<RootInBfloat16>},
    {"eps_dropped", "QK-EPS-01", QKCTS_STAGE_Q_NORM, "epsilon is 0",
     [](qkcts_contract& terms, const qkcts_shape&) { each_norm(terms, [](qkcts_norm& norm) { norm.eps = 0; }); }},
    {"eps_hardcoded_1e_5", "QK-EPS-01", QKCTS_STAGE_Q_NORM, "epsilon is 1e-5 whatever the contract says",
     [](qkcts_contract& terms, const qkcts_shape&) { each_norm(terms, [](qkcts_norm& norm) { norm.eps = 1e-5; }); }},
    {"eps_class_default", "QK-EPS-01", QKCTS_STAGE_Q_NORM, "epsilon is 1e-6 whatever the contract says",
     [](qkcts_contract& terms, const qkcts_shape&) { each_norm(terms, [](qkcts_norm& norm) { norm.eps = 1e-6; }); }},
    {"eps_underflow_fp16", "QK-EPS-01", QKCTS_STAGE_Q_NORM, "epsilon is first rounded to binary16",
     [](qkcts_contract& terms, const qkcts_shape&) {
       each_norm(terms, [](qkcts_norm& norm) { norm.eps = round_to_binary16(norm.eps); });
     }},
    {"eps_sum_for_mean", "QK-EPS-02", QKCTS_STAGE_Q_NORM, "epsilon is added to the sum, so it is n times too small",
     [](qkcts_contract& terms, const qkcts_shape& shape) {
       each_norm(terms, [&](qkcts_norm& norm) {
         if (norm.statistic == QKCTS_MEAN_SQUARE) norm.eps /= width(norm, terms, shape);
       });
     }},
    {"eps_mean_for_sum", "QK-EPS-02", QKCTS_STAGE_Q_NORM, "epsilon is added to the mean, so it is n times too large",
     [](qkcts_contract& terms, const qkcts_shape& shape) {
       each_norm(terms, [&](qkcts_norm& norm) {
         if (norm.statistic == QKCTS_SUM_SQUARE) norm.eps *= width(norm, terms, shape);
       });
     }},
    {"eps_outside_sqrt", "QK-EPS-02", QKCTS_STAGE_Q_NORM, "sqrt(t) + eps for sqrt(t + eps)",
     [](qkcts_contract& terms, const qkcts_shape&) {
       each_norm(terms, [](qkcts_norm& norm) {
         if (norm.root == QKCTS_INSIDE_ROOT) norm.root = QKCTS_OUTSIDE_ROOT;
       });
     }},
    {"eps_inside_sqrt", "QK-EPS-02", QKCTS_STAGE_Q_NORM, "sqrt(t + eps) for sqrt(t) + eps",
     [](qkcts_contract& terms, const qkcts_shape&) {
       each_norm(terms, [](qkcts_norm& norm) {
         if (norm.root == QKCTS_OUTSIDE_ROOT) norm.root = QKCTS_INSIDE_ROOT;
       });
     }},
    {"eps_clamp_mean", "QK-EPS-02", QKCTS_STAGE_Q_NORM, "sqrt(max(t, eps)) for sqrt(t + eps)",
     [](qkcts_contract& terms, const qkcts_shape&) {
       each_norm(terms, [](qkcts_norm& norm) {
         if (norm.root == QKCTS_INSIDE_ROOT) norm.root = QKCTS_MAX_INSIDE;
       });
     }},
    {"eps_add_for_clamp", "QK-EPS-02", QKCTS_STAGE_Q_NORM, "sqrt(t + eps) for a maximum with eps",
     [](qkcts_contract& terms, const qkcts_shape&) {
       each_norm(terms, [](qkcts_norm& norm) {
         if (norm.root == QKCTS_MAX_ROOT || norm.root == QKCTS_MAX_INSIDE) norm.root = QKCTS_INSIDE_ROOT;
       });
     }},
    {"gain_missing", "QK-GAIN-01", QKCTS_STAGE_Q_NORM, "the gain is left out",
     [](qkcts_contract& terms, const qkcts_shape&) {
       each_norm(terms, [](qkcts_norm& norm) { norm.gain = QKCTS_GAIN_NONE; });
     }},
    {"gain_offset_extra", "QK-GAIN-01", QKCTS_STAGE_Q_NORM, "1 + w for w",
     [](qkcts_contract& terms, const qkcts_shape&) {
       each_norm(terms, [](qkcts_norm& norm) {
         if (norm.gain == QKCTS_GAIN_W) norm.gain = QKCTS_GAIN_ONE_PLUS_W;
       });
     }},
    {"gain_offset_missing", "QK-GAIN-01", QKCTS_STAGE_Q_NORM, "w for 1 + w",
     [](qkcts_contract& terms, const qkcts_shape&) {
       each_norm(terms, [](qkcts_norm& norm) {
         if (norm.gain == QKCTS_GAIN_ONE_PLUS_W) norm.gain = QKCTS_GAIN_W;
       });
     }},
    {"gain_offset_twice", "QK-GAIN-01", QKCTS_STAGE_Q_NORM, "2 + w for 1 + w", nullptr, kernel<GainOffsetTwice>},
    {"gain_offset_low_precision", "QK-GAIN-01", QKCTS_STAGE_Q_NORM, "1 + w is rounded to bfloat16", nullptr,
     kernel<GainOffsetInBfloat16>},
    {"q_gain_on_k", "QK-GAIN-01", QKCTS_STAGE_K_NORM, "k is multiplied by the gain of q", nullptr,
     kernel<KeysUseQueryGain>},
    {"gain_shared_across_heads", "QK-GAIN-02", QKCTS_STAGE_Q_NORM, "every head uses the gain of head 0", nullptr,
     kernel<GainOfFirstHead>},
    {"ln_bias_dropped", "QK-GAIN-03", QKCTS_STAGE_Q_NORM, "the bias after the gain is left out",
     [](qkcts_contract& terms, const qkcts_shape&) {
       each_norm(terms, [](qkcts_norm& norm) { norm.bias_axes = QKCTS_AXES_NONE; });
     }},
    {"variance_unbiased", "QK-VAR-01", QKCTS_STAGE_Q_NORM, "the variance divides by n - 1", nullptr,
     kernel<VarianceUnbiased>},
    {"ln_one_pass_variance", "QK-VAR-01", QKCTS_STAGE_Q_NORM,
     "mean of squares minus square of the mean, where two passes are asked for",
     [](qkcts_contract& terms, const qkcts_shape&) {
       each_norm(terms, [](qkcts_norm& norm) { norm.variance = QKCTS_VARIANCE_ONE_PASS_CLIPPED; });
     }},
};

}  // namespace

std::span<const Mutant> norm_mutants() {
  return table;
}

}  // namespace qkcts::mutants
