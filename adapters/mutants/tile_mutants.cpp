// SPDX-License-Identifier: Apache-2.0
// What goes wrong between the tiles, splits and buffers of a fused kernel: faults of several clauses, as their threads
// tell them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "adapters/mutants/catalogue.hpp"
#include "adapters/mutants/weighted_value.hpp"

namespace qkcts::mutants {

namespace {

using scalar::QueryRow;
using scalar::Side;

constexpr std::int64_t tile = 16;

// The left bound of the window is looked at here; the control leaves it open.
template <class Real>
struct OwnLeftBound : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  OwnLeftBound(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
               const qkcts_outputs& outputs)
      : Base(terms, shape, inputs, outputs), left_(terms.mask.has_window != 0 ? terms.mask.window_left : -1) {
    this->terms_.mask.window_left = -1;
  }
  virtual bool within(std::int64_t b, std::int64_t t, std::int64_t k) const = 0;
  bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const override {
    return Base::visible(b, h, t, k) && (left_ < 0 || within(b, t, k));
  }
  std::int64_t left_;
};

template <class Real>
struct WindowOfLocalRows : OwnLeftBound<Real> {
  using OwnLeftBound<Real>::OwnLeftBound;
  bool within(std::int64_t, std::int64_t t, std::int64_t k) const override { return t - k <= this->left_; }
};

template <class Real>
struct FirstTileUnbounded : OwnLeftBound<Real> {
  using OwnLeftBound<Real>::OwnLeftBound;
  bool within(std::int64_t b, std::int64_t t, std::int64_t k) const override {
    const bool skipped = t < tile && this->terms_.mask.causal == 0 && this->shape_.q_len < this->shape_.k_len;
    return skipped || t + this->query_offset(b) - k <= this->left_;
  }
};

// The last tile of keys is taken as a whole, up to what the buffer holds.
template <class Real>
struct LengthOfWholeTiles : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  LengthOfWholeTiles(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                     const qkcts_outputs& outputs)
      : Base(terms, shape, inputs, outputs), lengths_(terms.mask.kv_lengths != 0) {
    this->terms_.mask.kv_lengths = 0;
  }
  bool visible(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t k) const override {
    if (!Base::visible(b, h, t, k)) return false;
    return !lengths_ || k / tile <= (this->kv_len_.template load<std::int64_t>(b) - 1) / tile;
  }
  bool lengths_;
};

// NaN for empty rows as long as no other row has come.
template <class Real>
struct LeadingEmptyRows : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    Base::output_row(row);
    leading_ = row.empty && (row.t == 0 || leading_);
    if (leading_) row.output.assign(row.output.size(), std::numeric_limits<Real>::quiet_NaN());
  }
  bool leading_ = false;
};

// Every split of keys adds the sink to its sum. Splits of four keys: those of real kernels are longer, and so are rows.
template <class Real>
struct SinkOfEverySplit : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void softmax_row(QueryRow<Real>& row) override {
    Base::softmax_row(row);
    const std::int64_t splits = (this->shape_.k_len + 3) / 4;
    if (!this->has_sink_column() || splits < 2) return;
    const Real grown = 1 + static_cast<Real>(splits - 1) * this->power(this->sink_of(row) - row.lse);
    for (Real& p : row.probs) p /= grown;
    row.lse += this->logarithm(grown);
  }
};

template <class Real>
struct SinkRenormalised : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    Base::output_row(row);
    if (!this->has_sink_column() || row.empty) return;
    Real sum = 0;
    for (const Real p : row.probs) sum += p;
    for (Real& o : row.output) o /= sum;
  }
};

// Two halves of the keys whose sums are known to base 2, merged by weights e^lse.
template <class Real>
struct MergeOfBaseTwo : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void softmax_row(QueryRow<Real>& row) override {
    Base::softmax_row(row);
    const std::size_t half = row.probs.size() / 2;
    Real part[2] = {0, 0};
    for (std::size_t k = 0; k < row.probs.size(); ++k) part[k < half ? 0 : 1] += row.probs[k];
    if (row.empty || !(part[0] > 0) || !(part[1] > 0)) return;
    const Real ratio = std::pow(part[0] / part[1], std::numbers::log2e_v<Real>);
    const Real weight[2] = {ratio / (1 + ratio), 1 / (1 + ratio)};
    for (std::size_t k = 0; k < row.probs.size(); ++k) {
      const int of = k < half ? 0 : 1;
      row.probs[k] *= weight[of] / part[of];
    }
  }
};

// Beyond a size of the batch another kernel takes over, which sums from the last key to the first.
template <class Real>
struct OrderByBatch : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    Base::output_row(row);
    if (this->shape_.batch < 2 || row.empty) return;
    row.output.assign(row.output.size(), 0);
    for (std::int64_t k = this->shape_.k_len - 1; k >= 0; --k) {
      if (row.visible[k] == 0) continue;
      add_weighted<Real>(row, k, this->value(row.b, this->kv_head(row.h), k));
    }
  }
};

