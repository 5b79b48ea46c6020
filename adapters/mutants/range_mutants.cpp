// SPDX-License-Identifier: Apache-2.0
// QK-CLIP, QK-MULT.
#include <algorithm>
#include <utility>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::Side;

// The last clamp stands before the multiplier, as where the multiplier is folded into the scale of the scores.
template <class Real>
struct ClipBeforeMultiplier : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void transform_token(Side side, std::span<Real> token) override {
    qkcts_norm_range& range = this->range_of(side);
    const double multiplier = std::exchange(range.multiplier, 0);
    Base::transform_token(side, token);
    range.multiplier = multiplier;
    if (multiplier == 0) return;
    for (Real& x : token) x *= static_cast<Real>(multiplier);
  }
};

// The multiplier is applied before the norm, which divides it out again.
template <class Real>
struct MultiplierBeforeNorm : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void normalise_token(Side side, std::span<Real> token) override {
    const Real multiplier = static_cast<Real>(this->range_of(side).multiplier);
    if (multiplier == 0) return Base::normalise_token(side, token);
    for (Real& x : token) x *= multiplier;
    Base::normalise_token(side, token);
    for (Real& x : token) x /= multiplier;  // what the control is about to multiply by
  }
};

// min(x, c) without the lower bound.
template <class Real>
struct ClipAboveOnly : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void transform_token(Side side, std::span<Real> token) override {
    qkcts_norm_range& range = this->range_of(side);
    const qkcts_norm_range given = range;
    if (given.clip_before != 0) clip(given.clip_before, token);
    range.clip_before = range.clip_after = 0;
    Base::transform_token(side, token);
    range = given;
    if (given.clip_after != 0) clip(given.clip_after, token);
  }

 private:
  static void clip(double bound, std::span<Real> token) {
    for (Real& x : token) x = std::min(x, static_cast<Real>(bound));
  }
};

constexpr Mutant table[] = {
    {"clip_after_before_multiplier", "QK-CLIP-02", QKCTS_STAGE_Q_NORM, "the multiplier comes after the last clamp",
     nullptr, kernel<ClipBeforeMultiplier>},
    {"clip_above_only", "QK-CLIP-01", QKCTS_STAGE_Q_NORM, "min(x, c) for min(max(x, -c), c)", nullptr,
     kernel<ClipAboveOnly>},
    {"multiplier_before_norm", "QK-MULT-01", QKCTS_STAGE_Q_NORM, "the constant factor comes before the norm", nullptr,
     kernel<MultiplierBeforeNorm>},
};

}  // namespace

std::span<const Mutant> range_mutants() {
  return table;
}

}  // namespace qkcts::mutants
