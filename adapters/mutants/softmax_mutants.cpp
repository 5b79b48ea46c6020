// SPDX-License-Identifier: Apache-2.0
// QK-SOFTMAX, QK-LSE.
#include <algorithm>
#include <cmath>

#include "adapters/mutants/catalogue.hpp"

namespace qkcts::mutants {

namespace {

using scalar::infinity;
using scalar::QueryRow;

template <class Real>
Real to_bf16(Real x) {
  return scalar::from_bfloat16(scalar::to_bfloat16(static_cast<float>(x)));
}

template <class Real>
Real to_f16(Real x) {
  return scalar::from_binary16(scalar::to_binary16(static_cast<float>(x)));
}

// A softmax of visible keys that replaces the control's; empty rows stay with the control.
template <class Real>
struct SoftmaxFault : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;

  virtual void softmax(QueryRow<Real>& row) = 0;

  void softmax_row(QueryRow<Real>& row) override {
    Base::softmax_row(row);
    if (!row.empty) softmax(row);
  }

  static Real largest(const QueryRow<Real>& row) { return *std::max_element(row.masked.begin(), row.masked.end()); }

  // p = weight(masked - shift) / sum, lse = shift + log(sum); `others` is what else stands in the sum.
  template <class Weight>
  static void weigh(QueryRow<Real>& row, Real shift, const Weight& weight, Real others = 0) {
    Real sum = others;
    for (std::size_t k = 0; k < row.masked.size(); ++k) {
      row.probs[k] = weight(row.masked[k] - shift);
      sum += row.probs[k];
    }
    for (Real& p : row.probs) p /= sum;
    row.lse = shift + std::log(sum);
  }

