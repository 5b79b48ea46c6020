// SPDX-License-Identifier: Apache-2.0
// What came with ABI 1.1 and 1.2 between the dot product and the mask: QK-HEADS-02, QK-SCALE-03, QK-SCALE-04, QK-QTEMP,
// QK-ALIBI.
#include <algorithm>
#include <cmath>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::QueryRow;

// A learned scale formed from the tensor entry t by another rule than exp(min(t, cap)).
template <class Real>
struct LearnedScale : scalar::Attention<Real> {
  LearnedScale(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
               const qkcts_outputs& outputs, double (*rule)(double entry, double cap))
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    if (terms.score.scale_form != QKCTS_SCALE_LEARNED_SCALAR || terms.logits.scale_exp_cap == 0) return;
    const double temperature = terms.score.temperature == 0 ? 1 : terms.score.temperature;
    for (std::int64_t h = 0; h < shape.q_heads; ++h) {
      const bool per_head = terms.logits.scale_axes == QKCTS_SCALE_PER_HEAD;
      const auto entry = this->learned_scale_.template load<double>(per_head ? h : 0);
      this->tau_[h] = rule(entry, terms.logits.scale_exp_cap) / temperature;
    }
  }
};

template <class Real>
struct CapWithoutExponential : LearnedScale<Real> {
  CapWithoutExponential(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                        const qkcts_outputs& outputs)
      : LearnedScale<Real>(terms, shape, inputs, outputs,
                           [](double entry, double cap) { return std::min(entry, cap); }) {}
};

template <class Real>
struct CapAfterExponential : LearnedScale<Real> {
  CapAfterExponential(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                      const qkcts_outputs& outputs)
      : LearnedScale<Real>(terms, shape, inputs, outputs,
                           [](double entry, double cap) { return std::min(std::exp(entry), cap); }) {}
};

template <class Real>
struct ScaleOfFirstHead : scalar::Attention<Real> {
  ScaleOfFirstHead(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                   const qkcts_outputs& outputs)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    std::fill(this->tau_.begin(), this->tau_.end(), this->tau_.front());
  }
};

// Head h takes the scale of the key head that it reads.
template <class Real>
struct ScaleOfKeyHead : scalar::Attention<Real> {
  ScaleOfKeyHead(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                 const qkcts_outputs& outputs)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    const std::vector<double> given = this->tau_;
    for (std::int64_t h = 0; h < shape.q_heads; ++h) this->tau_[h] = given[h / (shape.q_heads / shape.kv_heads)];
  }
};

template <class Real>
struct TemperatureWithoutFloor : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  double query_factor(std::int64_t b, std::int64_t t) const override {
    const qkcts_logits& logits = this->terms_.logits;
    if (logits.query_temperature != QKCTS_QUERY_TEMPERATURE_LOG) return Base::query_factor(b, t);
    const auto position = static_cast<double>(this->position_of(scalar::Side::query, b, t));
    return 1 + logits.query_alpha * std::log1p((position + logits.query_shift) / logits.query_period);
  }
};

template <class Real>
struct TemperatureWithoutOne : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  double query_factor(std::int64_t b, std::int64_t t) const override {
    const bool none = this->terms_.logits.query_temperature == QKCTS_QUERY_TEMPERATURE_NONE;
    return none ? 1 : Base::query_factor(b, t) - 1;
  }
};

template <class Real>
struct TemperatureByIndex : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  // The rotation has its position ids, the temperature does not.
  double query_factor(std::int64_t b, std::int64_t t) const override {
    by_index_ = true;
    const double factor = Base::query_factor(b, t);
    by_index_ = false;
    return factor;
  }
  std::int64_t position_of(scalar::Side side, std::int64_t b, std::int64_t t) const override {
    return by_index_ ? t : Base::position_of(side, b, t);
  }

 private:
  mutable bool by_index_ = false;
};

// log_ratio by another rule: 1 + alpha ln(rule((p + shift) / period)).
template <class Real>
struct RatioFault : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  virtual double rule(double ratio) const = 0;
  double query_factor(std::int64_t b, std::int64_t t) const override {
    const qkcts_logits& logits = this->terms_.logits;
    if (logits.query_temperature != QKCTS_QUERY_TEMPERATURE_LOG_RATIO) return Base::query_factor(b, t);
    const auto position = static_cast<double>(this->position_of(scalar::Side::query, b, t));
    return 1 + logits.query_alpha * std::log(rule((position + logits.query_shift) / logits.query_period));
  }
};

template <class Real>
struct RatioWithoutMax : RatioFault<Real> {
  using RatioFault<Real>::RatioFault;
  double rule(double ratio) const override { return ratio; }
};

template <class Real>
struct RatioFloored : RatioFault<Real> {
  using RatioFault<Real>::RatioFault;
  double rule(double ratio) const override { return std::max(std::floor(ratio), 1.0); }
};

template <class Real>
struct SlopeOfFirstHead : scalar::Attention<Real> {
  SlopeOfFirstHead(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                   const qkcts_outputs& outputs)
      : scalar::Attention<Real>(terms, shape, inputs, outputs) {
    if (!this->slopes_.empty()) std::fill(this->slopes_.begin(), this->slopes_.end(), this->slopes_.front());
  }
};