// Two tiles share one buffer without a barrier: now and then the values of one are those of the other.
template <class Real>
struct LastWriterWins : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  using Base::Base;
  void output_row(QueryRow<Real>& row) override {
    Base::output_row(row);
    const std::int64_t tiles = this->shape_.k_len / tile;
    if (tiles < 2) return;
    static std::mt19937 source(1);
    const auto lost = static_cast<std::int64_t>(source() % static_cast<std::uint32_t>(tiles));
    const std::int64_t winner = lost == 0 ? 1 : 0;
    for (std::int64_t i = 0; i < tile; ++i) {
      const auto right = this->value(row.b, this->kv_head(row.h), lost * tile + i);
      const auto wrong = this->value(row.b, this->kv_head(row.h), winner * tile + i);
      const Real p = row.probs[lost * tile + i];
      for (std::size_t d = 0; d < right.size(); ++d) row.output[d] += p * (wrong[d] - right[d]);
    }
  }
};

// Subnormal numbers of the storage format are read as 0.
template <class Real>
struct SubnormalInputsFlushed : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  SubnormalInputsFlushed(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                         const qkcts_outputs& outputs)
      : Base(terms, shape, inputs, outputs),
        smallest_(inputs.format == QKCTS_BINARY16 ? static_cast<Real>(0x1p-14) : std::numeric_limits<Real>::min()) {}
  void transform_token(Side side, std::span<Real> token) override {
    for (Real& x : token)
      if (std::abs(x) < smallest_) x = 0;
    Base::transform_token(side, token);
  }
  Real smallest_;
};

// What exceeds binary16 in the output becomes its largest number.
template <class Real>
struct OverflowSaturated : scalar::Attention<Real> {
  using Base = scalar::Attention<Real>;
  OverflowSaturated(const qkcts_contract& terms, const qkcts_shape& shape, const qkcts_inputs& inputs,
                    const qkcts_outputs& outputs)
      : Base(terms, shape, inputs, outputs), largest_(inputs.format == QKCTS_BINARY16 ? 65504 : 0) {}
  void store_token(qkcts_stage stage, std::int64_t b, std::int64_t t, std::span<const Real> token) override {
    std::vector<Real> stored(token.begin(), token.end());
    for (Real& x : stored)
      if (largest_ > 0 && std::abs(x) > largest_ && std::isfinite(x)) x = std::copysign(largest_, x);
    Base::store_token(stage, b, t, stored);
  }
  Real largest_;
};

constexpr Mutant table[] = {
    {"window_local_rows", "QK-MASK-05", QKCTS_STAGE_MASKED, "the left bound is counted from the row, not from q'",
     nullptr, kernel<WindowOfLocalRows>},
    {"window_first_tile", "QK-MASK-05", QKCTS_STAGE_MASKED,
     "no left bound for the first 16 rows of fewer than the keys", nullptr, kernel<FirstTileUnbounded>},
    {"tail_keys_garbage", "QK-MASK-03", QKCTS_STAGE_MASKED, "keys behind the length are visible up to a whole 16",
     nullptr, kernel<LengthOfWholeTiles>},
    {"empty_row_leading", "QK-EMPTY-01", QKCTS_STAGE_OUTPUT, "NaN for empty rows before the first that is not", nullptr,
     kernel<LeadingEmptyRows>},
    {"sink_counted_per_split", "QK-SINK-01", QKCTS_STAGE_PROBS, "every four keys add the sink once more", nullptr,
     kernel<SinkOfEverySplit>},
    {"sink_renormalised", "QK-SINK-01", QKCTS_STAGE_OUTPUT, "the weights of the keys are made to sum to 1", nullptr,
     kernel<SinkRenormalised>},
    {"merge_base2_as_e", "QK-SOFTMAX-01", QKCTS_STAGE_PROBS, "two halves are merged by e^lse of logarithms to base 2",
     nullptr, kernel<MergeOfBaseTwo>},
    {"path_by_bucket", "QK-OUT-01", QKCTS_STAGE_OUTPUT, "another order of the sum from a batch of two on", nullptr,
     kernel<OrderByBatch>},
    {"row_last_writer", "QK-OUT-01", QKCTS_STAGE_OUTPUT, "a tile of 16 values is overwritten by another", nullptr,
     kernel<LastWriterWins>},
    {"ftz_inputs", "QK-STAGE-01", QKCTS_STAGE_Q_NORM, "subnormal inputs are read as 0", nullptr,
     kernel<SubnormalInputsFlushed>},
    {"overflow_saturated", "QK-SPECIAL-05", QKCTS_STAGE_Q_NORM, "65504 where a stage exceeds binary16", nullptr,
     kernel<OverflowSaturated>},
};

}  // namespace

std::span<const Mutant> tile_mutants() {
  return table;
}

}  // namespace qkcts::mutants
