// SPDX-License-Identifier: Apache-2.0
// QK-ROUND, the points of a query row: scaled q, scores, capped, probs, output.
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::infinity;
using scalar::QueryRow;

// Scores by another rounding of tau <q, k>; `form` makes one of them.
template <class Real>
struct ScoreFault : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  virtual Real form(std::span<const Real> q, std::span<const Real> k, Real tau) const = 0;
  virtual bool at_work() const = 0;
  void score_row(QueryRow<Real>& row) override {
    Base::score_row(row);
    if (!at_work()) return;
    const std::span<const Real> q = this->query(row.b, row.h, row.t);
    for (std::int64_t k = 0; k < this->shape_.k_len; ++k)
      row.scores[k] = form(q, this->key(row.b, this->kv_head(row.h), k), this->tau(row));
  }
};

template <class Real>
struct QueryRoundedBeforeScale : ScoreFault<Real> {
  using ScoreFault<Real>::ScoreFault;
  bool at_work() const override { return this->terms_.rounding.scaled_q != 0; }
  Real form(std::span<const Real> q, std::span<const Real> k, Real tau) const override {
    Real sum = 0;
    for (std::size_t d = 0; d < q.size(); ++d) sum += this->rounded(this->terms_.rounding.scaled_q, q[d]) * k[d];
    return this->rounded(this->terms_.rounding.scores, tau * sum);
  }
};

template <class Real>
struct DotRoundedBeforeScale : ScoreFault<Real> {
  using ScoreFault<Real>::ScoreFault;
  bool at_work() const override { return this->terms_.rounding.scores != 0 && this->terms_.rounding.scaled_q == 0; }
  Real form(std::span<const Real> q, std::span<const Real> k, Real tau) const override {
    Real sum = 0;
    for (std::size_t d = 0; d < q.size(); ++d) sum += q[d] * k[d];
    return tau * this->rounded(this->terms_.rounding.scores, sum);
  }
};

// Rounded after the soft-cap, and what is added after it is not rounded any more.
template <class Real>
struct CapRoundedBeforeBias : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void cap_row(QueryRow<Real>& row) override {
    const std::uint32_t order = this->terms_.score.bias_order;
    const std::uint32_t alibi = std::exchange(this->terms_.logits.alibi, QKCTS_ALIBI_NONE);
    if (order == QKCTS_BIAS_AFTER_SOFTCAP) this->terms_.score.bias_order = QKCTS_BIAS_NONE;
    Base::cap_row(row);
    this->terms_.score.bias_order = order;
    this->terms_.logits.alibi = alibi;
    for (std::int64_t k = 0; k < this->shape_.k_len; ++k) {
      if (order == QKCTS_BIAS_AFTER_SOFTCAP) row.capped[k] += this->bias_of(row, k);
      if (alibi != QKCTS_ALIBI_NONE) row.capped[k] += this->alibi_of(row, k);
    }
  }
};

// Weights rounded before they are divided by their sum, which is that of the rounded ones or of the others.
template <class Real>
struct WeightsRounded : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  virtual Real counted(Real weight, Real rounded_weight) const = 0;
  void softmax_row(QueryRow<Real>& row) override {
    Base::softmax_row(row);
    const std::uint32_t format = this->terms_.rounding.probs;
    if (format == 0 || row.empty) return;
    const bool column = this->has_sink_column();
    Real largest = column ? this->sink_of(row) : -infinity<Real>;
    for (std::size_t k = 0; k < row.masked.size(); ++k)
      if (row.visible[k] != 0) largest = std::max(largest, row.masked[k]);
    Real sum = column ? this->power(this->sink_of(row) - largest) : 0;
    for (std::size_t k = 0; k < row.masked.size(); ++k) {
      if (row.visible[k] == 0) continue;
      const Real weight = this->power(row.masked[k] - largest);
      row.probs[k] = this->rounded(format, weight);
      sum += counted(weight, row.probs[k]);
    }
    for (Real& p : row.probs) p /= sum;
  }
};

template <class Real>
struct SumOfRounded : WeightsRounded<Real> {
  using WeightsRounded<Real>::WeightsRounded;
  Real counted(Real, Real rounded_weight) const override { return rounded_weight; }
};

template <class Real>
struct RoundedBeforeDivision : WeightsRounded<Real> {
  using WeightsRounded<Real>::WeightsRounded;
  Real counted(Real weight, Real) const override { return weight; }
};