template <class Real>
struct AlibiNegated : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  double alibi_distance(const QueryRow<Real>& row, std::int64_t k) const override {
    return -Base::alibi_distance(row, k);
  }
};

template <class Real>
struct AlibiOffByOne : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  double alibi_distance(const QueryRow<Real>& row, std::int64_t k) const override {
    return Base::alibi_distance(row, k) - 1;
  }
};

// Query i stands at key i, whatever the alignment says.
template <class Real>
struct AlibiWithoutOffset : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  double alibi_distance(const QueryRow<Real>& row, std::int64_t k) const override {
    const double there = static_cast<double>(k - row.t);
    if (this->terms_.logits.alibi == QKCTS_ALIBI_RELATIVE) return there;
    if (this->terms_.logits.alibi == QKCTS_ALIBI_SYMMETRIC) return -std::fabs(there);
    return Base::alibi_distance(row, k);
  }
};

template <class Real>
struct AlibiBeforeCap : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void cap_row(QueryRow<Real>& row) override {
    if (this->slopes_.empty()) return Base::cap_row(row);
    const std::vector<Real> scores = row.scores;
    const std::uint32_t form = this->terms_.logits.alibi;
    for (std::int64_t k = 0; k < this->shape_.k_len; ++k) row.scores[k] += this->alibi_of(row, k);
    this->terms_.logits.alibi = QKCTS_ALIBI_NONE;
    Base::cap_row(row);
    this->terms_.logits.alibi = form;
    row.scores = scores;
  }
};

template <class Real>
struct AlibiScaled : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void cap_row(QueryRow<Real>& row) override {
    Base::cap_row(row);
    if (this->slopes_.empty()) return;
    for (std::int64_t k = 0; k < this->shape_.k_len; ++k)
      row.capped[k] += (this->tau(row) - 1) * this->alibi_of(row, k);
  }
};

constexpr Mutant table[] = {
    {"scale_of_first_head", "QK-SCALE-03", QKCTS_STAGE_SCORES, "every head uses the scale of head 0", nullptr,
     kernel<ScaleOfFirstHead>},
    {"scale_of_key_head", "QK-SCALE-03", QKCTS_STAGE_SCORES, "a head uses the scale with the number of its key head",
     nullptr, kernel<ScaleOfKeyHead>},
    {"scale_cap_without_exp", "QK-SCALE-04", QKCTS_STAGE_SCORES, "min(t, cap) for exp(min(t, cap))", nullptr,
     kernel<CapWithoutExponential>},
    {"scale_cap_after_exp", "QK-SCALE-04", QKCTS_STAGE_SCORES, "min(exp(t), cap) for exp(min(t, cap))", nullptr,
     kernel<CapAfterExponential>},
    {"query_temperature_without_one", "QK-QTEMP-01", QKCTS_STAGE_SCORES, "alpha ln(...) for 1 + alpha ln(...)", nullptr,
     kernel<TemperatureWithoutOne>},
    {"query_temperature_by_index", "QK-QTEMP-01", QKCTS_STAGE_SCORES, "the position is the index of the query", nullptr,
     kernel<TemperatureByIndex>},
    {"query_temperature_without_floor", "QK-QTEMP-01", QKCTS_STAGE_SCORES, "(p + shift) / period is not rounded down",
     nullptr, kernel<TemperatureWithoutFloor>},
    {"log_ratio_without_max", "QK-QTEMP-01", QKCTS_STAGE_SCORES, "ln(x) for ln(max(x, 1)), x = (p + shift) / period",
     nullptr, kernel<RatioWithoutMax>},
    {"log_ratio_floored", "QK-QTEMP-01", QKCTS_STAGE_SCORES, "ln(max(floor(x), 1)) for ln(max(x, 1))", nullptr,
     kernel<RatioFloored>},
    {"alibi_slope_of_first_head", "QK-ALIBI-01", QKCTS_STAGE_CAPPED, "every head uses the slope of head 0", nullptr,
     kernel<SlopeOfFirstHead>},
    {"alibi_negated", "QK-ALIBI-01", QKCTS_STAGE_CAPPED, "far keys gain where they should lose", nullptr,
     kernel<AlibiNegated>},
    {"alibi_off_by_one", "QK-ALIBI-01", QKCTS_STAGE_CAPPED, "every distance is one too far", nullptr,
     kernel<AlibiOffByOne>},
    {"alibi_without_offset", "QK-ALIBI-01", QKCTS_STAGE_CAPPED, "the distance is counted from key i, not from key i'",
     nullptr, kernel<AlibiWithoutOffset>},
    {"alibi_before_softcap", "QK-ALIBI-01", QKCTS_STAGE_CAPPED, "the linear bias is capped too", nullptr,
     kernel<AlibiBeforeCap>},
    {"alibi_scaled", "QK-ALIBI-01", QKCTS_STAGE_CAPPED, "the linear bias is scaled with the dot product", nullptr,
     kernel<AlibiScaled>},
};

}  // namespace

std::span<const Mutant> logit_mutants() {
  return table;
}

}  // namespace qkcts::mutants
