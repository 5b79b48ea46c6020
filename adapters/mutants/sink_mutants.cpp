// SPDX-License-Identifier: Apache-2.0
// QK-SINK, QK-BASE.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::infinity;
using scalar::QueryRow;

template <class Real>
struct SinkOfFirstHead : scalar::Attention<Real> {
  SinkOfFirstHead(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                  const qkcts_outputs& outputs)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    if (!this->sinks_.empty()) std::fill(this->sinks_.begin(), this->sinks_.end(), this->sinks_.front());
  }
};

// The logit is taken for a raw dot product.
template <class Real>
struct SinkScaled : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  SinkScaled(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
             const qkcts_outputs& outputs)
      : Base(terms, shape, inputs, outputs) {
    for (std::size_t h = 0; h < this->sinks_.size(); ++h) this->sinks_[h] *= static_cast<Real>(this->tau_[h]);
  }
};

// The sink has a value after all: that of the first key of the row.
template <class Real>
struct SinkWithValue : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    Base::output_row(row);
    if (!this->has_sink_column() || row.empty) return;
    const Real weight = this->power(this->sink_of(row) - row.lse);
    std::int64_t k = 0;
    while (row.visible[k] == 0) ++k;
    const auto v = this->value(row.b, this->kv_head(row.h), k);
    for (std::size_t d = 0; d < v.size(); ++d) row.output[d] += weight * v[d];
  }
};

// A row without visible keys is empty although it has its sink.
template <class Real>
struct SinkAloneIsEmpty : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void softmax_row(QueryRow<Real>& row) override {
    Base::softmax_row(row);
    if (row.empty && this->has_sink_column()) row.lse = -infinity<Real>;
  }
};

template <class Real>
Real log_of_sum(Real a, Real b) {
  return std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}

template <class Real>
struct PostScaleInLse : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  Real returned_lse(const QueryRow<Real>& row) const override {
    QueryRow<Real> with_sink = row;
    if (this->terms_.softmax.sink == QKCTS_SINK_POST_SCALE && !row.empty)
      with_sink.lse = log_of_sum(row.lse, this->sink_of(row));
    return Base::returned_lse(with_sink);
  }
};

template <class Real>
struct ColumnNotInLse : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  Real returned_lse(const QueryRow<Real>& row) const override {
    QueryRow<Real> without = row;
    if (this->has_sink_column() && !row.empty)
      without.lse += this->logarithm(1 - this->power(this->sink_of(row) - row.lse));
    return Base::returned_lse(without);
  }
};

template <class Real>
struct PostScaleInverted : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    Base::output_row(row);
    if (this->terms_.softmax.sink != QKCTS_SINK_POST_SCALE || row.empty) return;
    const Real difference = this->sink_of(row) - row.lse;
    for (Real& o : row.output) o *= (1 + std::exp(difference)) / (1 + std::exp(-difference));
  }
};

// The factor is formed from the lse in the base in which it is returned.
template <class Real>
struct PostScaleOfReturnedLse : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    Base::output_row(row);
    if (this->terms_.softmax.sink != QKCTS_SINK_POST_SCALE || row.empty) return;
    const Real right = 1 + std::exp(this->sink_of(row) - row.lse);
    const Real wrong = 1 + std::exp(this->sink_of(row) - row.lse * std::numbers::log2e_v<Real>);
    for (Real& o : row.output) o *= right / wrong;
  }
};

// 2^x in the denominator, e^x in the numerator: the two constants of a kernel that folds log2(e) disagree.
template <class Real>
struct BasesMixed : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void softmax_row(QueryRow<Real>& row) override {
    Base::softmax_row(row);
    if (this->terms_.softmax.base != QKCTS_BASE_TWO || row.empty) return;
    const Real largest = *std::max_element(row.masked.begin(), row.masked.end());
    for (std::size_t k = 0; k < row.probs.size(); ++k)
      if (row.visible[k] != 0) row.probs[k] *= std::exp(row.masked[k] - largest) / std::exp2(row.masked[k] - largest);
  }
};

constexpr Mutant table[] = {
    {"sink_of_first_head", "QK-SINK-01", QKCTS_STAGE_PROBS, "every head uses the sink of head 0", nullptr,
     kernel<SinkOfFirstHead>},
    {"sink_scaled", "QK-SINK-01", QKCTS_STAGE_PROBS, "the sink is scaled like a dot product", nullptr,
     kernel<SinkScaled>},
    {"sink_with_value", "QK-SINK-01", QKCTS_STAGE_OUTPUT, "the weight of the sink goes to the first key", nullptr,
     kernel<SinkWithValue>},
    {"sink_alone_is_empty", "QK-SINK-01", QKCTS_STAGE_LSE, "a row with a sink alone has the lse -inf", nullptr,
     kernel<SinkAloneIsEmpty>},
    {"sink_column_not_in_lse", "QK-SINK-01", QKCTS_STAGE_LSE, "the column is left out of the lse", nullptr,
     kernel<ColumnNotInLse>},
    {"sink_post_scale_in_lse", "QK-SINK-01", QKCTS_STAGE_LSE, "the lse of the post-scale form holds the sink", nullptr,
     kernel<PostScaleInLse>},
    {"sink_post_scale_inverted", "QK-SINK-01", QKCTS_STAGE_OUTPUT, "exp(lse - z) for exp(z - lse)", nullptr,
     kernel<PostScaleInverted>},
    {"sink_post_scale_lse_base2", "QK-SINK-01", QKCTS_STAGE_OUTPUT, "exp(z - lse) with the lse in base two", nullptr,
     kernel<PostScaleOfReturnedLse>},
    {"base_mixed", "QK-BASE-01", QKCTS_STAGE_PROBS, "e^x over a sum of 2^x", nullptr, kernel<BasesMixed>},
};

}  // namespace

std::span<const Mutant> sink_mutants() {
  return table;
}

}  // namespace qkcts::mutants