  static Real exponential(Real x) { return std::exp(x); }
};

template <class Real>
struct NoMaximum : SoftmaxFault<Real> {
  using SoftmaxFault<Real>::SoftmaxFault;
  void softmax(QueryRow<Real>& row) override { this->weigh(row, 0, this->exponential); }
};

// The running maximum is set to 0 by a tile of 16 keys without a visible one, and stays there.
template <class Real>
struct MaximumResetToZero : SoftmaxFault<Real> {
  using SoftmaxFault<Real>::SoftmaxFault;
  void softmax(QueryRow<Real>& row) override {
    Real shift = this->largest(row);
    for (std::size_t first = 0; first < row.masked.size(); first += 16) {
      const std::size_t last = std::min(first + 16, row.masked.size());
      if (std::find(row.visible.begin() + static_cast<std::ptrdiff_t>(first),
                    row.visible.begin() + static_cast<std::ptrdiff_t>(last),
                    1) == row.visible.begin() + static_cast<std::ptrdiff_t>(last))
        shift = std::max(shift, Real{0});
    }
    this->weigh(row, shift, this->exponential);
  }
};

// (-inf) - (-inf) where the first tile of 16 keys has no visible one.
template <class Real>
struct InfinityMinusInfinity : SoftmaxFault<Real> {
  using SoftmaxFault<Real>::SoftmaxFault;
  void softmax(QueryRow<Real>& row) override {
    const std::size_t tile = std::min<std::size_t>(16, row.visible.size());
    const auto end = row.visible.begin() + static_cast<std::ptrdiff_t>(tile);
    if (std::find(row.visible.begin(), end, 1) != end) return;
    const Real nan = infinity<Real> - infinity<Real>;
    for (Real& p : row.probs) p = nan;
    row.lse = nan;
  }
};

// The sums of earlier tiles are not rescaled when the maximum rises.
template <class Real, std::size_t tile>
struct TilesNotRescaled : SoftmaxFault<Real> {
  using SoftmaxFault<Real>::SoftmaxFault;
  void softmax(QueryRow<Real>& row) override {
    Real running = -infinity<Real>;
    Real sum = 0;
    for (std::size_t first = 0; first < row.masked.size(); first += tile) {
      const std::size_t last = std::min(first + tile, row.masked.size());
      for (std::size_t k = first; k < last; ++k) running = std::max(running, row.masked[k]);
      for (std::size_t k = first; k < last; ++k) {
        row.probs[k] = row.visible[k] != 0 ? std::exp(row.masked[k] - running) : 0;
        sum += row.probs[k];
      }
    }
    for (Real& p : row.probs) p /= sum;
    row.lse = running + std::log(sum);
  }
};

template <class Real>
struct RescaleMissing : TilesNotRescaled<Real, 16> {
  using TilesNotRescaled<Real, 16>::TilesNotRescaled;
};

template <class Real>
struct RescaleMissingIn64 : TilesNotRescaled<Real, 64> {
  using TilesNotRescaled<Real, 64>::TilesNotRescaled;
};

template <class Real>
struct SoftmaxInBfloat16 : SoftmaxFault<Real> {
  using SoftmaxFault<Real>::SoftmaxFault;
  void softmax(QueryRow<Real>& row) override {
    const Real shift = to_bf16(this->largest(row));
    Real sum = 0;
    for (std::size_t k = 0; k < row.masked.size(); ++k) {
      row.probs[k] = to_bf16(std::exp(to_bf16(to_bf16(row.masked[k]) - shift)));
      sum = to_bf16(sum + row.probs[k]);
    }
    for (Real& p : row.probs) p /= sum;
    row.lse = shift + std::log(sum);
  }
};

template <class Real>
struct SumInBinary16 : SoftmaxFault<Real> {
  using SoftmaxFault<Real>::SoftmaxFault;
  void softmax(QueryRow<Real>& row) override {
    const Real shift = this->largest(row);
    Real sum = 0;
    for (std::size_t first = 0; first < row.masked.size(); first += 32) {
      for (std::size_t k = first; k < std::min(first + 32, row.masked.size()); ++k) {
        row.probs[k] = std::exp(row.masked[k] - shift);
        sum += row.probs[k];
      }
      sum = to_f16(sum);
    }
    for (Real& p : row.probs) p /= sum;
    row.lse = shift + std::log(sum);
  }
};

// exp never returns less than exp(-87.3), not even for a hidden key.
template <class Real>
struct ExpWithFloor : SoftmaxFault<Real> {
  using SoftmaxFault<Real>::SoftmaxFault;
  void softmax(QueryRow<Real>& row) override {
    this->weigh(row, this->largest(row), [](Real x) { return std::exp(std::max(x, static_cast<Real>(-87.3))); });
    std::fill(row.visible.begin(), row.visible.end(), std::uint8_t{1});
  }
};

// Rows of zeros fill the last tile of 16 keys and count with the score 0.
template <class Real>
struct ZeroKeysCounted : SoftmaxFault<Real> {
  using SoftmaxFault<Real>::SoftmaxFault;
  void softmax(QueryRow<Real>& row) override {
    const std::size_t extra = (16 - row.masked.size() % 16) % 16;
    const Real shift = extra > 0 ? std::max(this->largest(row), Real{0}) : this->largest(row);
    this->weigh(row, shift, this->exponential, static_cast<Real>(extra) * std::exp(-shift));
  }
};

// Two halves of the keys, merged by weights 2^lse of natural logarithms.
template <class Real>
struct MergeInWrongBase : SoftmaxFault<Real> {
  using SoftmaxFault<Real>::SoftmaxFault;
  void softmax(QueryRow<Real>& row) override {
    const std::size_t half = row.masked.size() / 2;
    Real part[2] = {0, 0};
    for (std::size_t k = 0; k < row.masked.size(); ++k) part[k < half ? 0 : 1] += row.probs[k];
    if (part[0] == 0 || part[1] == 0) return;
    const Real ratio = std::exp2(std::log(part[0]) - std::log(part[1]));
    const Real weight[2] = {ratio / (1 + ratio), 1 / (1 + ratio)};
    for (std::size_t k = 0; k < row.masked.size(); ++k)
      row.probs[k] *= weight[k < half ? 0 : 1] / part[k < half ? 0 : 1];
  }
};

template <class Real>
struct LseWithoutMaximum : SoftmaxFault<Real> {
  using SoftmaxFault<Real>::SoftmaxFault;
  void softmax(QueryRow<Real>& row) override { row.lse -= this->largest(row); }
};

template <class Real>
struct LseIsMaximum : SoftmaxFault<Real> {
  using SoftmaxFault<Real>::SoftmaxFault;
  void softmax(QueryRow<Real>& row) override { row.lse = this->largest(row); }
};

// As if a key of score 0 without a value were seen by every query.
template <class Real>
struct OneInTheSum : SoftmaxFault<Real> {
  using SoftmaxFault<Real>::SoftmaxFault;
  void softmax(QueryRow<Real>& row) override {
    const Real grown = 1 + this->power(-row.lse);
    for (Real& p : row.probs) p /= grown;
    row.lse += this->logarithm(grown);
  }
};

constexpr Mutant table[] = {
    {"no_max_subtraction", "QK-SOFTMAX-01", QKCTS_STAGE_PROBS, "exp(s) without the row maximum", nullptr,
     kernel<NoMaximum>},
    {"max_reset_zero", "QK-SOFTMAX-01", QKCTS_STAGE_PROBS, "a tile without visible keys sets the maximum to 0", nullptr,
     kernel<MaximumResetToZero>},
    {"neginf_minus_neginf", "QK-SOFTMAX-01", QKCTS_STAGE_PROBS, "NaN where the first tile has no visible key", nullptr,
     kernel<InfinityMinusInfinity>},
    {"rescale_missing", "QK-SOFTMAX-01", QKCTS_STAGE_PROBS,
     "earlier tiles of 16 keys are not rescaled when the maximum rises", nullptr, kernel<RescaleMissing>},
    {"rescale_missing_64", "QK-SOFTMAX-01", QKCTS_STAGE_PROBS, "earlier blocks of 64 keys are not rescaled", nullptr,
     kernel<RescaleMissingIn64>},
    {"softmax_low_precision", "QK-SOFTMAX-01", QKCTS_STAGE_PROBS, "scores, weights and their sum in bfloat16", nullptr,
     kernel<SoftmaxInBfloat16>},
    {"stats_fp16", "QK-SOFTMAX-01", QKCTS_STAGE_PROBS, "the row sum is held in binary16", nullptr,
     kernel<SumInBinary16>},
    {"exp_floor_nonzero", "QK-MASK-06", QKCTS_STAGE_PROBS, "exp has a floor, so hidden keys keep a weight", nullptr,
     kernel<ExpWithFloor>},
    {"tail_zero_keys", "QK-SOFTMAX-01", QKCTS_STAGE_PROBS, "padding keys count with the score 0", nullptr,
     kernel<ZeroKeysCounted>},
    {"merge_e_as_base2", "QK-SOFTMAX-01", QKCTS_STAGE_PROBS, "two halves are merged by 2^lse of natural logarithms",
     nullptr, kernel<MergeInWrongBase>},
    {"lse_without_max", "QK-LSE-01", QKCTS_STAGE_LSE, "the logarithm of the sum without the row maximum", nullptr,
     kernel<LseWithoutMaximum>},
    {"lse_is_max", "QK-LSE-01", QKCTS_STAGE_LSE, "the row maximum, without the logarithm of the sum", nullptr,
     kernel<LseIsMaximum>},
    {"softmax_plus_one", "QK-SOFTMAX-01", QKCTS_STAGE_PROBS, "1 is added to the sum of the weights", nullptr,
     kernel<OneInTheSum>},
};

}  // namespace

std::span<const Mutant> softmax_mutants() {
  return table;
}

}  // namespace qkcts::mutants
