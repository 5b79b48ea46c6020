// SPDX-License-Identifier: Apache-2.0
// QK-ROUND, the points of q, k and v: projection, norm and rotation.
#include <bit>
#include <cmath>
#include <utility>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::Side;
using scalar::Turn;

template <class Edit>
void each_side(qkcts_contract& terms, Edit edit) {
  edit(terms.rounding.q);
  edit(terms.rounding.k);
  edit(terms.rounding.v);
}

// The format of one point stands at another, if that one is free.
template <std::uint32_t qkcts_vector_rounding::*from, std::uint32_t qkcts_vector_rounding::*to>
void move(qkcts_contract& terms, const qkcts_shape&) {
  each_side(terms, [](qkcts_vector_rounding& side) {
    if (side.*from == 0 || side.*to != 0) return;
    side.*to = side.*from;
    side.*from = 0;
  });
}

template <class Edit>
void each_input(qkcts_contract& terms, Edit edit) {
  edit(terms.rounding.q_input);
  edit(terms.rounding.k_input);
}

// The products are rounded before the bias is added, and the sum again.
template <class Real>
struct ProductRounded : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void multiply_row(Side side, std::span<const Real> x, std::span<Real> token) const override {
    Base::multiply_row(side, x, token);
    for (Real& sum : token) sum = this->rounded(this->points_of(side).projection, sum);
  }
};

// Of two numbers of bfloat16 that are equally near, the rotation takes the one farther from 0.
template <class Real>
struct RotationTiesAway : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void rotate_head(Side side, const Turn<Real>& turn, std::span<Real> head) const override {
    ties_away_ = true;
    Base::rotate_head(side, turn, head);
    ties_away_ = false;
  }
  Real rounded_to(std::uint32_t format, Real x) const override {
    const auto narrow = static_cast<float>(x);
    if (!ties_away_ || format != QKCTS_BFLOAT16 || narrow != x) return Base::rounded_to(format, x);
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(narrow) + 0x8000u) & 0xffff0000u);
  }

 private:
  mutable bool ties_away_ = false;
};

// Narrowing to bfloat16 at the end of the norm drops the low bits.
template <class Real>
struct NormTruncates : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void transform_token(Side side, std::span<Real> token) override {
    truncates_ = true;
    Base::transform_token(side, token);
    truncates_ = false;
  }
  Real rounded_to(std::uint32_t format, Real x) const override {
    if (!truncates_ || format != QKCTS_BFLOAT16) return Base::rounded_to(format, x);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(x)) & 0xffff0000u);
  }

 private:
  bool truncates_ = false;
};

// The whole head is rounded after the rotation, also where nothing turned.
template <class Real>
struct RoundsWholeHead : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void rotate_head(Side side, const Turn<Real>& turn, std::span<Real> head) const override {
    Base::rotate_head(side, turn, head);
    for (Real& x : head) x = this->rounded(this->points_of(side).rope, x);
  }
};

// Another largest number of e4m3: that of the variant without NaN patterns to spare.
template <class Real>
struct LargestIs240 : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  Real rounded_to(std::uint32_t format, Real x) const override {
    const Real y = Base::rounded_to(format, x);
    return format == QKCTS_E4M3FN && std::fabs(y) > 240 ? std::copysign(Real{240}, y) : y;
  }
};

// At the end of the rotation.
template <class Real>
struct SubnormalsFlushed : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void rotate_head(Side side, const Turn<Real>& turn, std::span<Real> head) const override {
    Base::rotate_head(side, turn, head);
    if (this->points_of(side).rope != QKCTS_E4M3FN) return;
    for (Real& x : head)
      if (std::fabs(x) < static_cast<Real>(0x1p-6)) x = 0;
  }
};

using Points = qkcts_vector_rounding;

constexpr Mutant table[] = {
    {.id = "round_input_norm_before_gain",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_Q_PROJ,
     .wrong = "rn(u) g for rn(u g) before the projection",
     .edit =
         [](qkcts_contract& terms, const qkcts_shape&) {
           each_input(terms, [](qkcts_input_rounding& side) {
             if (side.unit != 0) return;
             side.unit = side.norm;
             side.norm = 0;
           });
         },
     .invisible = "no gain, or powers of two"},
    {.id = "round_projection_before_bias",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_Q_PROJ,
     .wrong = "rn(rn(x W) + b) for rn(x W + b)",
     .attention = kernel<ProductRounded>,
     .invisible = "no bias"},
    {.id = "round_unit_for_norm",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_Q_NORM,
     .wrong = "rn(u) g for rn(u g)",
     .edit = move<&Points::norm, &Points::unit>,
     .invisible = "no gain, or powers of two"},
    {.id = "round_norm_truncates",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_Q_NORM,
     .wrong = "the end of the norm drops the low bits",
     .attention = kernel<NormTruncates>,
     .source = "ROCm/aiter#5151"},
    {.id = "round_v_norm_dropped",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_V_NORM,
     .wrong = "the end of the norm of v is not rounded",
     .edit = [](qkcts_contract& terms, const qkcts_shape&) { terms.rounding.v.norm = 0; },
     .invisible = "a point that rounds to the storage format of the stage"},
    {.id = "round_rope_product_ties_away",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_Q_ROPE,
     .wrong = "ties go away from 0, not to the even number",
     .attention = kernel<RotationTiesAway>,
     .invisible = "everything but exact ties"},
    {.id = "round_rope_moved_to_product",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_Q_ROPE,
     .wrong = "rn(a C) - rn(b S) for rn(a C - b S)",
     .edit = move<&Points::rope, &Points::rope_product>,
     .invisible = "position 0"},
    {.id = "round_rope_whole_head",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_Q_ROPE,
     .wrong = "lanes that do not turn are rounded too",
     .attention = kernel<RoundsWholeHead>,
     .invisible = "R = D, or a point at the norm before"},
    {.id = "round_e4m3fn_subnormals_flushed",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_Q_ROPE,
     .wrong = "subnormal numbers of e4m3fn become 0 after the rotation",
     .attention = kernel<SubnormalsFlushed>,
     .source = "tenstorrent/tt-metal#50082",
     .invisible = "entries from 2^-6 on"},
    {.id = "fp8_largest_240",
     .clause = "QK-ROUND-02",
     .stage = QKCTS_STAGE_Q_ROPE,
     .wrong = "e4m3fn ends at 240",
     .attention = kernel<LargestIs240>,
     .invisible = "entries up to 248"},
};

}  // namespace

std::span<const Mutant> vector_rounding_mutants() {
  return table;
}

}  // namespace qkcts::mutants
