// SPDX-License-Identifier: Apache-2.0
// QK-OUT, and the storage formats of QK-STAGE.
#include <algorithm>
#include <bit>
#include <cmath>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::QueryRow;

template <class Real>
struct OutputFault : scalar::Attention<Real> {
  using scalar::Attention<Real>::Attention;
  virtual void replace(QueryRow<Real>& row) = 0;
  void output_row(QueryRow<Real>& row) override {
    scalar::Attention<Real>::output_row(row);
    if (!row.empty) replace(row);
  }
};

template <class Real>
struct Uniform : OutputFault<Real> {
  using OutputFault<Real>::OutputFault;
  void replace(QueryRow<Real>& row) override {
    std::fill(row.output.begin(), row.output.end(), Real{0});
    Real count = 0;
    for (std::int64_t k = 0; k < this->shape_.k_len; ++k) {
      if (row.visible[k] == 0) continue;
      ++count;
      const auto v = this->value(row.b, this->kv_head(row.h), k);
      for (std::size_t d = 0; d < v.size(); ++d) row.output[d] += v[d];
    }
    for (Real& o : row.output) o /= count;
  }
};

template <class Real>
struct Zero : OutputFault<Real> {
  using OutputFault<Real>::OutputFault;
  void replace(QueryRow<Real>& row) override { std::fill(row.output.begin(), row.output.end(), Real{0}); }
};

template <class Real>
struct FirstValue : OutputFault<Real> {
  using OutputFault<Real>::OutputFault;
  void replace(QueryRow<Real>& row) override {
    std::int64_t k = 0;
    while (row.visible[k] == 0) ++k;
    const auto v = this->value(row.b, this->kv_head(row.h), k);
    std::copy(v.begin(), v.end(), row.output.begin());
  }
};

template <class Real>
struct Unnormalised : OutputFault<Real> {
  using OutputFault<Real>::OutputFault;
  void replace(QueryRow<Real>& row) override {
    const Real largest = *std::max_element(row.masked.begin(), row.masked.end());
    const Real sum = std::exp(row.lse - largest);
    for (Real& o : row.output) o *= sum;
  }
};

// One element of the tensor is off by one percent.
template <class Real>
struct OneElement : OutputFault<Real> {
  using OutputFault<Real>::OutputFault;
  void replace(QueryRow<Real>& row) override {
    if (row.h == this->shape_.q_heads - 1 && row.t == this->shape_.q_len - 1)
      row.output.back() *= static_cast<Real>(1.01);
  }
};

// The weighted sum is kept in binary16.
template <class Real>
struct AccumulatorInBinary16 : OutputFault<Real> {
  using OutputFault<Real>::OutputFault;
  void replace(QueryRow<Real>& row) override {
    const auto narrow = [](Real x) { return scalar::from_binary16(scalar::to_binary16(static_cast<float>(x))); };
    std::fill(row.output.begin(), row.output.end(), Real{0});
    for (std::int64_t k = 0; k < this->shape_.k_len; ++k) {
      if (row.visible[k] == 0) continue;
      const auto v = this->value(row.b, this->kv_head(row.h), k);
      for (std::size_t d = 0; d < v.size(); ++d)
        row.output[d] = static_cast<Real>(narrow(row.output[d] + row.probs[k] * v[d]));
    }
  }
};

// A grid that does not follow the values, and rounding that is not odd.
template <class Real>
struct QuantisedDown : OutputFault<Real> {
  using OutputFault<Real>::OutputFault;
  void replace(QueryRow<Real>& row) override {
    for (Real& o : row.output) o = std::floor(o * 64) / 64;
  }
};

// Narrowing to bfloat16 drops the low bits.
template <class Real>
struct Truncated : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  Truncated(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
            const qkcts_outputs& outputs)
      : Base(terms, shape, inputs, outputs), kept_(inputs.format == QKCTS_BFLOAT16 ? 0xffff0000u : 0xffffffffu) {}

  void store_row(const QueryRow<Real>& row) override {
    QueryRow<Real> cut = row;
    for (Real& p : cut.probs) p = truncate(p);
    for (Real& o : cut.output) o = truncate(o);
    Base::store_row(cut);
  }
  void store_token(qkcts_stage stage, std::int64_t b, std::int64_t t, std::span<const Real> token) override {
    std::vector<Real> cut(token.begin(), token.end());
    for (Real& x : cut) x = truncate(x);
    Base::store_token(stage, b, t, cut);
  }

 private:
  Real truncate(Real x) const {
    if constexpr (sizeof x == sizeof kept_) return std::bit_cast<Real>(std::bit_cast<std::uint32_t>(x) & kept_);
    return x;
  }
  std::uint32_t kept_;  // bits of a binary32 number
};

constexpr Mutant table[] = {
    {"attention_uniform", "QK-OUT-01", QKCTS_STAGE_OUTPUT, "the mean of the visible v: q and k are ignored", nullptr,
     kernel<Uniform>},
    {"output_zero", "QK-OUT-01", QKCTS_STAGE_OUTPUT, "all zeros", nullptr, kernel<Zero>},
    {"output_first_value", "QK-OUT-01", QKCTS_STAGE_OUTPUT, "v of the first visible key", nullptr, kernel<FirstValue>},
    {"output_unnormalised", "QK-OUT-01", QKCTS_STAGE_OUTPUT, "the division by the row sum is left out", nullptr,
     kernel<Unnormalised>},
    {"output_one_element", "QK-OUT-01", QKCTS_STAGE_OUTPUT, "one element is off by one percent", nullptr,
     kernel<OneElement>},
    {"pv_fp16", "QK-OUT-01", QKCTS_STAGE_OUTPUT, "the weighted sum is held in binary16", nullptr,
     kernel<AccumulatorInBinary16>},
    {"output_quantised_down", "QK-OUT-01", QKCTS_STAGE_OUTPUT, "the output is rounded down to multiples of 2^-6",
     nullptr, kernel<QuantisedDown>},
    {"bf16_truncate", "QK-STAGE-01", QKCTS_STAGE_OUTPUT, "narrowing to bfloat16 drops the low bits", nullptr,
     kernel<Truncated>},
};

}  // namespace

std::span<const Mutant> output_mutants() {
  return table;
}

}  // namespace qkcts::mutants