// The stage is right, but the values are weighted by the p before their rounding.
template <class Real>
struct UnroundedWeights : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    const std::vector<Real> rounded_probs = row.probs;
    const std::uint32_t format = std::exchange(this->terms_.rounding.probs, 0);
    if (format != 0) Base::softmax_row(row);
    this->terms_.rounding.probs = format;
    Base::output_row(row);
    row.probs = rounded_probs;
  }
};

// Narrowing to bfloat16 drops the low bits, while one step is at work.
template <class Real>
struct Truncating : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  Real rounded_to(std::uint32_t format, Real x) const override {
    if (!truncates_ || format != QKCTS_BFLOAT16) return Base::rounded_to(format, x);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(x)) & 0xffff0000u);
  }

 protected:
  bool truncates_ = false;
};

template <class Real>
struct ProbsTruncate : Truncating<Real> {
  using Truncating<Real>::Truncating;
  void softmax_row(QueryRow<Real>& row) override {
    this->truncates_ = true;
    Truncating<Real>::softmax_row(row);
    this->truncates_ = false;
  }
};

template <class Real>
struct OutputTruncates : Truncating<Real> {
  using Truncating<Real>::Truncating;
  void output_row(QueryRow<Real>& row) override {
    this->truncates_ = true;
    Truncating<Real>::output_row(row);
    this->truncates_ = false;
  }
};

// The running sum is kept in the format of the output.
template <class Real>
struct OutputRoundedByKey : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    Base::output_row(row);
    const std::uint32_t format = this->terms_.rounding.output;
    if (format == 0 || row.empty || this->terms_.softmax.sink == QKCTS_SINK_POST_SCALE) return;
    std::fill(row.output.begin(), row.output.end(), Real{0});
    for (std::int64_t k = 0; k < this->shape_.k_len; ++k) {
      if (row.visible[k] == 0) continue;
      const auto v = this->value(row.b, this->kv_head(row.h), k);
      for (std::size_t d = 0; d < v.size(); ++d)
        row.output[d] = this->rounded(format, row.output[d] + row.probs[k] * v[d]);
    }
  }
};

constexpr Mutant table[] = {
    {.id = "round_scaled_q_before_scale",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_SCORES,
     .wrong = "scale rn(q) for rn(scale q)",
     .attention = kernel<QueryRoundedBeforeScale>,
     .invisible = "a scale that is a power of two"},
    {.id = "round_scores_before_scale",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_SCORES,
     .wrong = "scale rn(<q, k>) for rn(scale <q, k>)",
     .attention = kernel<DotRoundedBeforeScale>,
     .source = "philipturner/metal-flash-attention#8",
     .invisible = "a scale that is a power of two"},
    {.id = "round_capped_before_bias",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_CAPPED,
     .wrong = "rn(cap(s)) + b for rn(cap(s) + b)",
     .attention = kernel<CapRoundedBeforeBias>,
     .invisible = "no bias after the cap"},
    {.id = "round_probs_before_sum",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_PROBS,
     .wrong = "the weights are rounded before their sum is formed, p is not",
     .attention = kernel<SumOfRounded>},
    {.id = "round_probs_before_division",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_PROBS,
     .wrong = "rn(w) / sum for rn(w / sum)",
     .attention = kernel<RoundedBeforeDivision>,
     .invisible = "a sum that is a power of two"},
    {.id = "round_probs_truncate",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_PROBS,
     .wrong = "narrowing p to bfloat16 drops the low bits",
     .attention = kernel<ProbsTruncate>,
     .source = "mmastrac/diffgemma#18"},
    {.id = "round_probs_not_used",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_OUTPUT,
     .wrong = "the values are weighted by the unrounded p",
     .attention = kernel<UnroundedWeights>},
    {.id = "round_output_by_key",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_OUTPUT,
     .wrong = "the running sum is rounded after every key",
     .attention = kernel<OutputRoundedByKey>,
     .invisible = "one key"},
    {.id = "round_output_truncates",
     .clause = "QK-ROUND-01",
     .stage = QKCTS_STAGE_OUTPUT,
     .wrong = "narrowing the output to bfloat16 drops the low bits",
     .attention = kernel<OutputTruncates>,
     .source = "PaddlePaddle/Paddle#68689"},
};

}  // namespace

std::span<const Mutant> row_rounding_mutants() {
  return table;
}

}  // namespace qkcts::mutants
