// SPDX-License-Identifier: Apache-2.0
// The clauses of QK-ROPE that came with ABI 1.1 and 1.2: sense, layout, computed angles, scaling, factor, tables by
// head.
#include <cmath>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::Side;
using scalar::Turn;

// A kernel that makes its tables itself, by another rule than the contract's, whether it is given some or not.
void compute_as(qkcts_contract& terms, std::uint32_t scaling) {
  terms.rotation.angles = QKCTS_ANGLES_COMPUTED;
  terms.rotation.scaling = scaling;
}

double rotated(const qkcts_contract& terms, const qkcts_shape& shape) {
  return static_cast<double>(scalar::rotated_lanes(terms.rope, shape.head_dim));
}

// inv_freq is a buffer of the model and follows it into bfloat16.
template <class Real>
struct FrequenciesInBfloat16 : scalar::Attention<Real> {
  FrequenciesInBfloat16(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                        const qkcts_outputs& outputs)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    for (double& f : this->frequencies_) f = scalar::from_bfloat16(scalar::to_bfloat16(static_cast<float>(f)));
  }
};

// The pairs of the whole head share the exponents of the rotated ones, as if R were D.
template <class Real>
struct ExponentOverHead : scalar::Attention<Real> {
  ExponentOverHead(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                   const qkcts_outputs& outputs)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    const double share = rotated(terms, shape) / static_cast<double>(shape.head_dim);
    for (double& f : this->frequencies_) f = std::pow(f, share);
  }
};

// Between the two wavelengths the frequency jumps in the middle.
template <class Real>
struct Llama3WithoutRamp : scalar::Attention<Real> {
  Llama3WithoutRamp(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                    const qkcts_outputs& outputs)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    if (terms.rotation.scaling != QKCTS_SCALING_LLAMA3) return;
    for (std::size_t i = 0; i < this->frequencies_.size(); ++i) {
      const double f = std::pow(terms.rope.theta, -2 * static_cast<double>(i) / rotated(terms, shape));
      const double turns = terms.rotation.original_length * f / 6.283185307179586;
      this->frequencies_[i] =
          turns > std::sqrt(terms.rotation.low * terms.rotation.high) ? f : f / terms.rotation.factor;
    }
  }
};

template <class Real>
struct FactorOnQueriesOnly : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  Turn<Real> turn_at(Side side, std::int64_t h, std::int64_t position) const override {
    Turn<Real> turn = Base::turn_at(side, h, position);
    const double factor = this->terms_.rotation.attention_factor;
    if (side == Side::query || factor == 0) return turn;
    for (Real& c : turn.cosine) c /= static_cast<Real>(factor);
    for (Real& s : turn.sine) s /= static_cast<Real>(factor);
    return turn;
  }
};

// Head h of all heads turns by the table of another one.
template <class Real>
struct TableFault : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  virtual std::int64_t table(Side side, std::int64_t h) const = 0;
  Turn<Real> turn_at(Side side, std::int64_t h, std::int64_t position) const override {
    return Base::turn_at(side, table(side, h), position);
  }
};

template <class Real>
struct TableOfFirstHead : TableFault<Real> {
  using TableFault<Real>::TableFault;
  std::int64_t table(Side, std::int64_t) const override { return 0; }
};

template <class Real>
struct KeysUseFirstTable : TableFault<Real> {
  using TableFault<Real>::TableFault;
  std::int64_t table(Side side, std::int64_t h) const override { return side == Side::key ? 0 : h; }
};

// The tables are read as [P, Hq, R/2].
template <class Real>
struct TablesByPosition : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  Turn<Real> turn_at(Side side, std::int64_t h, std::int64_t position) const override {
    if (this->terms_.rotation.tables != QKCTS_TABLES_PER_HEAD) return Base::turn_at(side, h, position);
    const std::int64_t row = position * this->shape_.q_heads + h, rows = this->cos_.extent(1);
    return Base::turn_at(side, row / rows, row % rows);
  }
};

constexpr Mutant table[] = {
    {"rope_frequencies_bf16", "QK-ROPE-09", QKCTS_STAGE_Q_ROPE, "the frequencies are rounded to bfloat16", nullptr,
     kernel<FrequenciesInBfloat16>},
    {"rope_exponent_over_head", "QK-ROPE-10", QKCTS_STAGE_Q_ROPE, "theta^(-2i/D) for theta^(-2i/R)",
     [](qkcts_contract& terms, const qkcts_shape&) { terms.rotation.angles = QKCTS_ANGLES_COMPUTED; },
     kernel<ExponentOverHead>},
    {"rope_llama3_ramp_missing", "QK-ROPE-10", QKCTS_STAGE_Q_ROPE, "between the wavelengths the frequency jumps",
     [](qkcts_contract& terms, const qkcts_shape&) {
       if (terms.rotation.scaling == QKCTS_SCALING_LLAMA3) compute_as(terms, QKCTS_SCALING_LLAMA3);
     },
     kernel<Llama3WithoutRamp>},
    {"rope_proportional_as_partial", "QK-ROPE-10", QKCTS_STAGE_Q_ROPE,
     "the share of pairs that turns is taken as a shorter rotated span",
     [](qkcts_contract& terms, const qkcts_shape& shape) {
       if (terms.rotation.scaling != QKCTS_SCALING_PROPORTIONAL) return;
       const double pairs = std::floor(terms.rotation.factor * rotated(terms, shape) / 2);
       if (pairs >= 1) terms.rope.rotated = 2 * static_cast<std::uint32_t>(pairs);
       compute_as(terms, QKCTS_SCALING_NONE);
     }},
    {"rope_factor_on_q_only", "QK-ROPE-11", QKCTS_STAGE_K_ROPE, "cos and sin of the keys lack the factor",
     [](qkcts_contract& terms, const qkcts_shape&) {
       if (terms.rotation.attention_factor != 0) compute_as(terms, terms.rotation.scaling);
     },
     kernel<FactorOnQueriesOnly>},
    {.id = "rope_table_of_first_head",
     .clause = "QK-ROPE-12",
     .stage = QKCTS_STAGE_Q_ROPE,
     .wrong = "every head turns by the table of head 0",
     .attention = kernel<TableOfFirstHead>,
     .invisible = "head 0"},
    {.id = "rope_table_of_first_head_for_k",
     .clause = "QK-ROPE-12",
     .stage = QKCTS_STAGE_K_ROPE,
     .wrong = "every head of k turns by the table of head 0",
     .attention = kernel<KeysUseFirstTable>,
     .invisible = "head 0"},
    {.id = "rope_tables_by_position",
     .clause = "QK-ROPE-12",
     .stage = QKCTS_STAGE_Q_ROPE,
     .wrong = "[Hq, P, R/2] is read as [P, Hq, R/2]",
     .attention = kernel<TablesByPosition>,
     .invisible = "one head; position 0 of head 0"},
};

}  // namespace

std::span<const Mutant> rotation_mutants() {
  return table;
}

}  // namespace qkcts::mutants
