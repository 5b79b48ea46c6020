// SPDX-License-Identifier: Apache-2.0
// QK-PROJ.
#include <algorithm>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::Projection;
using scalar::Side;

// Column j of the matrix is taken from elsewhere in its memory: place(e, j) of [E, N].
template <class Real>
struct WeightFault : scalar::Attention<Real> {
  using Place = std::size_t (*)(std::size_t e, std::size_t j, std::size_t rows, std::size_t columns, std::size_t heads);
  WeightFault(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
              const qkcts_outputs& outputs, Place place)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    for (const Side side : {Side::query, Side::key}) {
      Projection<Real>& projection = this->projection_[side];
      if (!projection.present()) continue;
      const std::vector<Real> given = projection.weight;
      const auto heads = static_cast<std::size_t>(this->heads_of(side));
      const auto rows = static_cast<std::size_t>(projection.x.extent(2)), columns = given.size() / rows;
      for (std::size_t e = 0; e < rows; ++e)
        for (std::size_t j = 0; j < columns; ++j)
          projection.weight[e * columns + j] = given[place(e, j, rows, columns, heads)];
    }
  }
};

// A weight is kept as [out, in].
template <class Real>
struct Transposed : WeightFault<Real> {
  Transposed(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
             const qkcts_outputs& outputs)
      : WeightFault<Real>(
            terms, shape, inputs, outputs,
            [](std::size_t e, std::size_t j, std::size_t rows, std::size_t, std::size_t) { return j * rows + e; }) {}
};

template <class Real>
struct HeadsInterleaved : WeightFault<Real> {
  HeadsInterleaved(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                   const qkcts_outputs& outputs)
      : WeightFault<Real>(terms, shape, inputs, outputs,
                          [](std::size_t e, std::size_t j, std::size_t, std::size_t columns, std::size_t heads) {
                            const std::size_t dim = columns / heads;
                            return e * columns + j % dim * heads + j / dim;
                          }) {}
};

// The memory of `other` is read in the shape of `own`, from its start again where it is too short.
template <class Real>
void use_instead(const std::vector<Real>& other, std::vector<Real>& own) {
  for (std::size_t i = 0; i < own.size() && !other.empty(); ++i) own[i] = other[i % other.size()];
}

template <class Real>
struct KeysUseQueryWeight : scalar::Attention<Real> {
  KeysUseQueryWeight(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                     const qkcts_outputs& outputs)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    use_instead(this->projection_[Side::query].weight, this->projection_[Side::key].weight);
  }
};

// norm(x) W for norm(x W): the norm of q moves before the matrix.
template <class Real>
struct NormBeforeProjection : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void normalise_row(Side side, std::span<Real> x) const override {
    Base::normalise_row(side, x);
    qkcts_norm norm = this->norm_of(side);
    if (norm.applied == 0) return;
    norm.axis = QKCTS_AXIS_FULL_WIDTH;
    norm.gain = QKCTS_GAIN_NONE;  // its gain has another length
    norm.bias_axes = QKCTS_AXES_NONE;
    const auto divisor = [&](std::span<const Real> row, Real mean) {
      return scalar::contract_divisor(norm, row, mean);
    };
    scalar::normalise<Real>(norm, {}, {}, static_cast<std::int64_t>(x.size()), divisor, scalar::quotient<Real>, x);
  }
  void normalise_token(Side side, std::span<Real> token) override {
    if (!this->projection_[side].present()) Base::normalise_token(side, token);
  }
};

// norm(x W) for norm(x) W: the norm of the input moves behind the matrix, and so over another width.
template <class Real>
struct InputNormAfter : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void normalise_row(Side, std::span<Real>) const override {}
  void project_token(Side side, std::int64_t b, std::int64_t t, std::span<Real> token) const override {
    Base::project_token(side, b, t, token);
    if (this->input_norm_of(side).applied == 0) return;
    qkcts_norm norm = this->input_norm_of(side);
    norm.gain = QKCTS_GAIN_NONE;
    norm.bias_axes = QKCTS_AXES_NONE;
    const auto divisor = [&](std::span<const Real> row, Real mean) {
      return scalar::contract_divisor(norm, row, mean);
    };
    scalar::normalise<Real>(norm, {}, {}, static_cast<std::int64_t>(token.size()), divisor, scalar::quotient<Real>,
                            token);
  }
};

template <class Real>
struct SumInBfloat16 : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  void multiply_row(Side side, std::span<const Real> x, std::span<Real> token) const override {
    const Real* weight = this->projection_[side].weight.data();
    std::fill(token.begin(), token.end(), Real{0});
    for (const Real entry : x)
      for (Real& sum : token)
        sum = scalar::from_bfloat16(scalar::to_bfloat16(static_cast<float>(sum + entry * *weight++)));
  }
};

// The bias of a projection by another rule, from the one that the contract has.
template <class Real>
struct BiasOfFirstHead : scalar::Attention<Real> {
  BiasOfFirstHead(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                  const qkcts_outputs& outputs)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    for (const Side side : {Side::query, Side::key}) {
      std::vector<Real>& bias = this->projection_[side].bias;
      const auto dim = static_cast<std::size_t>(shape.head_dim);
      for (std::size_t j = dim; j < bias.size(); ++j) bias[j] = bias[j % dim];
    }
  }
};

// The biases of the model before this one are still added, where the contract has none.
template <class Real>
struct BiasKept : scalar::Attention<Real> {
  BiasKept(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
           const qkcts_outputs& outputs)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    for (const Side side : {Side::query, Side::key})
      if (this->projection_[side].present() && this->projection_[side].bias.empty())
        this->projection_[side].bias.assign(static_cast<std::size_t>(this->heads_of(side) * shape.head_dim), 0.125);
  }
};

template <class Real>
struct KeysUseQueryInputGain : scalar::Attention<Real> {
  KeysUseQueryInputGain(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                        const qkcts_outputs& outputs)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    use_instead(this->projection_[Side::query].norm_gain.values, this->projection_[Side::key].norm_gain.values);
  }
};

// Of two norms only the first is applied.
template <class Real>
struct SecondNormMissing : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void normalise_token(Side side, std::span<Real> token) override {
    if (side == Side::value || this->input_norm_of(side).applied == 0) Base::normalise_token(side, token);
  }
};

constexpr Mutant table[] = {
    {.id = "projection_transposed",
     .clause = "QK-PROJ-01",
     .stage = QKCTS_STAGE_Q_PROJ,
     .wrong = "the matrix is read as [Hq * D, Eq]",
     .attention = kernel<Transposed>,
     .invisible = "a symmetric matrix"},
    {.id = "projection_heads_interleaved",
     .clause = "QK-PROJ-01",
     .stage = QKCTS_STAGE_Q_PROJ,
     .wrong = "column i * Hq + h for h * D + i",
     .attention = kernel<HeadsInterleaved>,
     .invisible = "one head, or D = 1"},
    {.id = "projection_of_q_for_k",
     .clause = "QK-PROJ-01",
     .stage = QKCTS_STAGE_K_PROJ,
     .wrong = "k is made by the matrix of q",
     .attention = kernel<KeysUseQueryWeight>,
     .invisible = "equal matrices"},
    {.id = "norm_before_projection",
     .clause = "QK-PROJ-01",
     .stage = QKCTS_STAGE_Q_PROJ,
     .wrong = "norm(x) W for norm(x W)",
     .attention = kernel<NormBeforeProjection>,
     .invisible = "an orthogonal square matrix"},
    {.id = "projection_sum_bf16",
     .clause = "QK-PROJ-01",
     .stage = QKCTS_STAGE_Q_PROJ,
     .wrong = "the products are added in bfloat16",
     .attention = kernel<SumInBfloat16>,
     .invisible = "sums that bfloat16 holds"},
    {.id = "projection_bias_of_first_head",
     .clause = "QK-PROJ-02",
     .stage = QKCTS_STAGE_Q_PROJ,
     .wrong = "every head adds the bias of head 0",
     .attention = kernel<BiasOfFirstHead>,
     .invisible = "one head"},
    {.id = "qkv_bias_kept",
     .clause = "QK-PROJ-02",
     .stage = QKCTS_STAGE_Q_PROJ,
     .wrong = "x W + b for x W: the bias of a predecessor",
     .attention = kernel<BiasKept>},
    {.id = "input_norm_after_projection",
     .clause = "QK-PROJ-03",
     .stage = QKCTS_STAGE_Q_PROJ,
     .wrong = "norm(x W) for norm(x) W",
     .attention = kernel<InputNormAfter>},
    {.id = "input_gain_of_q_for_k",
     .clause = "QK-PROJ-03",
     .stage = QKCTS_STAGE_K_PROJ,
     .wrong = "the rows of k are multiplied by the gain of those of q",
     .attention = kernel<KeysUseQueryInputGain>,
     .invisible = "equal gains"},
    {.id = "norm_after_input_norm_missing",
     .clause = "QK-PROJ-03",
     .stage = QKCTS_STAGE_Q_NORM,
     .wrong = "with a norm before the projection, the one after it is left out",
     .attention = kernel<SecondNormMissing>},
};

}  // namespace

std::span<const Mutant> projection_mutants() {
  return table;
}

}  // namespace qkcts::mutants
